"""Trials of `stress.py` on what users give: damaged tables, and odd command lines."""

import os
import shlex
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stress_files import damage, write_table
from stress_trials import DATA, Kind, Trial, alike, limit_memory, undisturbed

# Tables that are damaged, and may lie about their size, in 1.5 GiB more memory: a result, or one line

_MEMORY = 3 << 29
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ENDINGS = (".csv", ".svm", ".parquet", ".npz")


def _write(path: Path, trial: Trial) -> None:
    """Write a table in the format that the ending of its name stands for."""
    frame = pd.DataFrame(trial.rng.normal(size=(40, 3)).round(3), columns=list("aby"))
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".parquet":
            frame.to_parquet(path)
        case ".svm":
            path.write_text("".join(f"{y} 1:{a} 2:{b}\n" for a, b, y in frame.itertuples(index=False)))
        case ".npz":
            with zipfile.ZipFile(path, "w", trial.pick(_METHODS)) as archive:
                for name, array in (("X", frame[["a", "b"]].to_numpy()), ("y", frame["y"].to_numpy())):
                    with archive.open(f"{name}.npy", "w") as file:
                        np.save(file, array)


def _read_table(trial: Trial) -> None:
    """Damage a table, and judge the answer of the command that reads it."""
    path = trial.folder / f"table{trial.case}"
    _write(path, trial)
    how = damage(path, trial.rng)
    answer = trial.run(f"{DATA['table']} dataset.path={path.name}", before=partial(limit_memory, _MEMORY))
    trial.expect(all(len(line) <= 500 for line in answer.err.splitlines()), f"{how}: {answer.err[-2000:]}", "untold")
    trial.without_leftovers()


# Command lines that are changed at random: the answer is a result, or one line and an exit code


def _prepared_lines(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole, commands = place / "whole", DATA["line"]["commands"]
    write_table(whole)
    undisturbed([*commands["run"][0].split(), "out=left"], whole)
    return {name: {"whole": whole, "turns": len(lines)} for name, lines in commands.items()}


def _mistype(trial: Trial) -> None:
    """Change a valid line in a few places, and judge the answer."""
    os.mkfifo(trial.folder / "pipe")
    (trial.folder / "circle").symlink_to("circle")
    words = shlex.split(trial.pick(DATA["line"]["commands"][trial.case]))
    for _ in range(trial.rng.integers(1, 4)):
        words = changed(words, trial)
    trial.run([word.replace("\0", "") for word in words], (0, 1, 2, 3))


def changed(words: list[str], trial: Trial) -> list[str]:
    """Change a word, or the order of words, so that no line takes long."""
    data, rng = DATA["line"], trial.rng
    values, keeps_all = [*data["values"], "x" * 5000], trial.case in data["long"]
    at = int(rng.integers(len(words))) if words else 0
    word, others = words[at] if words else "", words[at + 1 :]
    key, equals, value = word.partition("=")
    place = int(rng.integers(len(word) + 1))
    new = [word[:place] + trial.pick(data["characters"]) + word[place:]]
    match int(rng.integers(8)):
        case 0 if not keeps_all:
            new = []
        case 1:
            new = [word, word]
        case 2:
            return [words[i] for i in rng.permutation(len(words))]
        case 3 | 4 if equals:
            new = [f"{key}={trial.pick(values)}"]
        case 5:
            new = [word, f"{trial.pick(data['keys'])}={trial.pick(values)}"]
        case 6 if equals:
            new = [f"{trial.pick(data['keys'])}={value}"]
        case _ if not keeps_all and trial.pick((True, False)):
            new = [word[:place] + word[place + 1 :]]
    return [*words[:at], *new, *others]


KINDS = {
    "table": Kind(80, lambda place, count: alike(_ENDINGS), _read_table),
    "line": Kind(500, _prepared_lines, _mistype),
}
