"""Compare what ``budgetreg advise`` recommends with a brute-force sweep on other splits, for the same total.

For each case, ``advise`` is asked with its defaults: ten random splits of seed 0 (other data, for distributions). The
sweep then runs the learners that it considers for k from `tried`, on ten splits of seed 1. The choice is a learner and
a k that the total pays for, tuning included. Its error in the sweep, where nothing was chosen by it, is compared with
that of the best choice there. The latter is too low, because it is the least of many: so gaps are too large, rather
than too small.

The advice is right if the gap is at most 0.02, or if it did not decide: it calls the sweep's best choice "not clearly
worse" than the recommended one.

    .venv/bin/python scripts/advice_against_sweep.py               # half an hour on a busy machine; resumes
    .venv/bin/python scripts/advice_against_sweep.py --case wine   # one case; its row replaces the one there is

Runs are kept in runs/advice_against_sweep. Writes results/advice_against_sweep.csv:

- table, total: the case, and the attributes that each choice may see
- recommended, best: learner and k; "all" if it sees all attributes of each example
- recommended_error, best_error: mean test error in the sweep, divided by that of the predictor without attributes
- gap: their difference, with the 90 % interval gap_low to gap_high over splits (`budgetreg.analysis.intervals`)
- undecided: yes if the advice calls the best choice not clearly worse; "not tried" if it did not try this k
- verdict: holds if gap is at most 0.02 or undecided is yes, else fails
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from budgetreg.analysis.comparisons import Candidate, ranked
from budgetreg.cli.app import main as budgetreg
from budgetreg.common.files import write_atomically
from budgetreg.figures.specification import axes_of
from budgetreg.runs.series import read_series

ROOT = Path(__file__).resolve().parents[1]
NAME = "advice_against_sweep"
_DRAWN = ("dataset=gaussian", "dataset.d=10", "dataset.n=300", "dataset.center=revealed", "intercept=mean")
CASES: Mapping[str, tuple[int, int, tuple[str, ...]]] = {
    "diabetes": (10, 1500, ("dataset=diabetes",)),
    "wine": (13, 600, ("dataset=wine",)),
    "breast_cancer": (30, 2000, ("dataset=breast_cancer",)),
    "low_noise": (10, 400, (*_DRAWN, "dataset.noise=0.02")),
    "correlated": (10, 400, (*_DRAWN, "dataset.rho=0.9")),
}
"""By name: number of attributes, total, and the words for ``advise``."""

CLOSE = 0.02
"""Largest gap between errors of a right advice."""

ALL_TRIED = 12
"""Up to as many attributes, each number is tried."""


def tried(d: int) -> list[int]:
    """Return the k of the sweep: 1 to d; if these are more than `ALL_TRIED`, powers of 2, numbers halfway, and d."""
    if d <= ALL_TRIED:
        return list(range(1, d + 1))
    powers = [2**i for i in range(d.bit_length())]
    return sorted({k for power in powers for k in (power, 3 * power // 2) if k < d} | {d})


def verdict(advice: Sequence[Candidate], sweep: Sequence[Candidate]) -> dict[str, str]:
    """Return the columns of the table, from `recommended` on.

    Parameters
    ----------
    advice, sweep : sequence of Candidate
        The best first; the sweep has the choice that the advice recommends.
    """
    choices = {_choice(candidate): candidate for candidate in sweep}
    best, recommended = sweep[0], choices[_choice(advice[0])]
    gap = recommended.behind
    of_best = [candidate for candidate in advice if _choice(candidate) == _choice(best)]
    undecided = "not tried" if not of_best else "no" if of_best[0].is_worse or of_best[0] is advice[0] else "yes"
    return {
        "recommended": _choice(advice[0]),
        "recommended_error": f"{recommended.error.value:.4f}",
        "best": _choice(best),
        "best_error": f"{best.error.value:.4f}",
        "gap": f"{gap.value:.4f}",
        "gap_low": f"{gap.low:.4f}",
        "gap_high": f"{gap.high:.4f}",
        "undecided": undecided,
        "verdict": "holds" if gap.value <= CLOSE or undecided == "yes" else "fails",
    }


def _choice(candidate: Candidate) -> str:
    series = candidate.series
    return f"{series.algo} k={'all' if series.of_all_attributes else series.k}"


def _candidates(words: Sequence[str], total: int, out: Path) -> list[Candidate]:
    """Run ``advise`` as far as runs are missing, and return what it compares, the best first.

    Raises
    ------
    SystemExit
        If a repetition failed.
    """
    code = budgetreg(["advise", *words, f"total={total}", f"out={out}"])
    if code:
        raise SystemExit(code)
    series = read_series([out])
    return ranked(series, axes_of(series)[1].column, total)


def compared(case: str, d: int, total: int, words: Sequence[str], runs: Path) -> dict[str, str]:
    """Return the row of a case."""
    budgets = f"k={','.join(map(str, tried(d)))},all"
    advice = _candidates([*words, "seed=0"], total, runs / case / "advice")
    sweep = _candidates([*words, "seed=1", budgets], total, runs / case / "sweep")
    return {"table": case, "total": str(total), **verdict(advice, sweep)}


def main() -> None:
    """Compare all cases, or one, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--case", choices=CASES, help="this case alone; other rows of the table stay")
    arguments = parser.parse_args()
    target = ROOT / "results" / f"{NAME}.csv"
    before = pd.read_csv(target, dtype=str).to_dict("records") if target.exists() else []
    rows: dict[str, Any] = {row["table"]: row for row in before}
    for case, (d, total, words) in CASES.items():
        if arguments.case in (None, case):
            rows[case] = compared(case, d, total, words, ROOT / "runs" / NAME)
            table = pd.DataFrame([rows[name] for name in CASES if name in rows])
            write_atomically(target, table.to_csv(index=False).encode())
            print(", ".join(f"{key} {value}" for key, value in rows[case].items()))


if __name__ == "__main__":
    main()
