"""What all tests share: one BLAS thread per worker, no deadlines on noisy machines, and Ctrl-C as a terminal has it."""

import signal

from hypothesis import settings

from budgetreg.execution.workers import pin_blas_threads

pin_blas_threads()
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
# Started in the background of a script, processes ignore SIGINT and hand that on to those that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
