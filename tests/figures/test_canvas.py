"""Files of figures: those of somebody else are not replaced."""

from pathlib import Path

import pytest

from budgetreg.common.errors import UserError
from budgetreg.figures.canvas import Figure, own_settings, write_figure


def drawn(folder: Path, width: float = 1.0) -> dict[str, bytes]:
    with own_settings():
        paths = write_figure(Figure((width, 1.0)), "caption", folder, "trial")
    assert [path.name for path in paths] == ["trial.png", "trial.pdf", "trial.txt"]
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("ending", ["png", "pdf", "txt"])
@pytest.mark.parametrize("content", [b"theirs", b"", b"%PDF-1.4 << /Producer (theirs) >>"])
def test_files_of_somebody_else_are_kept(tmp_path: Path, ending: str, content: bytes) -> None:
    theirs = tmp_path / f"trial.{ending}"
    theirs.write_bytes(content)
    with pytest.raises(UserError, match=rf"trial.{ending} is there already, and would be replaced"):
        drawn(tmp_path)
    assert contents(tmp_path) == {theirs.name: content}


def test_our_own_files_are_replaced_even_after_a_kill(tmp_path: Path) -> None:
    first = drawn(tmp_path)
    (tmp_path / "trial.txt").unlink()  # it is written last
    second = drawn(tmp_path, width=2.0)
    assert second["trial.png"] != first["trial.png"]
    (tmp_path / "trial.txt").unlink()
    (tmp_path / "trial.txt").mkdir()
    with pytest.raises(UserError, match="it is a folder"):
        drawn(tmp_path)
    assert contents(tmp_path)["trial.png"] == second["trial.png"]
