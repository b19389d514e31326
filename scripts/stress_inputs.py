"""Trials of `stress.py` with what users write and give to a study: names, files that are there, and result lines.

A file that is there stays as it is. Any word is a name, whatever its role, and is the same name from the table to the
exported one. A line with another order or cost than that of the study is refused, and nothing of its file is stored.
"""

import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stress_trials import Answer, Trial, TrialResult, forked

_WORDS = ("Na", "NA", "None", "none", "null", "NULL", "nan", "NaN", "N/A", "#N/A", "<NA>", "-nan")
_COLUMNS = (
    *(
        "prediction",
        "std",
        "label",
        "attribute",
        "cost",
        "std_before",
        "std_after",
        "order",
        "example",
        "value",
        "target",
    ),
)
_ROLES = ("id", "target", "attribute", "example", "group", "label")
_THERE = {
    "somebody's file": "theirs",
    "empty file": "empty",
    "table": "table.csv",
    "price list": "prices.csv",
    "order": "order.csv",
    "completed order": "filled.csv",
    "study": "s.db",
    "copy of the study": "copy.db",
    "log of the study": "s.db-wal",
    "folder": "folder",
    "model": "theirs.npz",
}
_WAYS: Mapping[str, Callable[[Path, Path], object]] = {
    "itself": lambda source, out: None,
    "copy": lambda source, out: shutil.copy(source, out),
    "link": lambda source, out: out.symlink_to(source.name),
    "second name": lambda source, out: os.link(source, out),
}
_WRITES = (
    *("study ask s.db spend=3 out={}", "study ask s.db spend=6 order=2 out={}", "study predict s.db new.csv out={}"),
    *("study next s.db new.csv out={}", "study export s.db out={}", "predict model.npz whole.csv out={}"),
    "report s.db --out {}",
)
_N = 12


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Return the cases; each trial makes its own study."""
    return {case: {} for case in CASES}


def tried(trial: Trial) -> TrialResult:
    """Play one case."""
    result = TrialResult(trial)
    folder = Path(tempfile.mkdtemp(dir=trial.place))
    CASES[trial.case](result, folder, trial.rng)
    shutil.rmtree(folder)
    return result


class _Names:
    """The names in a study, some of which a trial replaces by a word."""

    def __init__(self, **words: str) -> None:
        names = {"id": "patient", "target": "outcome", "attribute": "a", "example": "p0", "group": "g", "label": "sick"}
        self.__dict__.update({**names, **words})


def _study(folder: Path, names: Any, rng: np.random.Generator) -> None:
    """Write a table, a price list with a group, and new examples, all with the names."""
    labels = [names.label if at % 2 else "well" for at in range(_N)]
    examples = [names.example, *(f"p{at}" for at in range(1, _N))]
    rows = [f"{name},{rng.normal():.3f},,,{label}" for name, label in zip(examples, labels, strict=True)]
    header = f"{names.id},b,{names.attribute},c,{names.target}"
    (folder / "table.csv").write_text("\n".join([header, *rows]) + "\n")
    group = names.group
    (folder / "prices.csv").write_text(f"attribute,cost,group\nb,1,\n{names.attribute},2,{group}\nc,2,{group}\n")
    (folder / "new.csv").write_text(f"{names.id},b,c\n{names.example},1,\nn2,2,1\n")


def _said(result: TrialResult, folder: Path, words: str, codes: tuple[int, ...] = (0,)) -> Answer:
    answer = forked(words.split(), folder)
    result.judge(words, answer, codes)
    return answer


def _filled(folder: Path, value: Callable[[int], object]) -> list[dict[str, str]]:
    """Write values into order.csv, and return its lines as they were."""
    with (folder / "order.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    _written(folder / "filled.csv", [{**line, "value": str(value(at))} for at, line in enumerate(lines)])
    return lines


def _written(path: Path, lines: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def _create(names: Any) -> str:
    return f"study create s.db table=table.csv target={names.target} id={names.id} costs=prices.csv"


def _play(result: TrialResult, folder: Path, names: Any, rng: np.random.Generator) -> None:
    """Play create, ask, tell, show, predict, next and export; every name must come out as it went in."""
    _study(folder, names, rng)
    if _said(result, folder, _create(names), (0, 3)).code:
        if names.label == "sick":
            result.note("wrong", f"{_create(names)} with {vars(names)}: refused")
        return  # a word for a missing value beside one label
    _said(result, folder, "study ask s.db spend=1000 out=order.csv")
    lines = _filled(folder, lambda at: at + 0.5)
    told = _said(result, folder, "study tell s.db filled.csv")
    if f"{2 * _N} values recorded" not in told.out or {line["attribute"] for line in lines} != {names.attribute, "c"}:
        result.note("wrong", f"{vars(names)}: {told.out}")
    _said(result, folder, "study show s.db")
    predicted = _said(result, folder, "study predict s.db new.csv").out.splitlines()
    useful = _said(result, folder, "study next s.db new.csv").out.splitlines()
    header = predicted[0].split(",")
    if [line.split(",")[0] for line in predicted[1:]] != [names.example, "n2"] or len(set(header)) != len(header):
        result.note("wrong", f"{vars(names)}: predict: {predicted}")
    if {line.split(",")[0] for line in useful[1:]} - {names.example, "n2"} or len(set(useful[0].split(","))) != 5:
        result.note("wrong", f"{vars(names)}: next: {useful}")
    _said(result, folder, "study export s.db out=known.csv")
    with (folder / "known.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    if header != [names.id, "b", names.attribute, "c", names.target] or rows[0][0] != names.example or "" in rows[0]:
        result.note("wrong", f"{vars(names)}: export: {header} {rows[0]}")


def _words(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Call a part of a study as a missing value."""
    role = _ROLES[result.trial.number // len(CASES) % len(_ROLES)]
    _play(result, folder, _Names(**{role: str(rng.choice(_WORDS))}), rng)


def _columns(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Call the ids, the target and an attribute as columns that commands write."""
    words = map(str, rng.choice(_COLUMNS, 3, replace=False))
    _play(result, folder, _Names(**dict(zip(("id", "target", "attribute"), words, strict=True))), rng)


def _there(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Name a file that is there, or its second name, as the output of a command."""
    names = _Names()
    _study(folder, names, rng)
    _said(result, folder, _create(names))
    _said(result, folder, "study ask s.db spend=6 order=1 out=order.csv")
    _filled(folder, lambda at: at)
    (folder / "whole.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "theirs").write_bytes(b"theirs")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    shutil.copy(folder / "s.db", folder / "copy.db")
    _said(result, folder, "study export s.db out=model.npz")
    (folder / "theirs.npz").write_bytes((folder / "model.npz").read_bytes() + b"theirs")
    there = str(rng.choice(list(_THERE)))
    source = folder / _THERE[there]
    way, words = str(rng.choice(list(_WAYS))), str(rng.choice(_WRITES))
    out = folder / ("out.npz" if "export" in words and rng.random() < 0.5 else "out.csv")
    if way == "itself" or there in ("folder", "log of the study"):
        out = source
    else:
        _WAYS[way](source, out)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    words = words.format(out.name)
    _said(result, folder, words, (2,))
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    changed = [name for name in before if after.get(name) != before[name]] + sorted(set(after) - set(before))
    if changed:
        result.note("wrong", f"{words} with {there} ({way}): changed: {changed}")


def _lines(result: TrialResult, folder: Path, rng: np.random.Generator) -> None:
    """Change the order or the cost in one line of a completed order."""
    names = _Names()
    _study(folder, names, rng)
    _said(result, folder, _create(names))
    _said(result, folder, "study ask s.db spend=9 out=first.csv")
    _said(result, folder, "study ask s.db spend=9 out=order.csv")
    lines = [{**line, "value": "1.5"} for line in _filled(folder, lambda at: at)]
    at, column = int(rng.integers(len(lines))), str(rng.choice(["order", "cost"]))
    old = lines[at][column]
    wrong = {"order": ("0", "-1", "1", "3", "abc", "1.5", "2a"), "cost": ("7", "-2", "0.5", "2,0", "2 EUR", "1e9")}[
        column
    ]
    lines[at][column] = str(rng.choice(wrong))
    _written(folder / "wrong.csv", lines)
    answer = _said(result, folder, "study tell s.db wrong.csv", (3,))
    if f"line {at + 2}, column '{column}'" not in answer.err:
        result.note("untold", f"{column} {old} as {lines[at][column]}: {answer.err}")
    lines[at][column] = old
    _written(folder / "right.csv", lines)
    if f"{len(lines)} values recorded\n" not in _said(result, folder, "study tell s.db right.csv").out:
        result.note("wrong", "part of a refused file was stored")


CASES: Mapping[str, Callable[[TrialResult, Path, np.random.Generator], None]] = {
    "study: out= on other files": _there,
    "study: names like missing values": _words,
    "study: names of output columns": _columns,
    "study: wrong cost or order": _lines,
}
