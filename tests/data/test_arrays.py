"""Arrays of anybody: what is whole is read, and what is not is refused before memory is asked for."""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from budgetreg.data.binary_files import DAMAGE, members, read_array

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


def npy(header: str) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(contents: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def read(content: bytes) -> dict[str, np.ndarray]:
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name, info in members(archive).items():
            with archive.open(info) as file:
                arrays[name] = read_array(file, info.file_size)
    return arrays


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_they_were_saved(save: Callable[..., None]) -> None:
    arrays = read(npz(save, **ARRAYS, zeros=np.zeros((1000, 1000))))
    assert arrays.keys() == {*ARRAYS, "zeros"}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("descr", "shape", "said"),
    [
        ("<f8", (10**13, 4), "but the file has"),
        ("<f8", (-1, 4), "no numbers"),
        ("<f8", (2,), "but the file has"),
        ("|O", (1,), "no numbers"),
        ("<U0", (10**13,), "no numbers"),
        ("<f8", "8", "shape is not valid"),
        ("<q99", (1,), "descr is not a valid"),
    ],
)
def test_a_header_that_the_file_does_not_bear_out_is_refused(descr: str, shape: object, said: str) -> None:
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    with pytest.raises(ValueError, match=said):
        read(zipped({"X": npy(header) + bytes(8)}))


@pytest.mark.parametrize("header", ["", "{", "[1, 2]", "(" * 110, "{'descr': 0x for, 'shape': 1}", "\0", "{[]: 1}"])
def test_a_header_that_is_none_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(zipped({"X": npy(header)}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_cannot_be_read_are_refused() -> None:
    whole = npz(X=np.ones(50))
    entry = whole.rindex(b"PK\x01\x02")
    for at, new, said in [
        (entry + 8, b"\x01", "encrypted"),
        (entry + 10, b"\x63", "compressed in another way"),
        (entry + 20, b"\x00\x00\x00\x7f", "more than fit into the file"),
        (entry + 24, b"\x00\x00\x00\x7f", "more than fit into the file"),
    ]:
        with pytest.raises(ValueError, match=said):
            read(whole[:at] + new + whole[at + len(new) :])
    with pytest.raises(ValueError, match="compressed in another way"):
        read(zipped({"X": npy("")}, zipfile.ZIP_LZMA))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", b"")
        archive.writestr("X.npy", b"")
    with pytest.raises(ValueError, match="two arrays are named 'X'"):
        read(file.getvalue())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_anywhere_is_reported_or_changes_nothing(save: Callable[..., None]) -> None:
    whole, rng = npz(save, **ARRAYS), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        content[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        try:
            arrays = read(bytes(content[: rng.choice([len(whole), rng.integers(len(whole))])]))
        except DAMAGE:
            continue
        for name in arrays.keys() & ARRAYS.keys():
            np.testing.assert_array_equal(arrays[name], ARRAYS[name])
