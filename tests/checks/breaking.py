"""Broken learners, and the reasons for which checks fail them."""

from dataclasses import replace

from budgetreg.testing import checks


def failure(name, check, broken=None):
    """Return why a learner fails a check when `broken` replaces its fit."""
    result = checks.run_check(running(name, broken) if broken else replace(checks.examined(name)), check)
    assert result.passed is False
    assert "\n" not in result.reason
    return result.reason


def running(name, broken):
    subject = checks.examined(name)
    return replace(subject, wrapped=broken)


def with_draws(change):
    """Return what changes the whole numbers that a learner draws."""

    class Changed:
        def __init__(self, rng):
            self._rng = rng

        def __getattr__(self, name):
            return getattr(self._rng, name)

        def integers(self, low, high=None, size=None, **options):
            numbers = self._rng.integers(low, high, size, **options)
            return numbers if high is None else change(numbers, high)

    return with_rngs(lambda rngs: list(map(Changed, rngs)))


def with_rngs(change):
    """Return what changes the random generators of the streams."""
    return lambda fit: lambda *args: fit(*args[:3], change(args[3]), *args[4:])


def changed(name, broken=None, **options):
    """Return a subject with some options, whose fit `broken` replaces."""
    subject = running(name, broken or (lambda fit: fit))
    algo = replace(subject.learner, **options)
    return replace(subject, config=replace(subject.config, algo=algo))


def with_options(**other):
    """Return what runs a learner with other options than its oracle expects."""
    return lambda fit: replace(fit.__self__, **other).fit


def with_given(**other):
    """Return what changes the side information that a learner is given."""
    return lambda fit: lambda *args: fit(*args[:4], replace(args[4], **other))


def with_settings(**factors):
    """Return what multiplies the parameters of a learner."""

    return lambda fit: (
        lambda accessor, settings, *rest: fit(
            accessor, {key: values * factors.get(key, 1) for key, values in settings.items()}, *rest
        )
    )


def with_outputs(change):
    """Return what changes the outputs of a learner."""
    return lambda fit: lambda *args: ((checkpoint, change(W)) for checkpoint, W in fit(*args))
