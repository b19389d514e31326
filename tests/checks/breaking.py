"""Learners that are broken in one way or another, and what the checks say of them."""

from dataclasses import replace

from budgetreg import checks


def failure(name, check, broken=None):
    """Return why a learner fails a check when its fit is what `broken` makes of it."""
    verdict = checks.verdict(running(name, broken) if broken else replace(checks.examined(name)), check)
    assert verdict.passed is False
    assert "\n" not in verdict.reason
    return verdict.reason


def running(name, broken):
    subject = checks.examined(name)
    return replace(subject, fit=broken(subject.learner.family.fit))


def with_draws(change):
    """A learner whose whole numbers are changed after they are drawn."""

    class Changed:
        def __init__(self, rng):
            self._rng = rng

        def __getattr__(self, name):
            return getattr(self._rng, name)

        def integers(self, low, high=None, size=None, **options):
            numbers = self._rng.integers(low, high, size, **options)
            return numbers if high is None else change(numbers, high)

    def broken(fit):
        return lambda accessor, settings, checkpoints, rngs, *rest: fit(
            accessor, settings, checkpoints, [Changed(rng) for rng in rngs], *rest
        )

    return broken
