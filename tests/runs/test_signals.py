"""A closed terminal ends a run as Ctrl-C does, and no worker by itself."""

import os
import signal
import subprocess
import time
import weakref

import pytest

from budgetreg.common.errors import Interrupted
from budgetreg.runs.workers import interrupts_ignored, termination_as_interrupt


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGHUP, 129)])
def test_what_ends_a_run_decides_its_exit_code(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    assert before in (signal.SIG_DFL, signal.default_int_handler)
    handled = False
    with pytest.raises(Interrupted) as end, termination_as_interrupt():
        handled = callable(signal.getsignal(number)) and signal.getsignal(number) != before
        if handled:  # else it would end the tests
            os.kill(os.getpid(), number)
    assert handled
    assert end.value.exit_code == code
    assert signal.getsignal(number) == before


def test_a_second_hangup_changes_nothing() -> None:
    with pytest.raises(Interrupted), termination_as_interrupt():
        assert callable(signal.getsignal(signal.SIGHUP))
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        finally:
            os.kill(os.getpid(), signal.SIGHUP)


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with termination_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_a_terminal_sends_ends_no_worker(number: signal.Signals) -> None:
    with interrupts_ignored(), subprocess.Popen(["sleep", "30"]) as worker:
        worker.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.3)
        worker.kill()
        assert worker.wait(20) == -signal.SIGKILL


def test_an_interrupt_in_a_callback_of_the_garbage_collector_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Python prints what such a callback raises, and goes on."""

    class Watched:
        pass

    watched = Watched()
    watcher = weakref.ref(watched, lambda _: (signal.raise_signal(signal.SIGHUP), time.sleep(0)))
    with pytest.raises(Interrupted), termination_as_interrupt():
        del watched
        time.sleep(30)
    assert watcher() is None
    assert capsys.readouterr().err == ""
