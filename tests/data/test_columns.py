"""Columns that are not read as attributes, indexes of pandas among them, and notices of those that should not be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.api import run
from budgetreg.cli.app import main
from budgetreg.common.errors import DataError
from budgetreg.common.notices import each_once
from budgetreg.data import tables
from budgetreg.data.file import read_sheet
from budgetreg.data.registry import load, prices_of
from budgetreg.runs.models import predict
from budgetreg.runs.series import repriced
from tests.commands import Call
from tests.data import written
from tests.data.written import read, values
from tests.plans import configured, planned
from tests.tiers import quick_but

pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
N, D = 40, 5
X = RNG.normal(size=(N, D)).round(3)
Y = (X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.1 * RNG.normal(size=N)).round(3)
NAMES = ["a", "b", "c", "d", "e"]


def frame(X: np.ndarray = X, names: list[str] = NAMES, **more: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=names).assign(**more, y=Y)


def write(folder: Path, ending: str, X: np.ndarray = X, y: np.ndarray = Y, zero_based: bool = False) -> Path:
    return written.write(folder, ending, X, y, zero_based)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("ending", "drop", "zero_based"),
    [
        (".csv", ["b", 5], False),
        (".parquet", ["e", "b"], False),
        (".npz", [5, 2, 2], False),
        ("", [2, 5], False),
        (".libsvm", [2, 5], False),
        (".libsvm", [1, 4], True),
    ],
)
def test_what_remains_is_the_table_without_the_columns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
    drop: list[str | int],
    zero_based: bool,
    in_memory: bool,
) -> None:
    if not in_memory:
        monkeypatch.setattr(tables, "IN_MEMORY", 0)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = read(write(tmp_path, ending, zero_based=zero_based), drop=drop)
    assert np.array_equal(values(data), np.delete(X, [1, 4], axis=1))
    assert np.array_equal(data.y, Y)
    named = ending in (".csv", ".parquet")
    assert data.names == (("a", "c", "d") if named else ())
    assert data.dropped == (((1, "b"), (4, "e")) if named else ((1, ""), (4, "")))
    numbered = f"index {4 - zero_based}" if ending == ".libsvm" else "number 4"
    assert data.label(2) == ("'d'" if named else numbered)
    left = tmp_path / "left"
    left.mkdir()
    if not named:  # the same content as if the columns had never been there
        kept = write(left, ending, np.delete(X, [1, 4], axis=1), zero_based=zero_based)
        assert data.fingerprint() == read(kept, drop=[]).fingerprint()


def test_the_first_index_of_a_libsvm_file_can_be_left_out(tmp_path: Path) -> None:
    data = read(write(tmp_path, ".libsvm", zero_based=True), drop=[0])
    assert np.array_equal(values(data), X[:, 1:])
    assert data.dropped == ((0, ""),)


def test_columns_that_are_left_out_may_hold_anything(tmp_path: Path) -> None:
    table = frame(id=[f"p-{i}" for i in range(N)], date=["2026-11-23"] * N, gap=[np.nan] * N)
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")
    np.savez(tmp_path / "table.npz", X=np.column_stack([X, np.full(N, np.nan)]), y=Y)
    for ending, drop in ((".csv", ["id", "date", "gap"]), (".parquet", ["id", "date", "gap"]), (".npz", [6])):
        assert np.array_equal(values(read(tmp_path / f"table{ending}", drop=drop)), X)
    with pytest.raises(DataError, match=r"'p-0' is not a number .*or leave the column out with dataset.drop="):
        read(tmp_path / "table.csv", drop=[])


@pytest.mark.parametrize(
    ("ending", "drop"),
    [(".csv", "Unnamed: 0"), (".csv.gz", 1)],
)
def test_an_index_that_was_saved_too_can_be_left_out(tmp_path: Path, ending: str, drop: str | int) -> None:
    path, table = tmp_path / f"table{ending}", frame().set_index(np.array([7, *range(N - 1)]))
    table.to_csv(path)
    data = read(path, drop=[drop])
    assert np.array_equal(values(data), X)
    assert (list(data.names), data.target) == (NAMES, "y")
    with pytest.raises(DataError, match=r"table.*: column .* has no name.*dataset.drop=\[1\]"):
        read(path, drop=[])
    run = computed(path, tmp_path / "run", **{"dataset.drop": [drop]})
    new = path.with_name(f"new{ending}")
    for new_table in (table, frame()):  # with the index and without
        new_table.to_csv(new, index=new_table is table)
        assert np.isfinite(predict(run, new).columns["prediction"]).all()


@pytest.mark.parametrize(
    ("ending", "drop", "said"),
    [
        (".csv", ["bb"], r"no column 'bb' \(did you mean 'b'\?\); columns: a, b, c, d, e"),
        (".csv", [6], "no column '6'"),
        (".csv", ["y"], "'y' is the target and cannot be left out; dataset.target names another"),
        (".parquet", ["y"], "'y' is the target"),
        (".csv", NAMES, "dataset.drop leaves 0 of 5 attributes; two are needed"),
        (".csv", NAMES[1:], "dataset.drop leaves 1 of 5 attributes; two are needed"),
        (".npz", ["a"], "no column 'a'; columns: numbers 1 to 5"),
        (".npz", ["y"], "'y' is the target"),
        (".npz", [0], "no column '0'"),
        (".npz", [1, 2, 3, 4], "dataset.drop leaves 1 of 5"),
        (".libsvm", ["a"], "'a' is not an index"),
        (".libsvm", [0], "no column has the index 0; there are 1 to 5"),
        (".libsvm", [6], "no column has the index 6; there are 1 to 5"),
        (".libsvm", [1, 2, 3, 4], "dataset.drop leaves 1 of 5"),
    ],
)
def test_what_cannot_be_left_out_is_one_line(tmp_path: Path, ending: str, drop: list[str | int], said: str) -> None:
    path = write(tmp_path, ending)
    with pytest.raises(DataError, match=said) as caught:
        read(path, drop=drop)
    assert str(caught.value).startswith(str(path))


def test_wrong_values_are_one_line(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, ".csv")
    for word in ("id", "[[1]]", "7"):
        said = call(f"run dataset=file dataset.path={path} dataset.drop={word} --dry-run", 2).err
        assert "must be a list of names, or of numbers from 1, such as [id,date]" in said


def test_places_in_messages_count_all_columns(tmp_path: Path) -> None:
    bad = X.copy()
    bad[3, 4] = np.inf
    with pytest.raises(DataError, match="data row 4, column 5: inf"):
        read(write(tmp_path, ".npz", bad), drop=[2])
    large = X.copy()
    large[3, 4] = 1e40
    with pytest.raises(DataError, match="attribute number 5: its largest"):
        read(write(tmp_path, ".npz", large), drop=[2])


def test_the_identity_changes_only_with_columns_to_leave_out() -> None:
    words = ("dataset=file", "dataset.path=table.csv")
    assert "drop" not in configured(*words).identity()["dataset"]
    assert configured(*words, "dataset.drop=[]").digest() == configured(*words).digest()
    assert configured(*words, "dataset.drop=[a]").digest() != configured(*words).digest()


@pytest.mark.parametrize("lines", ["a,1\nb,2\nc,3\nd,4\ne,5\n", "a,1\nc,3\nd,4\n", "1,1\n2,anything\n3,3\n4,4\n"])
@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_lists_may_name_columns_that_are_left_out(tmp_path: Path, ending: str, lines: str) -> None:
    path, costs = write(tmp_path, ending), tmp_path / "costs.csv"
    if ending == ".npz":
        for number, name in enumerate(NAMES, 1):
            lines = lines.replace(f"{name},", f"{number},")
    costs.write_text("attribute,cost\n" + lines)
    words = ["dataset=file", f"dataset.path={path}", "dataset.drop=[2,5]", f"dataset.costs={costs}"]
    config = configured(*words)
    prices = prices_of(config.dataset, load(config.dataset, 0, 0))
    assert prices is not None
    assert prices.costs == (1, 3, 4)
    assert prices.names == (("a", "c", "d") if ending == ".csv" else ("1", "3", "4"))


def computed(path: Path, out: Path, **more: Any) -> Path:
    """Run ridge on a table, and return the folder of the results."""
    choices = {"dataset": "file", "dataset.path": str(path), "algo": "ridge", "tuning": "fixed", "tuning.B": 3.0}
    run({**choices, "out": str(out), "repetitions": 1, "checkpoints": 2, "k": 4, "pilot": 3, **more})
    return out


@pytest.mark.parametrize("ending", quick_but((".npz",), [".csv", ".npz", ".libsvm"]))
def test_a_run_without_columns_is_that_of_the_smaller_table_and_predicts_both(
    tmp_path: Path, call: Call, ending: str
) -> None:
    path, kept = write(tmp_path, ending), np.delete(X, [1], axis=1)
    (tmp_path / "less").mkdir()
    less = tmp_path / "less" / f"table{ending}"
    if ending == ".csv":
        frame().drop(columns="b").to_csv(less, index=False)
        frame(b=[f"word {i}" for i in range(N)]).to_csv(path, index=False)
    else:
        write(tmp_path / "less", ending, kept)
    if ending == ".npz":  # what is left out is not looked at
        write(tmp_path, ending, np.where(np.arange(D) == 1, np.nan, X))
    whole = computed(path, tmp_path / "run", **{"dataset.drop": ["b" if ending == ".csv" else 2]})
    smaller = computed(less, tmp_path / "run-less")
    assert (whole / "curves.csv").read_bytes() == (smaller / "curves.csv").read_bytes()
    with np.load(whole / "model.npz") as left, np.load(smaller / "model.npz") as right:
        indices = {"indices", "left_out"} if ending == ".libsvm" else set()
        assert set(left) - indices == set(right) - indices
        assert all(np.array_equal(left[name], right[name]) for name in set(left) - indices)
    assert "dropped" not in json.loads((smaller / "manifest.json").read_text())
    predictions = []
    for folder, table in ((smaller, less), (whole, path), (whole, less)):
        if folder == whole and ending == ".libsvm":  # columns are matched by index, and zeros are left out
            write(tmp_path / "less", ending, np.where(np.arange(D) == 1, 0, X))
        predictions.append(call(f"predict {folder} {table}"))
    assert predictions[0].out == predictions[1].out == predictions[2].out
    guessed = [f"its {D - 1} columns are taken for those that" in said.err for said in predictions]
    assert guessed == [False, False, ending == ".npz"]


def test_a_finished_run_is_repriced_by_a_list_of_all_columns(tmp_path: Path) -> None:
    more = {"dataset.drop": [2], "dataset.costs": "equal"}
    folder = computed(write(tmp_path, ".npz"), tmp_path / "run", **more)
    costs = tmp_path / "costs.csv"
    costs.write_text("attribute,cost\n1,1\n2,1000\n3,1\n4,1\n5,7\n")
    (series,) = repriced([folder], costs)
    assert np.allclose(series.points["cost"], series.points["attributes"] / 4 * 10)


def test_columns_that_look_like_identifiers_are_noticed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {
        "row": np.arange(N) + 1000,  # consecutive
        "shuffled": RNG.permutation(N),
        "gappy": np.sort(RNG.choice(10**6, N, replace=False)),  # monotone
        "patientID": RNG.permutation(10**4)[:N],  # by name
        "my key": RNG.permutation(10**4)[:N],
        "amount": RNG.permutation(10**4)[:N],  # distinct whole numbers, but no identifier
        "repeated": np.repeat(np.arange(N // 2), 2),
        "half": np.arange(N) / 2,
        "fluid": RNG.permutation(10**4)[:N],
    }
    frame(**more).to_csv(tmp_path / "table.csv", index=False)
    line = "attributes 'row', 'shuffled', 'gappy', 'patientID', 'my key' look like identifiers of the rows: "
    line += "\"dataset.drop=[row,shuffled,gappy,patientID,'my key']\" leaves them out"
    words = ["dataset=file", f"dataset.path={tmp_path / 'table.csv'}"]
    assert main(["run", *words, "algo=ridge", "--dry-run"]) == 0
    assert "look like" in capsys.readouterr().out
    assert planned(*words, "algo=ridge").notes.count(line) == 1
    found = planned(*words, "algo=ridge", "dataset.drop=[row,shuffled,gappy,patientID,10]")
    assert not [note for note in found.notes if "identifier" in note]
    with each_once():  # as the cells of a sweep do
        for number in range(2):
            computed(tmp_path / "table.csv", tmp_path / f"run-{number}")
    assert capsys.readouterr().err.count("look like identifiers") == 1


def test_a_column_without_a_name_is_left_out_by_number(tmp_path: Path) -> None:
    path = write(tmp_path, ".npz", np.column_stack([X, np.arange(N)]))
    assert (
        "attribute number 6 looks like an identifier of the rows: dataset.drop=[6] leaves it out"
        in read(path, drop=[]).notes
    )
    assert "dataset.drop=[6]" in " ".join(read(path, drop=[2]).notes)


def test_few_rows_gaps_and_predictions_are_no_identifiers(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": np.arange(19), "b": np.zeros(19), "y": np.arange(19)})
    table.to_csv(tmp_path / "table.csv", index=False)
    assert read(tmp_path / "table.csv", drop=[]).notes == ()
    table = frame(id=np.append(np.arange(N - 1.0), np.nan))
    table.to_csv(tmp_path / "table.csv", index=False)
    assert read(tmp_path / "table.csv", drop=[], missing="unavailable").notes == ()


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "wine", "digits_3v5"])
def test_no_column_of_the_bundled_tables_looks_like_an_identifier(tmp_path: Path, name: str) -> None:
    data = load(configured(f"dataset={name}").dataset, 0, 0)
    names = list(data.names) or [f"x{i}" for i in range(data.X.shape[1])]
    table = pd.DataFrame(values(data), columns=names).assign(target=data.y)
    table.to_csv(tmp_path / "table.csv", index=False)
    assert not [note for note in read(tmp_path / "table.csv", drop=[]).notes if "identifier" in note]


FRAME = pd.DataFrame(RNG.normal(size=(N, 3)).round(3), columns=["a", "b", "y"])
PATIENT = RNG.permutation(10 * N)[:N]
INDEXES: dict[str, pd.DataFrame] = {
    "named": FRAME.assign(patient=PATIENT).set_index("patient"),
    "two": FRAME.assign(site=1, patient=PATIENT).set_index(["site", "patient"]),
    "unnamed": FRAME.set_index(PATIENT),
    "range": FRAME,
    "named range": FRAME.rename_axis("row"),
    "text": FRAME.set_index(pd.Index([f"p{i}" for i in range(N)], name="name")),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("in_memory", [True, False])
def test_an_index_is_neither_attribute_nor_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.setattr(tables, "IN_MEMORY", 0)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    INDEXES[kind].to_parquet(tmp_path / "t.parquet", row_group_size=7)
    data = read(tmp_path / "t.parquet")
    assert (data.names, data.target) == (("a", "b"), "y")
    assert np.array_equal(np.asarray(data.X), FRAME[["a", "b"]])
    left_out = [name for name in pq.read_schema(tmp_path / "t.parquet").names if name not in FRAME]
    assert [name for _, name in data.dropped] == left_out
    assert any("an index of pandas" in note for note in data.notes) == bool(left_out)


def test_an_index_can_be_the_target_or_be_left_out_by_name(tmp_path: Path) -> None:
    INDEXES["named"].to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", target="patient")
    assert (data.names, data.target) == (("a", "b", "y"), "patient")
    assert np.array_equal(data.y, PATIENT)
    left_out = read(tmp_path / "t.parquet", drop=["patient"])
    assert (left_out.names, left_out.notes) == (("a", "b"), ())
    with pytest.raises(DataError, match=r"dataset.drop leaves 1 of 3 attributes"):
        read(tmp_path / "t.parquet", drop=["a"])


@pytest.mark.parametrize("kind", ["named", "unnamed"])
def test_without_what_pandas_wrote_an_index_is_known_by_the_name_that_pandas_gives_it(
    tmp_path: Path, kind: str
) -> None:
    INDEXES[kind].to_parquet(tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    pq.write_table(table.replace_schema_metadata({}), tmp_path / "t.parquet")
    known = ("patient",) if kind == "named" else ()
    assert read(tmp_path / "t.parquet", target="y").names == ("a", "b", *known)


@pytest.mark.usefixtures("short_chains")
def test_predictions_do_not_depend_on_an_index(tmp_path: Path, call: Call) -> None:
    out = []
    for name in ("range", "named", "unnamed"):
        INDEXES[name].to_parquet(tmp_path / f"{name}.parquet")
    call(f"fit dataset=file dataset.path={tmp_path}/named.parquet algo=aemr k=2 total=50 out={tmp_path}/o")
    for name in ("range", "named", "unnamed"):
        out.append(call(f"predict {tmp_path}/o {tmp_path}/{name}.parquet").out)
    assert out[0] == out[1] == out[2]


def test_a_study_finds_an_index_by_its_name_alone(tmp_path: Path) -> None:
    INDEXES["named"].to_parquet(tmp_path / "t.parquet")
    sheet = read_sheet(tmp_path / "t.parquet")
    assert sheet.names == ("a", "b", "y")
    assert list(sheet.column("patient", "")) == PATIENT.tolist()
    study = tmp_path / "s.db"
    assert main(["study", "create", str(study), f"table={tmp_path / 't.parquet'}", "target=y", "id=patient"]) == 0
    assert main(["study", "export", str(study), f"out={tmp_path / 'e.csv'}"]) == 0
    written = pd.read_csv(tmp_path / "e.csv")
    assert list(written) == ["patient", "a", "b", "y"]
    assert written["patient"].tolist() == PATIENT.tolist()
    assert json.loads(pq.read_schema(tmp_path / "t.parquet").metadata[b"pandas"])["index_columns"] == ["patient"]
