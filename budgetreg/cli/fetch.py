"""``budgetreg fetch``: obtain MNIST's original files, check them and prepare the arrays that runs map."""

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budgetreg.cli.common import Parser
from budgetreg.data import mnist
from budgetreg.errors import ConfigError, DataError, nearest
from budgetreg.execution.scratch import remove_abandoned, scratch_folder

_DIGITS: Mapping[str, tuple[int, int] | None] = {"mnist_3v5": (3, 5), "mnist": None}
_ROOT_KEY = "dataset.root"
_SCRATCH = ".fetch-"  # prefix of the folders of unfinished downloads
_DESCRIPTION = "Obtain MNIST's original files, check them and prepare the arrays that runs map into memory."


def main(argv: list[str]) -> int:
    """Run ``budgetreg fetch NAME [dataset.root=DIR]``.

    Parameters
    ----------
    argv : list of str
        What follows ``fetch`` on the command line.

    Returns
    -------
    int
        0.

    Raises
    ------
    ConfigError
        If the name or an option is unknown.
    DataError
        If the files cannot be obtained, or are not the original ones.
    """
    parser = Parser("fetch", _DESCRIPTION)
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(_DIGITS)}")
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar=f"{_ROOT_KEY}=DIR", help="folder of MNIST/raw (default: data)"
    )
    arguments = parser.parse_args(argv)
    if arguments.name not in _DIGITS:
        hint = nearest(arguments.name, _DIGITS)
        raise ConfigError(f"nothing to fetch for {arguments.name!r}{hint}; possible: {', '.join(_DIGITS)}")
    print(fetch(arguments.name, _root(arguments.overrides)))
    return 0


def fetch(name: str, root: str, checksums: Mapping[str, str] = mnist.CHECKSUMS) -> str:
    """Prepare a data set below a folder; only missing or wrong files are downloaded.

    Returns
    -------
    str
        One line that says where the files are.

    Raises
    ------
    DataError
        If torchvision is needed but not installed, the download fails, or a folder cannot be written.
    """
    remove_abandoned(_SCRATCH, mnist.raw_folder(root))
    wrong = mnist.faults(root, checksums)
    if wrong:
        _download(root, wrong, checksums)
    folder = mnist.prepare(root, checksums)
    n, d = mnist.Mnist(root, _DIGITS[name]).load(checksums).X.shape
    return f"{name}: {n} images of {d} pixels; original files in {mnist.raw_folder(root)}, arrays in {folder}"


def _root(overrides: list[str]) -> str:
    root = "data"
    for override in overrides:
        key, equals, value = override.partition("=")
        if key != _ROOT_KEY or not value:
            hint = nearest(key, [_ROOT_KEY]) if equals else ""
            raise ConfigError(f"unknown option {override!r}{hint}; possible: {_ROOT_KEY}=DIR")
        root = value
    return root


def _download(root: str, wrong: Mapping[str, str], checksums: Mapping[str, str]) -> None:
    """Replace the wrong files; a download that fails changes nothing."""
    datasets = _torchvision_datasets()
    raw = mnist.raw_folder(root)
    try:
        raw.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that moving the files into place is a rename on one file system.
        with scratch_folder(_SCRATCH, raw) as scratch:
            _call_torchvision(datasets, scratch)
            still_wrong = mnist.faults(scratch, checksums)
            if still_wrong:
                problems = "; ".join(f"{file}: {problem}" for file, problem in still_wrong.items())
                raise DataError(f"the download does not have the original files of MNIST ({problems}): try again")
            for file in wrong:
                os.replace(mnist.raw_folder(scratch) / file, raw / file)
    except OSError as error:
        raise DataError(
            f"cannot write {raw} ({error.strerror or error}): choose another folder with {_ROOT_KEY}=DIR"
        ) from error


def _torchvision_datasets() -> Any:
    try:
        from torchvision import datasets  # here, as torchvision is an extra and slow to load
    except ImportError as error:
        raise DataError(
            "downloading MNIST needs torchvision: pip install '.[mnist]' (in a clone: make mnist)"
        ) from error
    return datasets


def _call_torchvision(datasets: Any, root: str | Path) -> None:
    quiet = None if sys.stderr.isatty() else io.StringIO()
    try:
        # Progress goes to stderr, and only on a terminal.
        with contextlib.redirect_stdout(quiet or sys.stderr), contextlib.redirect_stderr(quiet or sys.stderr):
            datasets.MNIST(str(root), download=True)
    except Exception as error:  # a download can fail in any way
        raise DataError(
            f"the download of MNIST failed: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error
