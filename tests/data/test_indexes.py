"""An index of pandas in a Parquet file is no attribute, but can be asked for by its name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budgetreg.cli.app import main
from budgetreg.common.errors import DataError
from budgetreg.data import tables
from budgetreg.data.dataset import Dataset
from budgetreg.data.file import parse_file, read_sheet

pq = pytest.importorskip("pyarrow.parquet")
N = 30
RNG = np.random.default_rng(0)
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


def read(path: Path, **options: Any) -> Dataset:
    return parse_file({"path": str(path), "target": None, "scale": "none", **options}).load()


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


@pytest.mark.parametrize(
    "content", [None, b"{", b"[]", b"{}", b'{"index_columns": "patient"}', b'{"index_columns": 3}']
)
def test_without_what_pandas_wrote_all_columns_are_columns(tmp_path: Path, content: bytes | None) -> None:
    INDEXES["named"].to_parquet(tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    metadata = {key: value for key, value in table.schema.metadata.items() if key != b"pandas"}
    pq.write_table(
        table.replace_schema_metadata(metadata | ({b"pandas": content} if content is not None else {})),
        tmp_path / "t.parquet",
    )
    assert read(tmp_path / "t.parquet", target="y").names == ("a", "b", "patient")


@pytest.mark.usefixtures("short_chains")
def test_predictions_do_not_depend_on_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = []
    for name in ("range", "named", "unnamed"):
        INDEXES[name].to_parquet(tmp_path / f"{name}.parquet")
    words = ["dataset=file", f"dataset.path={tmp_path / 'named.parquet'}", "algo=aemr", "k=2", "total=50"]
    assert main(["fit", *words, f"out={tmp_path / 'o'}"]) == 0
    for name in ("range", "named", "unnamed"):
        capsys.readouterr()
        assert main(["predict", str(tmp_path / "o"), str(tmp_path / f"{name}.parquet")]) == 0
        out.append(capsys.readouterr().out)
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
