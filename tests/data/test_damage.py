"""Single inverted bits in cached arrays are detected, and the arrays are prepared again.

``FLIPS=200 pytest tests/data/test_damage.py`` tries more of them per file.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from budgetreg.common.errors import DataError
from budgetreg.data import cache, distributions, mnist, tables
from budgetreg.data.dataset import Dataset
from tests.damage import flip
from tests.data.test_mnist import CHECKSUMS, write_raw
from tests.data.written import read, write

FLIPS = int(os.environ.get("FLIPS", 2))
RNG = np.random.default_rng(0)
X, Y = RNG.integers(-3, 4, (30, 6)).astype(float), RNG.choice([-1.0, 1.0], 30)


def from_mnist(tmp_path: Path) -> Callable[[], Dataset]:
    root = str(write_raw(tmp_path / "root"))
    return lambda: mnist.parse({"root": root, "digits": [3, 5]}).load(CHECKSUMS)


def from_file(ending: str, tmp_path: Path) -> Callable[[], Dataset]:
    path = write(tmp_path, ending, X, Y)
    return lambda: read(path, scale="max_abs")


def from_power_law(tmp_path: Path) -> Callable[[], Dataset]:
    distribution = distributions.PowerLaw(8, -1.0, "l2", 30, 10, implicit=True)
    return lambda: distribution.draw(0, 0)


FILES = {"npz": ".npz", "mapped": "", "libsvm": ".libsvm"}
KINDS = {
    "mnist": from_mnist,
    **{name: partial(from_file, ending) for name, ending in FILES.items()},
    "power_law": from_power_law,
}


@pytest.fixture(params=KINDS)
def load(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Dataset]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "IN_MEMORY", 0)
    monkeypatch.setattr(distributions, "_MOST_UNCACHED", 0)
    return KINDS[request.param](tmp_path)


def content_of(data: Dataset) -> list[object]:
    rows = np.arange(data.X.shape[0])
    values = data.X[rows] if isinstance(data.X, np.ndarray) else data.X.rows(rows)
    return [
        data.name,
        values.tolist(),
        data.y.tolist(),
        np.asarray(data.scale).tolist(),
        data.notes,
        data.fingerprint(),
    ]


def test_an_inverted_bit_in_a_cached_file_is_repaired(
    load: Callable[[], Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, rng = content_of(load()), np.random.default_rng(0)
    files = [path for path in (tmp_path / "cache").rglob("*") if path.suffix in (".npy", ".json")]
    assert files
    for file in sorted(files):
        for _ in range(FLIPS):
            capsys.readouterr()
            flip(file, rng)
            assert content_of(load()) == expected
            damage = capsys.readouterr().err
            assert damage.count("\n") == 1
            assert "is damaged: it is prepared again" in damage
            assert str(tmp_path / "cache") in damage


def test_damage_that_cannot_be_repaired_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from_mnist(tmp_path)()
    flip(mnist.cache_folder(CHECKSUMS) / "labels.npy", np.random.default_rng(0))
    with pytest.raises(DataError, match=r"^the prepared arrays are damaged, and MNIST is incomplete in"):
        mnist.Mnist(str(tmp_path / "nowhere"), (3, 5)).load(CHECKSUMS)


def test_verified_files_are_trusted_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    cache.seal(path)
    assert cache.unsealed(path) == bytes(100)
    assert cache.is_intact(path)
    looks: list[Path] = []
    file_digest = cache.file_digest
    monkeypatch.setattr(cache, "file_digest", lambda path, length: looks.append(path) or file_digest(path, length))
    assert cache.is_intact(path)
    assert looks == []
    stamps = cache.verified()
    cache._verified.clear()
    cache.trust(stamps)  # as a worker does
    assert cache.is_intact(path)
    assert looks == []
    os.utime(path, ns=(1, 1))
    assert cache.is_intact(path)
    assert looks == [path]


def test_files_without_a_checksum_are_not_intact(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "unsealed").write_bytes(bytes(100))
    assert not any(cache.is_intact(tmp_path / name) for name in ("missing", "empty", "short", "unsealed"))
