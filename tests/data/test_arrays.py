"""NPZ files: arrays without damage are read, and damage is reported."""

import io
import zipfile
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from budgetreg.data.formats import DAMAGE, read_npz

ARRAYS = {
    "X": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "none": np.empty((0, 4)),
    "names": np.array(["a", "bc"]),
    "target": np.array("y"),
}


def npz(save: Callable[..., None] = np.savez, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def zipped(contents: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00\x76\x00" + header.encode().ljust(117) + b"\n"


def read(content: bytes) -> dict[str, np.ndarray]:
    return read_npz(io.BytesIO(content))[1]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_they_were_saved(save: Callable[..., None]) -> None:
    arrays = read(npz(save, **ARRAYS, zeros=np.zeros((1000, 1000))))
    assert arrays.keys() == {*ARRAYS, "zeros"}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_files_of_other_names_are_no_arrays() -> None:
    assert read(zipped({"X": npy("")})) == {}


@pytest.mark.parametrize(
    "header",
    [
        *(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}" for shape in ((-1, 4), (2,), "8")),
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        *("", "[1, 2]", "\0"),
    ],
)
def test_a_header_that_the_file_does_not_bear_out_is_refused(header: str) -> None:
    with pytest.raises(DAMAGE):
        read(zipped({"X.npy": npy(header) + bytes(8)}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_anywhere_is_reported_or_changes_nothing(save: Callable[..., None]) -> None:
    whole, rng = npz(save, **ARRAYS), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        content[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        try:
            arrays = read(bytes(content[: rng.choice([len(whole), rng.integers(len(whole))])]))
        except (*DAMAGE, OSError, MemoryError):
            continue
        for name in arrays.keys() & ARRAYS.keys():
            np.testing.assert_array_equal(arrays[name], ARRAYS[name])
