"""How often the ends of intervals for the difference of two mean errors miss the truth, with ten paired repetitions.

Two learners share the difficulty of each split and have errors of their own: normal, lognormal or Student's t with
three degrees of freedom, or failures, that is, up to 30 times the error in one repetition of ten. The table has, in per
cent, how often the lower end lies above the true value and the upper end below it (5 is nominal): of the interval that
``advise`` prints (`budgetreg.analysis.intervals`), of Student's t for differences, and of t for differences of
logarithms, whose truth is the ratio of geometric means.

``python scripts/interval_coverage.py`` takes some seconds and prints, for 4,000 experiments each::

    errors                                printed                 t   t of logarithms
    normal, 0.3, ratio 1              4.6     4.7       4.6     4.8       4.6     4.6
    normal, 0.3, ratio 1.5            4.6     4.7       4.1     4.8       4.6     4.6
    lognormal, 0.3, ratio 1           5.2     5.5       4.8     4.8       4.6     5.0
    lognormal, 0.3, ratio 1.5         5.2     5.5       3.0     6.2       4.6     5.0
    lognormal, 1, ratio 1             8.1     8.8       4.2     4.5       4.6     5.0
    lognormal, 1, ratio 1.5           8.1     8.8       1.8     9.3       4.6     5.0
    t3, 0.3, ratio 1                  4.8     4.8       4.7     4.5       3.9     4.2
    t3, 0.3, ratio 1.5                4.8     4.8       4.0     5.2       3.9     4.2
    failures, ratio 1                11.6    12.1       1.0     1.0       1.9     2.1
    failures, ratio 1.5              14.9    15.3       0.3    22.3       2.0     2.1
"""

import numpy as np
from scipy.special import stdtrit

from budgetreg.analysis.intervals import ONE_SIDED, difference

REPETITIONS, EXPERIMENTS = 10, 4000
SPREAD_OF_SPLITS = 0.15
CASES = {
    "normal, 0.3": lambda rng, size: np.maximum(1 + 0.3 * rng.normal(size=size), 0.01),
    "lognormal, 0.3": lambda rng, size: np.exp(0.3 * rng.normal(size=size)),
    "lognormal, 1": lambda rng, size: np.exp(rng.normal(size=size)),
    "t3, 0.3": lambda rng, size: np.maximum(1 + 0.3 * rng.standard_t(3, size=size) / np.sqrt(3), 0.01),
    "failures": lambda rng, size: np.where(rng.random(size) < 0.1, 30 * rng.random(size), 1.0),
}
"""By distribution, and its spread: the errors of a learner, relative to the difficulty of the split."""


def misses(case: str, ratio: float, experiments: int = EXPERIMENTS) -> dict[str, tuple[float, float]]:
    """Return by interval how often its lower and its upper end miss the truth.

    Parameters
    ----------
    case : str
        One of `CASES`.
    ratio : float
        True ratio of the mean errors.
    experiments : int
        Number of simulated comparisons.
    """
    rng = np.random.default_rng(0)
    draw = CASES[case]
    mean = float(draw(rng, 10**6).mean()) * np.exp(SPREAD_OF_SPLITS**2 / 2)
    quantile = stdtrit(REPETITIONS - 1, ONE_SIDED)
    outcomes: dict[str, list[tuple[bool, bool]]] = {"printed": [], "t": [], "t of logarithms": []}
    for _ in range(experiments):
        split = np.exp(SPREAD_OF_SPLITS * rng.normal(size=REPETITIONS))
        first, second = split * draw(rng, REPETITIONS), ratio * split * draw(rng, REPETITIONS)
        truth = (ratio - 1) * mean
        printed = difference(second, first)
        # The printed ends are of the ratio, in units of the first mean.
        true_end = (ratio - 1) * first.mean()
        outcomes["printed"].append((printed.low > true_end, printed.high < true_end))
        logarithms = np.log(second / first)
        for name, values, true in (("t", second - first, truth), ("t of logarithms", logarithms, np.log(ratio))):
            half_width = quantile * values.std(ddof=1) / np.sqrt(REPETITIONS)
            outcomes[name].append((values.mean() - half_width > true, values.mean() + half_width < true))
    rates = {name: np.mean(hits, axis=0) for name, hits in outcomes.items()}
    return {name: (float(low), float(high)) for name, (low, high) in rates.items()}


def main() -> None:
    """Print the table."""
    rows = [(f"{case}, ratio {ratio:g}", misses(case, ratio)) for case in CASES for ratio in (1.0, 1.5)]
    print(f"{'errors':<27}" + "".join(f"{name:>18}" for name in rows[0][1]))
    for head, rates in rows:
        print(f"{head:<27}" + "".join(f"{100 * low:>10.1f} {100 * high:>7.1f}" for low, high in rates.values()))


if __name__ == "__main__":
    main()
