"""Learners that are broken in one way or another, and what the checks say of them."""

from dataclasses import replace

from budgetreg import checks


def failure(name, check, broken=None):
    """Return why a learner fails a check when its fit is what `broken` makes of it."""
    result = checks.run_check(running(name, broken) if broken else replace(checks.examined(name)), check)
    assert result.passed is False
    assert "\n" not in result.reason
    return result.reason


def running(name, broken):
    subject = checks.examined(name)
    return replace(subject, wrapped=broken)


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


def changed(name, broken=None, **options):
    """A learner with some options, run by what `broken` makes of its fit."""
    subject = running(name, broken or (lambda fit: fit))
    algo = replace(subject.learner, **options)
    return replace(subject, config=replace(subject.config, algo=algo))


def with_options(**other):
    """A learner that takes some options to be others."""
    return lambda fit: replace(fit.__self__, **other).fit


def with_given(**other):
    """A learner that takes some of what it is given to be something else."""
    return lambda fit: lambda *args: fit(*args[:4], replace(args[4], **other))


def with_settings(**factors):
    """A learner that multiplies its parameters."""

    def broken(fit):
        def multiplied(accessor, settings, *rest):
            return fit(accessor, {key: values * factors.get(key, 1) for key, values in settings.items()}, *rest)

        return multiplied

    return broken


def with_outputs(change):
    """A learner whose outputs are changed."""
    return lambda fit: lambda *args: ((checkpoint, change(W)) for checkpoint, W in fit(*args))
