"""What all tests share: one BLAS thread per worker, and no deadlines, as the machines are noisy."""

from hypothesis import settings

from budgetreg.threads import pin_blas_threads

pin_blas_threads()
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
