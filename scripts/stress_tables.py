"""Trials of `stress.py` on what users give: damaged and endless tables, and odd command lines."""

import bz2
import gzip
import lzma
import os
import shlex
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stress_files import damage
from stress_trials import DATA, Kind, Trial, alike, limit_memory, undisturbed

# Tables and lists that are damaged or never end, in 1.5 GiB more memory: a result, or one line

_MEMORY = 3 << 29
_PACK: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
_PIECE, _PIECES = 1 << 24, 256  # bombs of 4 GiB
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def _written(trial: Trial, ending: str) -> Path:
    """Write a table with the attributes a and b."""
    frame, path = pd.DataFrame(trial.rng.normal(size=(40, 3)).round(3), columns=list("aby")), trial.folder / "table"
    path = path.with_suffix(ending)
    if ending == ".csv":
        frame.to_csv(path, index=False)
    elif ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".svm":
        path.write_text("".join(f"{y} 1:{a} 2:{b}\n" for a, b, y in frame.itertuples(index=False)))
    else:
        with zipfile.ZipFile(path, "w", trial.pick(_METHODS)) as archive:
            for name, array in (("X", frame[["a", "b"]].to_numpy()), ("y", frame["y"].to_numpy())):
                with archive.open(f"{name}.npy", "w") as file:
                    np.save(file, array)
    return path


def _words(trial: Trial, name: str) -> str:
    """Return the words that name a table, or a list and a table that is whole."""
    if name.startswith("list"):
        return f"dataset.path={_written(trial, '.csv').name} dataset.costs={name}"
    return f"dataset.path={name}"


def _damaged(ending: str, trial: Trial) -> str:
    path = _written(trial, ending)
    damage(path, trial.rng)
    return _words(trial, path.name)


def _bomb(trial: Trial) -> str:
    """Write 4 GiB of equal lines, compressed, as a table or as a list."""
    line, ending = trial.pick(DATA["table"]["bombs"]), trial.pick(list(_PACK))
    starts = {"bomb.csv": b"a,b,y\n1,2,3\n2,1,4\n", "bomb.svm": b"1 1:2 2:3\n", "list.csv": b"attribute,cost\na,1\n"}
    name, pack = trial.pick(list(starts)), _PACK[ending]
    piece = pack(line.encode() * (_PIECE // len(line)))
    with (trial.folder / f"{name}{ending}").open("wb") as file:
        file.write(pack(trial.pick((starts[name], b""))))
        for _ in range(_PIECES):
            file.write(piece)
    return _words(trial, f"{name}{ending}")


def _long_line(trial: Trial) -> str:
    """Write a line without an end, or one that a quote makes as long as the file."""
    name = trial.pick(("long.csv", "long.svm", "list.long", "quote.csv"))
    with (trial.folder / name).open("wb") as file:
        file.write(b"a,b,y\n1,2,3\n" if name.endswith(".csv") else b"")
        if name == "quote.csv":
            file.write(b'1,"2,3\n')
            for _ in range(200):
                file.write(b"1,2,3\n" * (1 << 20))
        else:
            os.truncate(file.fileno(), 1_200_000_000)  # with zeros, which take no space on the disk
    return _words(trial, name)


_TABLES: Mapping[str, Callable[[Trial], str]] = {
    **{f"damaged{ending}": partial(_damaged, ending) for ending in (".csv", ".svm", ".parquet", ".npz")},
    "bomb": _bomb,
    "long line": _long_line,
}
"""By case, what writes a table or a list, and returns the words that name it."""


def _read_table(trial: Trial) -> None:
    """Write a bad table or list, and judge the answer of the command that reads it."""
    words = _TABLES[trial.case](trial)
    codes = (0, 2, 3) if trial.case.startswith("damaged") else (3,)
    answer = trial.run(f"{DATA['table']['run']} {words}", codes, before=partial(limit_memory, _MEMORY))
    seen = f"{words}: exit code {answer.code}\n{answer.err[-2000:]}"
    if "not enough memory" in answer.err:
        trial.note("hangs", seen)
    if any(len(line) > 500 for line in answer.err.splitlines()):
        trial.note("untold", seen)
    trial.without_leftovers()


# Command lines that are changed at random: the answer is a result, or one line and an exit code


def _prepared_lines(place: Path, count: int) -> dict[str, dict[str, Any]]:
    whole, commands = place / "whole", DATA["line"]["commands"]
    whole.mkdir()
    rng = np.random.default_rng(0)
    np.savetxt(whole / "table.csv", rng.normal(size=(40, 4)), delimiter=",", header="a,b,c,y", comments="")
    (whole / "costs.csv").write_text("attribute,cost\na,1\nb,2\nc,1\n")
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
    "table": Kind(90, lambda place, count: alike(_TABLES), _read_table),
    "line": Kind(500, _prepared_lines, _mistype),
}
