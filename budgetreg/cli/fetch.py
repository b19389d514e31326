"""``budgetreg fetch``: obtain MNIST's original files, check them and prepare the arrays that runs map."""

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from budgetreg.cli.arguments import FETCHED, key_values
from budgetreg.data import mnist
from budgetreg.errors import ConfigError, DataError, nearest
from budgetreg.files import replaceable
from budgetreg.notices import AsIs
from budgetreg.runs.scratch import remove_abandoned, scratch_folder

_ROOT_KEY = "dataset.root"
_SCRATCH = ".fetch-"  # prefix of the folders of unfinished downloads


def main(arguments: Namespace) -> int:
    """Run ``budgetreg fetch NAME [dataset.root=DIR]``.

    Parameters
    ----------
    arguments : Namespace
        Its options, see `budgetreg.cli.arguments`.

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
    if arguments.name not in FETCHED:
        hint = nearest(arguments.name, FETCHED)
        raise ConfigError(f"nothing to fetch for {arguments.name!r}{hint}; possible: {', '.join(FETCHED)}")
    given = key_values(
        arguments.words, [_ROOT_KEY], lambda word, hint: f"unknown option {word!r}{hint}; possible: {_ROOT_KEY}=DIR"
    )
    print(fetch(arguments.name, given.get(_ROOT_KEY, "data")))
    return 0


def fetch(name: str, root: str, checksums: Mapping[str, str] = mnist.CHECKSUMS) -> str:
    """Prepare a data set below a folder; only missing or wrong files are downloaded.

    Returns
    -------
    str
        One line with the places of the files.

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
    n, d = mnist.Mnist(root, FETCHED[name]).load(checksums).X.shape
    return f"{name}: {n} images of {d} pixels; original files in {mnist.raw_folder(root)}, arrays in {folder}"


def _download(root: str, wrong: Mapping[str, str], checksums: Mapping[str, str]) -> None:
    """Replace the wrong files; a download that fails changes nothing."""
    try:
        from torchvision import datasets  # here, as torchvision is an extra and slow to load
    except ImportError as error:
        raise DataError(
            "downloading MNIST needs torchvision: pip install '.[mnist]' (in a clone: make mnist)"
        ) from error
    raw = mnist.raw_folder(root)
    try:
        raw.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that moving the files into place is a rename on one file system.
        with scratch_folder(_SCRATCH, raw) as scratch:
            try:
                # Progress goes to stderr, and only on a terminal.
                progress: Any = AsIs(sys.stderr) if sys.stderr.isatty() else io.StringIO()
                with contextlib.redirect_stdout(progress), contextlib.redirect_stderr(progress):
                    datasets.MNIST(str(scratch), download=True)
            except Exception as error:  # a download can fail in any way
                reason = " ".join(str(error).split()) or type(error).__name__
                raise DataError(f"the download of MNIST failed: {reason}") from error
            still_wrong = mnist.faults(scratch, checksums)
            if still_wrong:
                problems = "; ".join(f"{file}: {problem}" for file, problem in still_wrong.items())
                raise DataError(f"the download does not have the original files of MNIST ({problems}): try again")
            for file in wrong:
                os.replace(mnist.raw_folder(scratch) / file, replaceable(raw / file))
    except OSError as error:
        raise DataError(
            f"cannot write {raw} ({error.strerror or error}): choose another folder with {_ROOT_KEY}=DIR"
        ) from error
