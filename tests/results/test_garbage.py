"""Garbage: what is removed, and what is not: links, foreign files, folders in use."""

import pytest
from filelock import FileLock

from budgetreg.files.garbage import Garbage


@pytest.fixture
def folder(tmp_path):
    """A folder with a folder in it, both with files of ours."""
    ours = tmp_path / "ours"
    (ours / "inner").mkdir(parents=True)
    (ours / "a.npy").write_bytes(b"12345")
    (ours / "inner" / "b.npy").write_bytes(b"123")
    (ours / ".lock").touch()
    return ours


def garbage(folder):
    return Garbage(
        folder, "nobody needs it", lambda name: name.endswith((".npy", ".lock")), folder / ".lock", last=("a.npy",)
    )


def test_a_folder_of_ours_is_removed(folder):
    assert garbage(folder).size() == 8
    assert garbage(folder).remove()
    assert not folder.exists()


def test_a_folder_in_use_stays(folder):
    with FileLock(folder / ".lock"):
        assert garbage(folder).size() is None
        assert not garbage(folder).remove()
    assert (folder / "inner" / "b.npy").exists()
    assert garbage(folder).remove()


@pytest.mark.parametrize("place", ["notes.txt", "inner/notes.txt"])
def test_a_folder_with_a_foreign_file_stays_whole(folder, place):
    (folder / place).write_text("mine")
    assert garbage(folder).size() is None
    assert not garbage(folder).remove()
    assert (folder / "a.npy").exists()
    assert (folder / "inner" / "b.npy").exists()


@pytest.mark.parametrize("to_folder", [True, False])
def test_links_are_neither_followed_nor_removed(folder, tmp_path, to_folder):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "c.npy").write_bytes(b"precious")
    (folder / "c.npy").symlink_to(elsewhere if to_folder else elsewhere / "c.npy")
    assert garbage(folder).size() is None
    assert not garbage(folder).remove()
    (tmp_path / "link").symlink_to(elsewhere)
    linked = Garbage(tmp_path / "link", "a link itself")
    assert (linked.size(), linked.remove()) == (None, False)
    assert (elsewhere / "c.npy").read_bytes() == b"precious"


def test_removing_a_missing_folder_is_no_error(tmp_path):
    gone = Garbage(tmp_path / "gone", "it was", lock=tmp_path / "gone" / ".lock")
    assert (gone.size(), gone.remove()) == (None, False)
    assert not (tmp_path / "gone").exists()


def test_the_files_that_mark_a_folder_as_ours_are_removed_last(folder, monkeypatch):
    def killed(path, **rest):
        if path.name == "a.npy":
            raise OSError("killed")
        unlink(path, **rest)

    unlink = type(folder).unlink
    monkeypatch.setattr(type(folder), "unlink", killed)
    assert not garbage(folder).remove()
    assert not (folder / "inner" / "b.npy").exists()
    assert (folder / "a.npy").exists()
