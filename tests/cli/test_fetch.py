"""Obtaining MNIST, with a substitute for torchvision."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from budgetreg.cli.app import main
from budgetreg.cli.offers import fetch
from budgetreg.common.errors import DataError
from budgetreg.data import mnist
from tests.data.test_mnist import CHECKSUMS, FILES, LABELS, SIDE, write_raw

Torchvision = Callable[[Callable[[str], None]], list[str]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> Torchvision:
    """Install a torchvision with a given MNIST; return the list of its calls."""

    def install(behaviour: Callable[[str], None]) -> list[str]:
        calls: list[str] = []

        def MNIST(root: str, download: bool) -> None:  # noqa: N802 - torchvision's name
            assert download
            calls.append(root)
            behaviour(root)

        module, datasets = ModuleType("torchvision"), ModuleType("torchvision.datasets")
        datasets.MNIST = MNIST  # type: ignore[attr-defined]
        module.datasets = datasets  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torchvision", module)
        monkeypatch.setitem(sys.modules, "torchvision.datasets", datasets)
        return calls

    return install


@pytest.mark.parametrize("there", [{}, FILES | {"t10k-labels-idx1-ubyte": b"cut short"}, FILES])
def test_missing_and_wrong_files_are_downloaded_checked_and_prepared(
    tmp_path: Path, torchvision: Torchvision, capsys: pytest.CaptureFixture[str], there: Mapping[str, bytes]
) -> None:
    def download(root: str) -> None:
        print("Downloading")
        write_raw(root, FILES)

    calls = torchvision(download)
    write_raw(tmp_path, there)
    line = fetch("mnist_3v5", str(tmp_path), CHECKSUMS)
    assert len(calls) == (there != FILES)
    assert f"mnist_3v5: {np.isin(LABELS, (3, 5)).sum()} images of {SIDE**2} pixels" in line
    assert str(tmp_path / "MNIST" / "raw") in line
    assert capsys.readouterr() == ("", "")
    assert mnist.faults(tmp_path, CHECKSUMS) == {}
    assert mnist.prepared(CHECKSUMS) is not None
    assert sorted(p.name for p in (tmp_path / "MNIST" / "raw").iterdir()) == sorted(FILES)


def test_a_failed_download_is_one_line_and_changes_nothing(tmp_path: Path, torchvision: Torchvision) -> None:
    def fail(root: str) -> None:
        write_raw(root, {"train-images-idx3-ubyte": b"half"})
        raise RuntimeError("Error downloading\ntrain-images")

    torchvision(fail)
    write_raw(tmp_path, {"train-images-idx3-ubyte": b"what the user had"})
    with pytest.raises(DataError, match=r"^the download of MNIST failed: Error downloading train-images$"):
        fetch("mnist", str(tmp_path), CHECKSUMS)
    files = list((tmp_path / "MNIST" / "raw").iterdir())
    assert [path.read_bytes() for path in files] == [b"what the user had"]


def test_a_download_of_something_else_is_refused(tmp_path: Path, torchvision: Torchvision) -> None:
    torchvision(lambda root: write_raw(root, FILES | {"t10k-labels-idx1-ubyte": b"<html>"}))
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte: wrong checksum"):
        fetch("mnist", str(tmp_path), CHECKSUMS)
    assert "train-images-idx3-ubyte" in mnist.faults(tmp_path, CHECKSUMS)


def test_without_torchvision_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(DataError, match=r"pip install '\.\[mnist\]'"):
        fetch("mnist", str(tmp_path), CHECKSUMS)


def test_a_root_that_cannot_be_written_is_reported(tmp_path: Path, torchvision: Torchvision) -> None:
    torchvision(lambda root: write_raw(root, FILES))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*dataset\.root=DIR"):
        fetch("mnist", str(tmp_path / "file"), CHECKSUMS)


def test_the_command_prints_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    monkeypatch.setattr("budgetreg.cli.offers.fetch", lambda *call: seen.append(call) or "what is where")
    assert main(["fetch", "mnist_3v5", f"dataset.root={tmp_path}"]) == 0
    assert main(["fetch", "mnist"]) == 0
    assert seen == [("mnist_3v5", str(tmp_path)), ("mnist", "data")]
    assert capsys.readouterr().out == "what is where\n" * 2
