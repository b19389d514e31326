"""What commands write: a file that is there stays as it is, unless it is an earlier answer of the same command."""

import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

import budgetreg
from tests.commands import Call
from tests.tiers import slow_but

pytestmark = pytest.mark.usefixtures("short_chains")

ROWS = [f"p{at},{at % 7}.0,{at},,{at * 7 % 13}" for at in range(12)]
THEIRS = b"theirs\n"
WRITES = {
    "ask": "study ask trial.db spend=9",
    "predict": "study predict trial.db new.csv",
    "next": "study next trial.db new.csv",
    "export a table": "study export trial.db",
    "export a model": "study export trial.db",
    "apply a model": "predict model.npz new.csv",
}
"""By name, commands with out=FILE."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "table.csv").write_text("\n".join(["id,a,b,c,y", *ROWS]) + "\n")
    (folder / "new.csv").write_text("id,a,b,c\nn1,1,2,3\nn2,2,3,5\n")
    (folder / "theirs").write_bytes(THEIRS)
    study = budgetreg.Study.create(folder / "trial.db", examples=folder / "table.csv", targets="y", id="id")
    order = study.ask(spend=6)
    order.to_csv(folder / "order.csv", index=False)
    order.assign(value=range(len(order))).to_csv(folder / "filled.csv", index=False)
    study.export(folder / "model.npz")
    study.close()
    return folder


@pytest.fixture(autouse=True)
def here(whole: Path, here: Path) -> Path:
    return Path(shutil.copytree(whole, here, dirs_exist_ok=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


PLACES: dict[str, Callable[[Path], object]] = {
    "somebody's file": lambda out: out.write_bytes(THEIRS),
    "empty file": lambda out: out.touch(),
    "link to somebody's file": lambda out: out.symlink_to("theirs"),
    "second name of somebody's file": lambda out: os.link("theirs", out),
    "table": lambda out: shutil.copy("table.csv", out),
    "order": lambda out: shutil.copy("order.csv", out),
    "completed order": lambda out: shutil.copy("filled.csv", out),
    "link to the study": lambda out: out.symlink_to("trial.db"),
    "second name of the study": lambda out: os.link("trial.db", out),
    "copy of the study": lambda out: shutil.copy("trial.db", out),
    "folder": lambda out: out.mkdir(),
    "pipe": lambda out: os.mkfifo(out),
    "circle": lambda out: out.symlink_to(out.name),
}


@pytest.mark.parametrize(
    ("write", "place"),
    slow_but(
        [("ask", place) for place in PLACES] + [(write, "link to somebody's file") for write in WRITES],
        product(WRITES, PLACES),
    ),
)
def test_other_files_stay_as_they_are(here: Path, call: Call, write: str, place: str) -> None:
    out = here / ("out.npz" if write == "export a model" else "out.csv")
    PLACES[place](out)
    before = contents(here)
    answer = call(f"{WRITES[write]} out={out.name}", 2)
    assert (answer.out, answer.err.count("\n")) == ("", 1)
    assert out.name in answer.err
    assert contents(here) == before  # of the study, too: no order is recorded


@pytest.mark.parametrize("write", ["ask", "predict", "next", "export a table"])
@pytest.mark.parametrize("out", ["trial.db", "trial.db-wal", "trial.db-shm", "trial.db-journal", "./new.csv"])
def test_what_a_command_reads_is_never_replaced(here: Path, call: Call, write: str, out: str) -> None:
    before = contents(here)
    assert call(f"{WRITES[write]} out={out}", 2).err.count("\n") == 1
    assert contents(here) == before


def test_a_table_that_looks_like_predictions_is_not_replaced_by_its_own(here: Path, call: Call) -> None:
    (here / "t.csv").write_text(
        "id,prediction,std,y\n" + "".join(f"p{at},{at},{at % 3},{at % 5}\n" for at in range(12))
    )
    (here / "n.csv").write_text("id,prediction,std\nn1,1.5,2\n")
    call("study create other.db table=t.csv target=y id=id")
    assert "n.csv is what the command reads" in call("study predict other.db n.csv out=n.csv", 2).err
    assert (here / "n.csv").read_text() == "id,prediction,std\nn1,1.5,2\n"


@pytest.mark.parametrize("write", WRITES)
def test_a_command_can_be_repeated(here: Path, call: Call, write: str) -> None:
    out = "out.npz" if write == "export a model" else "out.csv"
    words = f"{WRITES[write]} out={out}" + (" order=2" if write == "ask" else "")
    first = call(words)
    before = (here / out).read_bytes()
    assert call(words).out == first.out
    assert (here / out).read_bytes() == before


def test_only_what_can_be_computed_again_is_replaced(here: Path, call: Call) -> None:
    written = [
        ("study predict trial.db new.csv out=predictions.csv", 0),
        ("study next trial.db new.csv out=next.csv", 0),
        ("study export trial.db out=export.npz", 0),
        ("study export trial.db out=export.csv", 2),
    ]
    for words, _ in written:
        call(words)
    call("study tell trial.db filled.csv")
    before = contents(here)
    for words, code in written:
        call(words, code)
    after = contents(here)
    changed = {name for name in before if before[name] != after[name]}
    assert {"predictions.csv", "export.npz"} <= changed <= {"predictions.csv", "export.npz", "next.csv"}
    for change in (b"checked by hand\n", b"n1,1\n", b"n1,1,2,3\n"):
        (here / "predictions.csv").write_bytes(after["predictions.csv"] + change)
        call(written[0][0], 2)


def test_an_order_with_results_is_not_written_again(here: Path, call: Call) -> None:
    words = "study ask trial.db spend=6 order=1 out=again.csv"
    call(words)
    order = (here / "again.csv").read_text()
    for changed in (
        order.replace(",\n", ",5\n", 1),
        order.replace("value\n", "value,note\n"),
        order.replace("\n", "\r\n"),
        order[: order.rindex("1,")],
        order + "1,p1,a,1,\n",
    ):
        assert changed != order
        (here / "again.csv").write_bytes(changed.encode())
        assert "choose another place, or remove it" in call(words, 2).err
        assert (here / "again.csv").read_bytes() == changed.encode()
