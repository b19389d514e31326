"""MNIST from raw files, tested on a miniature."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budgetreg.common.errors import ConfigError, DataError
from budgetreg.data import mnist
from tests.refusals import refusal

N_TRAIN, N_TEST, SIDE = 60, 20, 4
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (N_TRAIN + N_TEST, SIDE, SIDE), dtype=np.uint8)
LABELS = RNG.integers(0, 10, N_TRAIN + N_TEST, dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


FILES = {
    "train-images-idx3-ubyte": idx(IMAGES[:N_TRAIN]),
    "train-labels-idx1-ubyte": idx(LABELS[:N_TRAIN]),
    "t10k-images-idx3-ubyte": idx(IMAGES[N_TRAIN:]),
    "t10k-labels-idx1-ubyte": idx(LABELS[N_TRAIN:]),
}
CHECKSUMS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}


def write_raw(root: str | Path, files: Mapping[str, bytes] = FILES) -> Path:
    folder = Path(root) / "MNIST" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return Path(root)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "budgetreg"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(write_raw(tmp_path / "root"))


def parse(root: str, digits: Any) -> mnist.Mnist:
    return mnist.parse({"root": root, "digits": digits})


def test_all_digits_are_in_the_order_of_the_files(root: str) -> None:
    data = parse(root, "all").load(CHECKSUMS)
    assert np.array_equal(data.X, IMAGES.reshape(-1, SIDE * SIDE))
    assert np.array_equal(data.y, LABELS)
    assert (data.name, data.scale, data.n_train, data.two_valued) == ("mnist", 1 / 255, N_TRAIN, False)


@pytest.mark.parametrize("digits", [[3, 5], [5, 3]])
def test_two_digits_keep_the_order_and_the_official_parts(root: str, digits: list[int]) -> None:
    data = parse(root, digits).load(CHECKSUMS)
    kept = (LABELS == 3) | (LABELS == 5)
    assert np.array_equal(data.X, IMAGES.reshape(-1, SIDE * SIDE)[kept])
    assert np.array_equal(data.y, np.where(LABELS[kept] == 3, -1, 1))
    assert data.n_train == kept[:N_TRAIN].sum()
    assert (data.name, data.two_valued) == ("mnist_3v5", True)


def test_images_are_mapped(root: str) -> None:
    data = parse(root, "all").load(CHECKSUMS)
    assert isinstance(data.X, np.memmap)
    assert data.X.dtype == np.uint8


def test_raw_files_are_needed_only_once(root: str, tmp_path: Path) -> None:
    first = parse(root, [3, 5]).load(CHECKSUMS)
    again = parse(str(tmp_path / "elsewhere"), [3, 5]).load(CHECKSUMS)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)


def test_other_raw_files_have_other_arrays(root: str, tmp_path: Path) -> None:
    parse(root, "all").load(CHECKSUMS)
    inverted = FILES | {"t10k-images-idx3-ubyte": idx(255 - IMAGES[N_TRAIN:])}
    other_root = write_raw(tmp_path / "other", inverted)
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in inverted.items()}
    data = parse(str(other_root), "all").load(checksums)
    assert np.array_equal(data.X[N_TRAIN:], 255 - IMAGES[N_TRAIN:].reshape(-1, SIDE * SIDE))


def test_the_root_is_never_written(root: str) -> None:
    before = sorted(Path(root).rglob("*"))
    parse(root, [3, 5]).load(CHECKSUMS)
    assert sorted(Path(root).rglob("*")) == before


def test_a_truncated_array_is_prepared_again(root: str) -> None:
    whole = parse(root, [3, 5]).load(CHECKSUMS).X.copy()
    for path in mnist.cache_folder(CHECKSUMS).glob("images*.npy"):
        path.write_bytes(path.read_bytes()[:-10])
    assert np.array_equal(parse(root, [3, 5]).load(CHECKSUMS).X, whole)


def test_a_failed_preparation_leaves_no_array(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", fail)
        with pytest.raises(DataError, match=r"No space left.*XDG_CACHE_HOME"):
            parse(root, "all").load(CHECKSUMS)
        assert not list(mnist.cache_folder(CHECKSUMS).glob("*.npy"))
        assert not list(mnist.cache_folder(CHECKSUMS).glob("*.tmp"))
    assert len(parse(root, "all").load(CHECKSUMS).y) == N_TRAIN + N_TEST


def _sum(root: str) -> int:
    return int(parse(root, [3, 5]).load(CHECKSUMS).X.astype(int).sum())


def test_concurrent_workers_agree(root: str) -> None:
    with ProcessPoolExecutor(3) as pool:
        assert set(pool.map(_sum, [root] * 6, timeout=120)) == {int(IMAGES[np.isin(LABELS, (3, 5))].astype(int).sum())}


def test_the_message_for_missing_files_says_what_to_do(tmp_path: Path) -> None:
    message = refusal(DataError, parse(str(tmp_path / "none"), [3, 5]).load, CHECKSUMS)
    for part in [
        *FILES,
        "budgetreg fetch mnist_3v5 dataset.root=",
        "pip install '.[mnist]'",
        str(tmp_path / "none" / "MNIST"),
    ]:
        assert part in message


def test_wrong_and_missing_files_are_listed_separately(root: str) -> None:
    raw = mnist.raw_folder(root)
    (raw / "t10k-labels-idx1-ubyte").unlink()
    (raw / "train-images-idx3-ubyte").write_bytes(b"<html>not here</html>")
    with pytest.raises(DataError, match=r"missing: t10k-labels\S*; wrong checksum: train-images"):
        parse(root, "all").load(CHECKSUMS)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\0\0\x0d\x01" + bytes(8), "not an idx"), (idx(LABELS)[:-1], "size"), (b"", "not an idx")],
)
def test_files_of_another_format_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    files = FILES | {"train-labels-idx1-ubyte": content}
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    with pytest.raises(DataError, match=reason):
        parse(str(write_raw(tmp_path / "bad", files)), "all").load(checksums)


@pytest.mark.parametrize(
    "digits", [[3], [3, 3], [3, 5, 7], [3, 10], [-1, 3], ["3", "5"], [True, 3], "3v5", "any", 3, {"a": 1}]
)
def test_impossible_digits_are_refused(digits: Any) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.digits must be two different digits"):
        parse("data", digits)


def test_the_home_folder_is_the_default_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert mnist.cache_folder().is_relative_to(tmp_path / "home" / ".cache" / "budgetreg")


def test_a_root_without_files_is_noticed_where_the_cache_has_them(
    root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parse(root, [3, 5]).load(CHECKSUMS)
    parse(root, [3, 5]).load(CHECKSUMS)
    assert capsys.readouterr().err == ""
    parse("/nowhere", [3, 5]).load(CHECKSUMS)
    said = capsys.readouterr().err
    assert "dataset.root=/nowhere holds no MNIST/raw: the arrays that were prepared before are used" in said
    assert str(tmp_path / "cache") in said
