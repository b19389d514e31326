"""Trials of `stress.py` with names of any text, which figures and reports must show without a warning."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stress_trials import Trial, TrialResult, forked

_PARTS: Mapping[str, tuple[str, ...]] = {
    "formulas": ("$", "$$", "\\$", "_", "^", "{", "}", "\\frac", "%", "\\", "$x_1$", "#", "&", "~"),
    "scripts": ("é", "ß", "a\u0301", "עברית", "عربى", "हिन्दी", "漢字", "한글", "😀", "👩\u200d🔬", "Ω", "\u00ad"),
    "controls": ("\x1b[2J", "\x07", "\t", "\n", "\r", "\u202e", "\u2028", "\ufeff", "\x7f", "\x85"),
    "bytes": ("\udce9", "\udcff\udcfe", "\udc80"),
    "long": ("x" * 90, "words " * 12, "$" * 80),
}
"""By case, what names are made of."""


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Return the cases."""
    return {case: {} for case in _PARTS}


def tried(trial: Trial) -> TrialResult:
    """Name a file, attributes, a unit and a study, and draw all that there is."""
    result, rng = TrialResult(trial), trial.rng
    folder = Path(tempfile.mkdtemp(dir=trial.place))
    file, text = (
        f"{_name(trial.case, rng)}.csv",
        "formulas" if trial.case == "bytes" else trial.case,
    )  # tables are UTF-8
    study = f"{_name(text, rng)}.db"
    unit, *columns = (f"{_name(text, rng)}{at}" for at in range(4))
    values = rng.normal(size=(20, 1)) + rng.normal(size=(20, 3))
    frame = pd.DataFrame(values, columns=columns)
    frame["y"] = values.sum(axis=1)
    frame.to_csv(folder / file, index=False)
    pd.DataFrame({"attribute": columns, "cost": 1.0}).to_csv(folder / "costs.csv", index=False)
    some = frame.mask(rng.random(frame.shape) < 0.3)
    some.insert(0, "id", range(20))
    some.to_csv(folder / "table.csv", index=False)
    run = [
        "run",
        "dataset=file",
        _quoted("dataset.path", file),
        "dataset.costs=costs.csv",
        _quoted("dataset.unit", unit),
    ]
    run += ["algo=aelr", "k=2", "repetitions=2", "checkpoints=2", "tuning=fixed", "tuning.B=1", "tuning.eta=0.1"]
    create = [
        "study",
        "create",
        study,
        "table=table.csv",
        "target=y",
        "id=id",
        "costs=costs.csv",
        f"unit={unit}",
        "algo=aeml",
    ]
    lines = [[*run, "out=o", "backend=sequential"], ["plot", "o"], ["report", "o"]]
    for words in [*lines, create, ["study", "show", study], ["report", study]]:
        answer = forked(words, folder)
        result.judge(repr(words), answer)
        refused = answer.code and trial.case != "controls"  # no table can have line breaks in its header
        if refused or "Warning" in answer.err:
            result.note("untold", f"{words}: exit code {answer.code}: {answer.err[-1000:]}")
            break
    return result


def _name(case: str, rng: np.random.Generator) -> str:
    parts = _PARTS[case]
    return "".join(["n", *(f"{parts[rng.integers(len(parts))]}{rng.integers(9)}" for _ in range(rng.integers(1, 4)))])[
        :240
    ]


def _quoted(key: str, value: str) -> str:
    """Return an override of Hydra whose value is any text."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}='{escaped}'"
