"""Trials of `stress.py` with random command lines, which must give a clear line and an exit code."""

import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import stress_reading
from stress_trials import Trial, TrialResult, forked

_TINY = "repetitions=1 checkpoints=2 tuning=fixed backend=sequential"

CASES: dict[str, tuple[str, ...]] = {  # by command, lines that work; what takes long or reaches the net is left out
    "run": (
        f"run algo=naive k=4 {_TINY} tuning.B=2 out=o",
        f"run algo=aelr k=4 {_TINY} tuning.B=2 tuning.eta=0.01 algo.split=even algo.average=suffix",
        f"run algo=ridge dataset=file dataset.path=table.csv dataset.target=y k=2 {_TINY} tuning.B=1",
    ),
    "run --dry-run": (
        "run algo=aelr k=4 checkpoints=[0.1,0.5,1] axis=examples seed=3 n_jobs=1 --dry-run",
        "run -m algo=aer,aelr k=4,8 repetitions=2 --dry-run",
        "run algo=popca algo.n_components=2 dataset=coins k=2 --dry-run",
        "run algo=aerr dataset=power_law dataset.alpha=-2 dataset.d=20 k=4 algo.grid.B=[1,2] --dry-run",
        "run algo=aesvr dataset=sphere algo.residual=plug_in tuning=theory tuning.B=2 --dry-run",
        "run experiment=hazan_koren_2012/fig1 protocol=paper dataset=digits_3v5 --dry-run",
        "run algo=lasso k='range(2,5)' -m out=o --dry-run",
        "run --cfg job algo=aer",
        "run +hydra.job.name=x ~seed ++k=3 --dry-run",
    ),
    "plot": ("plot left", "plot left left --out figure"),
    "status": ("status left", "status . --why"),
    "verify": ("verify left --sample 1 --seed 2", "verify left --all n_jobs=1"),
    "list": ("list", "list algos", "list datasets", "list experiments"),
    "reproduce": ("reproduce nothing/at_all --quick n_jobs=1", "reproduce --help"),
    "check": ("check algo=nothing,naive", "check --help"),
    "fetch": ("fetch nothing dataset.root=data", "fetch --help"),
    "no command": ("--help", "--version", "nothing", "-sc bash run algo="),
}

_LONG = ("run", "reproduce", "check")  # which compute for minutes or hours without the words that these lines have

_VALUES = (
    *("", "0", "-1", "1e400", "nan", "-.inf", "null", "true", "''", "'", '"', "[", "[]", "[1,[2]]", "{a: 1}", "{", ","),
    *("a,b", "range(0)", "choice(1,x)", "glob(*)", "interval(0,1)", "${k}", "${", "${nothing}", "${oc.env:NOTHING}"),
    *(
        "?",
        "???",
        "~",
        "..",
        "/",
        "left",
        "nowhere/x",
        "table.csv",
        "/dev/null",
        "/proc/self/mem",
        "é",
        "\u202e",
        "1 2",
    ),
    *("=", "a=b", "0x10", "1_000", "08", "1.5", "9" * 30, "x" * 5000, "\\", "\t", "--help", "*", "%s", "{}", "@", "#"),
)
_KEYS = (
    *(
        "k",
        "seed",
        "algo",
        "algo.grid",
        "algo.grid.B",
        "algo.name",
        "dataset",
        "dataset.path",
        "dataset.center",
        "axis",
    ),
    *("tuning.at", "tuning.folds", "out", "protocol", "hydra.mode", "hydra/launcher", "hydra.job.num", "experiment"),
    *("backend.name", "omit", "learners", "figure", "+new", "~k", "++algo.x", "algo@other", "", ".", "k.x", "[0]"),
)
_CHARACTERS = "'\"{}[](),=:$*?~+-./\\ @#!;&|<>%é0\n"


def prepared(place: Path, count: int) -> dict[str, dict[str, Any]]:
    """Write a run and a table for the command lines; return what the trials of each command need.

    Raises
    ------
    RuntimeError
        If the run fails.
    """
    left = place / "whole"
    left.mkdir()
    rng = np.random.default_rng(0)
    np.savetxt(left / "table.csv", rng.normal(size=(40, 4)), delimiter=",", header="a,b,c,y", comments="")
    words = f"run algo=naive k=4 {_TINY} tuning.B=2 out=left"
    answer = forked(words.split(), left)
    if answer.code:
        raise RuntimeError(f"{words}: exit code {answer.code} undisturbed\n{answer.err}")
    changed = {name: {"whole": left, "turns": len(lines)} for name, lines in CASES.items()}
    return changed | {name: {} for name in stress_reading.LINES}


def tried(trial: Trial) -> TrialResult:
    """Change a valid line in a few places, and judge the answer."""
    if trial.case in stress_reading.LINES:
        return stress_reading.tried(trial)
    result, rng = TrialResult(trial), trial.rng
    folder = Path(tempfile.mkdtemp(dir=trial.place)) / "some" / "where"  # what is written to .. stays there as well
    shutil.copytree(trial.options["whole"], folder)
    lines = CASES[trial.case]
    words = shlex.split(lines[rng.integers(len(lines))])
    works = trial.case in _LONG
    for _ in range(rng.integers(1, 4)):
        words = _changed(words, rng, works)
    result.judge(shlex.join(words), forked([word.replace("\0", "") for word in words], folder), (0, 1, 2, 3))
    shutil.rmtree(folder.parent.parent)
    return result


def _changed(words: list[str], rng: np.random.Generator, works: bool) -> list[str]:
    """Change a word, or the order of words, so that no line takes long."""
    at = int(rng.integers(len(words))) if words else 0
    word, others = words[at] if words else "", words[at + 1 :]
    key, equals, value = word.partition("=")
    way = int(rng.integers(8))
    if way == 0 and not works:
        return [*words[:at], *others]
    if way == 1:
        return [*words[:at], word, word, *others]
    if way == 2:
        return [words[i] for i in rng.permutation(len(words))]
    if way in (3, 4) and equals:
        return [*words[:at], f"{key}={_VALUES[rng.integers(len(_VALUES))]}", *others]
    if way == 5:
        new = f"{_KEYS[rng.integers(len(_KEYS))]}={_VALUES[rng.integers(len(_VALUES))]}"
        return [*words[:at], word, new, *others]
    if way == 6 and equals:
        return [*words[:at], f"{_KEYS[rng.integers(len(_KEYS))]}={value}", *others]
    place = int(rng.integers(len(word) + 1))
    character = _CHARACTERS[rng.integers(len(_CHARACTERS))]
    if rng.random() < 0.5 and not works:
        return [*words[:at], word[:place] + word[place + 1 :], *others]
    return [*words[:at], word[:place] + character + word[place:], *others]
