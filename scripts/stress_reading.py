"""Trials of `stress.py` with tables and words that can be read in two ways: commands take the right one, or ask."""

import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from stress_trials import Answer, Trial, TrialResult, forked

_LEARN = ["algo=naive", "k=2", "total=60", "tuning=fixed", "tuning.B=9", "out=o"]
_LOOK_LIKE_NUMBERS = (
    "1_1",
    "1e3",
    "true",
    "null",
    "0x1",
    "007",
    "1.0",
    "+1",
    "2024_01_15",
    "nan",
    "-.5",
    "1_000",
    "No",
)
_LETTERS = "'\"[](){} $=#\\ab1_é~!`:;%&|<>*?.-+/"


class _Commands:
    """The commands of a trial, whose answers are judged."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        self.result, self.folder = TrialResult(trial), folder

    def __call__(self, *words: str, codes: tuple[int, ...] = (0,)) -> Answer:
        answer = forked(words, self.folder)
        self.result.judge(shlex.join(words), answer, codes)
        return answer

    def fit(self, path: str, *words: str, codes: tuple[int, ...] = (0,)) -> Answer:
        shutil.rmtree(self.folder / "o", ignore_errors=True)
        return self("fit", "dataset=file", f"dataset.path={path}", *_LEARN, *words, codes=codes)

    def model(self) -> dict[str, np.ndarray]:
        with np.load(self.folder / "o" / "model.npz") as file:
            return dict(file)

    def expect(self, what: str, right: bool) -> None:
        if not right and not self.result.faults:
            self.result.note("wrong", what)


def _sparse(path: Path, X: np.ndarray, y: np.ndarray, first: int) -> None:
    lines = ([f"{at + first}:{x[at]!r}" for at in np.flatnonzero(x).tolist()] for x in X)
    path.write_text("".join(f"{t!r} {' '.join(line)}\n" for t, line in zip(y.tolist(), lines, strict=True)))


def _widths(run: _Commands, rng: np.random.Generator) -> None:
    d, first = int(rng.integers(3, 9)), int(rng.integers(2))
    X, Z = (rng.normal(size=(n, d)).round(3) for n in (40, 6))
    X = X.astype(object)
    _sparse(run.folder / "train.svm", X, np.asarray(X.sum(axis=1), dtype=float), first)
    drop = sorted(rng.choice(d, int(rng.integers(0, d - 1)), replace=False).tolist())
    run.fit("train.svm", f"dataset.drop=[{','.join(str(at + first) for at in drop)}]")
    Z[:, rng.random(d) < 0.4] = 0
    _sparse(run.folder / "new.svm", Z.astype(object), np.zeros(6), first)
    run("predict", "o", "new.svm", "out=p.csv")
    if not run.result.faults:
        model, kept = run.model(), np.delete(Z, drop, axis=1)
        said = pd.read_csv(run.folder / "p.csv")["prediction"].to_numpy()
        run.expect(
            f"base {first}, {d} columns without {drop}",
            np.allclose(said, model["b"] + (kept - model["c"]) @ model["w"][0]),
        )
    Z[:] = 1
    _sparse(run.folder / "other.svm", Z.astype(object), np.zeros(6), 1 - first)
    run("predict", "o", "other.svm", codes=(3,))


def _indexes(run: _Commands, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(40, 4)).round(3), columns=["a", "b", "c", "y"])
    frame.to_csv(run.folder / "t.csv", index=False)
    ids = rng.permutation(1000)[:40]
    kind = int(rng.integers(4))
    index = [pd.Index(ids, name="id"), pd.Index(ids), pd.MultiIndex.from_arrays([ids % 3, ids], names=["site", None])]
    (frame if kind == 3 else frame.set_index(index[kind])).to_parquet(run.folder / "t.parquet", row_group_size=9)
    run.fit("t.csv")
    expected = {} if run.result.faults else run.model()
    run.fit("t.parquet")
    if not run.result.faults:
        model = run.model()
        run.expect(f"index {kind}", all(np.array_equal(model[name], expected[name]) for name in expected))


def _first_rows(run: _Commands, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, 5)).round(2).astype(str).tolist()
    labels = rng.choice(["red", "blue"], 30).tolist()
    table = [[*row, label] for row, label in zip(rows, labels, strict=True)]
    start, step = int(rng.integers(1, 2000)), int(rng.integers(1, 5))
    header = [*(str(start + step * at) for at in range(5)), "colour"]
    headless = rng.random() < 0.5
    if headless and rng.random() < 0.5:
        table[0][int(rng.integers(5))] = str(rng.choice(["NA", "?", "1,5", "n/a", "-"]))
    lines = [",".join(f'"{field}"' if "," in field else field for field in row) for row in table]
    (run.folder / "t.csv").write_text("\n".join([*([] if headless else [",".join(header)]), *lines, ""]))
    run.fit("t.csv", codes=(3,) if headless else (0,))
    if not headless and not run.result.faults:
        run.expect("names that are numbers", run.model()["names"].tolist() == header[:5])


def _thousands(run: _Commands, rng: np.random.Generator) -> None:
    number = int(10 ** rng.uniform(3, 9))
    text = f"{number:,}" + (f".{rng.integers(10)}" if rng.random() < 0.5 else "")
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(2).astype(str), columns=["a", "b", "c", "y"])
    frame.iloc[int(rng.integers(30)), int(rng.integers(4))] = text
    frame.to_csv(run.folder / "t.csv", index=False)
    answer = run.fit("t.csv", codes=(3,))
    run.expect(
        f"{text}: {answer.err}", f"write {text.replace(',', '')}" in answer.err and "decimal comma" not in answer.err
    )


def _typed(run: _Commands, rng: np.random.Generator) -> None:
    names = rng.permutation(_LOOK_LIKE_NUMBERS).tolist()
    columns = [*names[:6], *(f"c{at}" for at in range(6)), "y"]
    pd.DataFrame(rng.normal(size=(30, 13)).round(2), columns=columns).to_csv(run.folder / "t.csv", index=False)
    drop = names[: int(rng.integers(1, 4))]
    run.fit("t.csv", f"dataset.drop=[{','.join(drop)}]", "dataset.target=y")
    if not run.result.faults:
        run.expect(f"drop {drop}", run.model()["names"].tolist() == [name for name in columns[:-1] if name not in drop])


def _hints(run: _Commands, rng: np.random.Generator) -> None:
    name = "x" + "".join(rng.choice(list(_LETTERS), int(rng.integers(1, 8)))).rstrip() + "z"
    frame = pd.DataFrame(rng.normal(size=(30, 4)).round(2), columns=["a", "b", "c", "y"])
    frame.insert(0, name, range(30))
    frame.to_csv(run.folder / "t.csv", index=False)
    seen = run.fit("t.csv", codes=(0,)).err
    typed = run.fit("t.csv", f"dataset.drop=[{name}]", codes=(0, 2, 3)).err
    for said, pattern in ((seen, r"of the rows: (.*) leaves it out"), (typed, r"special characters in quotes: (.*)")):
        for hint in re.findall(pattern, said):
            run.fit("t.csv", *shlex.split(hint))
            if not run.result.faults:
                run.expect(f"{name!r}: {hint}", run.model()["names"].tolist() == ["a", "b", "c"])


TABLES: Mapping[str, Callable[[_Commands, np.random.Generator], None]] = {
    "sparse widths": _widths,
    "parquet: indexes": _indexes,
    "first rows": _first_rows,
    "thousands": _thousands,
}
LINES: Mapping[str, Callable[[_Commands, np.random.Generator], None]] = {
    "names like numbers": _typed,
    "pasted hints": _hints,
}


def tried(trial: Trial) -> TrialResult:
    """Write a table, and judge what commands make of it."""
    folder = Path(tempfile.mkdtemp(dir=trial.place))
    run = _Commands(trial, folder)
    {**TABLES, **LINES}[trial.case](run, trial.rng)
    shutil.rmtree(folder)
    return run.result
