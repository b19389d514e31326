"""Files that are written whole, and what is neither read nor replaced: devices, pipes, folders, circles of links."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import UserError
from budgetreg.common.files import at_home, regular, write_atomically

SPECIAL: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "it is a pipe, not a regular file"),
    "link to a device": (lambda path: path.symlink_to(os.devnull), "it is a device, not a regular file"),
    "folder": (Path.mkdir, "it is a folder, not a regular file"),
    "circle": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_only_regular_files_are_replaced_and_read(tmp_path: Path, kind: str) -> None:
    make, what = SPECIAL[kind]
    path = tmp_path / "special"
    make(path)
    before = path.lstat()
    with pytest.raises(UserError, match=rf"^cannot write \S*special: {what}$"):
        write_atomically(path, b"content")
    with pytest.raises(OSError, match=what):
        regular(path)
    assert stat.S_IFMT(path.lstat().st_mode) == stat.S_IFMT(before.st_mode)
    assert [inside.name for inside in tmp_path.iterdir()] == ["special"]
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("content", [None, b"old"])
def test_a_link_is_kept_and_what_it_leads_to_is_written(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "below").mkdir()
    target, link = tmp_path / "below" / "target", tmp_path / "link"
    if content is not None:
        target.write_bytes(content)
    link.symlink_to(Path("below", "target"))
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_the_file_of_a_standard_stream_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, status = tmp_path / "redirected", os.fstat
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "fstat", lambda stream: path.stat() if stream == 1 else status(stream))
    with pytest.raises(UserError, match="redirected: stdout or stderr is written to it"):
        write_atomically(path, b"content")
    assert path.read_bytes() == b"before"


def test_links_that_somebody_planted_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f".file.{os.getpid()}.tmp").symlink_to(tmp_path / "theirs")
    write_atomically(tmp_path / "file", b"content")
    assert not (tmp_path / "theirs").exists()
    monkeypatch.setattr(secrets, "token_hex", lambda length: "0" * length)  # even a name that was guessed
    (tmp_path / f".file.{os.getpid()}.{'0' * 8}.tmp").symlink_to(tmp_path / "theirs")
    with pytest.raises(UserError, match="File exists"):
        write_atomically(tmp_path / "file", b"other")
    assert not (tmp_path / "theirs").exists()
    assert (tmp_path / "file").read_bytes() == b"content"


def test_written_files_have_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    for mask in (0o022, 0o077, 0o002):
        before = os.umask(mask)
        try:
            write_atomically(tmp_path / "file", b"content")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_the_name_of_an_unknown_user_stays_in_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert [str(at_home(path)) for path in ("~/a", "~.csv", "~nobody-here/..")] == [
        "/home/me/a",
        "~.csv",
        "~nobody-here/..",
    ]


@pytest.mark.parametrize(
    "words",
    [
        "status {}",
        "plot {}",
        "compare {}",
        "predict {} table.csv",
        "reprice {} costs=costs.csv",
        "run dataset=file dataset.path='{}' --dry-run",
        "run dataset=file dataset.path='table.csv' dataset.costs='{}' --dry-run",
        "run dataset=file dataset.path='table.csv' dataset.ranges='{}' --dry-run",
        "fetch mnist dataset.root={}",
        "reproduce nothing out={}",
    ],
)
@pytest.mark.parametrize("path", ["x" * 300 + ".csv", "~x/..", "circle.csv"])
def test_odd_paths_are_one_line(here: Path, capsys: pytest.CaptureFixture[str], words: str, path: str) -> None:
    Path("table.csv").write_text("a,b,c,y\n" + "1,2,3,4\n2,3,4,5\n3,1,2,0\n" * 9)
    Path("circle.csv").symlink_to("circle.csv")
    assert main(words.format(path).split()) in (2, 3)
    assert capsys.readouterr().err.count("\n") == 1
