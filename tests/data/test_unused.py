"""Which folders of the cache are unused."""

import os

import numpy as np
import pytest
from filelock import FileLock

from budgetreg.data import mnist, power_law, tabular
from budgetreg.data.formats import chunks
from budgetreg.data.registry import unused


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "budgetreg"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Return a small file that is converted into the cache."""
    monkeypatch.setattr(chunks, "IN_MEMORY", 0)
    monkeypatch.setattr(tabular.chunks, "IN_MEMORY", 0)
    path = tmp_path / "table.csv"
    path.write_text("a,b,y\n1,2,3\n4,5,6\n7,8,10\n")
    tabular.parse_file({"path": str(path), "target": None, "scale": "none"}).load()
    return path


def fill(folder, *names):
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"123")
    return folder


def test_an_empty_cache_has_nothing_unused(cache):
    assert list(unused()) == []


def test_arrays_of_a_file_are_unused_once_it_is_gone_or_changed(cache, table):
    assert list(unused()) == []
    before = table.stat()
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    (garbage,) = unused()
    assert garbage.why == f"{table} has changed since"
    table.unlink()
    (garbage,) = unused()
    assert garbage.why == f"{table} is gone"
    assert garbage.size() > 0
    assert garbage.remove()
    assert list(cache.iterdir()) == []


def test_arrays_of_a_folder_without_a_target_are_in_use(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(tabular.chunks, "IN_MEMORY", 0)
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "X.npy", np.arange(12.0).reshape(4, 3))
    whole = tabular.parse_file({"path": str(folder), "target": None, "scale": "none"})
    next(kind for kind in tabular.KINDS if kind.name == "file").unlabelled(whole).load()
    assert any(cache.iterdir())
    assert list(unused()) == []
    (folder / "X.npy").unlink()
    assert [garbage.why for garbage in unused()] == [f"{folder} is gone"]


def test_arrays_without_a_checksum_are_unused(cache, table):
    (facts,) = cache.glob("file-*/table/facts.json")
    facts.write_text("{}")
    assert [garbage.why for garbage in unused()] == ["arrays of an earlier layout, or damaged"]


def test_earlier_layouts_are_unused_and_later_ones_are_in_use(cache):
    images = ("images.npy", "images_3v5.npy", "labels.npy", "lock")
    old = {fill(mnist.cache_folder(version=1), *images), fill(cache / "power_law-1", "0a.npy", "lock")}
    for folder in (mnist.cache_folder(), mnist.cache_folder(version=99)):
        fill(folder, *images)
    fill(cache / f"power_law-{power_law._LAYOUT_VERSION}", "0a.npy")
    fill(cache / "power_law-99", "0a.npy")
    fill(cache / "somebody-elses", "x.npy")
    assert {garbage.path for garbage in unused()} == old
    (cache / "power_law-1" / "notes.txt").write_text("mine")
    assert {garbage.path for garbage in unused() if garbage.size() is not None} == old - {cache / "power_law-1"}


def test_half_prepared_files_are_unused_unless_a_process_holds_the_lock(cache):
    folder = fill(mnist.cache_folder(), "images.npy", "labels.npy.tmp")
    with FileLock(folder / "lock"):
        assert [garbage.size() for garbage in unused()] == [None]
    (garbage,) = unused()
    assert (garbage.path.name, garbage.size(), garbage.remove()) == ("labels.npy.tmp", 3, True)
    assert (folder / "images.npy").exists()
