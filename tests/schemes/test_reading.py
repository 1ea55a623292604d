"""Stored arrays out of files nobody trusts."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.findings import Findings
from ninfer_core.io import MemorySource
from ninfer_core.schemes.form import Part
from ninfer_core.schemes.integer import FORMS
from ninfer_core.schemes.numpy_files import read_npy
from ninfer_core.schemes.reading import file_kind, in_form, read_arrays, read_raw
from tests.cli.build import safetensors

ARRAYS: dict[str, Any] = {
    "l.codes": np.arange(30, dtype=">i4").reshape(5, 6),
    "l.scales": np.asfortranarray(np.arange(12, dtype=np.float16).reshape(3, 4)),
    "l.one": np.float32(3),
    "l.none": np.zeros((0, 3), np.uint8),
    "m.codes": np.ones(2, np.int8),
}
PART = Part("payload", ("int32",), "[n]", "codes")


def npy(array: Any) -> bytes:
    """A file that numpy writes."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    """An archive that numpy writes, compressed."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def test_kinds_are_told_by_the_ending() -> None:
    assert [file_kind(name) for name in ("a.npy", "b.NPZ", "c.safetensors", "d.bin", "npy")] == [
        "npy", "npz", "safetensors", "raw", "raw",
    ]  # fmt: skip


def test_an_archive_gives_the_arrays_of_a_prefix() -> None:
    findings = Findings()
    found, others = read_arrays(
        MemorySource("a.npz", npz(**ARRAYS)), "npz", findings, prefix="l.", wanted={"codes", "scales", "one"}
    )
    assert not list(findings)
    assert others == ("none",)
    assert sorted(found) == ["codes", "one", "scales"]
    for name, array in found.items():
        assert array.dtype.isnative
        assert array.flags.c_contiguous
        assert np.array_equal(array, ARRAYS[f"l.{name}"])
    assert found["one"].shape == ()


def test_safetensors_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    safetensors(
        path, {"l.a": np.arange(4, dtype=np.uint16), "l.b": np.ones(2, np.float32), "x": np.ones(1, np.int64)}
    )
    found, others = read_arrays(MemorySource("m", path.read_bytes()), "safetensors", Findings(), prefix="l.")
    assert {name: array.dtype.name for name, array in found.items()} == {"a": "bfloat16", "b": "float32"}
    assert others == ()


def test_two_bytes_of_no_type_become_those_of_the_form() -> None:
    gptq = next(form for form in FORMS if form.name == "gptq")
    scales = np.ones((2, 3), ml_dtypes.bfloat16)
    findings = Findings()
    saved = read_npy(MemorySource("s", npy(scales)), findings)
    assert saved is not None
    assert in_form(gptq, {"scales": saved})["scales"].dtype == ml_dtypes.bfloat16
    assert in_form(gptq, {"qweight": saved})["qweight"] is saved  # a type that this part does not have


def test_raw_bytes_fill_a_shape_or_are_one_row() -> None:
    content = np.arange(6, dtype="<i4").tobytes()
    findings = Findings()
    whole = read_raw(MemorySource("p", content), PART, (2, 3), findings)
    assert whole is not None
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]]
    row = read_raw(MemorySource("p", content), PART, None, findings)
    assert row is not None
    assert row.shape == (6,)
    assert not list(findings)
    assert read_raw(MemorySource("p", content), PART, (7,), findings) is None
    assert read_raw(MemorySource("p", content[:-1]), PART, None, findings) is None
    assert [one.code for one in findings] == ["scheme.part_shape"] * 2


def header(text: str, rest: bytes = b"") -> bytes:
    """A `.npy` file with a header of one's own."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + rest


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        npy(np.array([{}], object)),
        npy(np.array([("a", 1)], "U1,i4")),
        npy(np.array(["text"])),
        npy(np.arange(9))[:-1],
        npy(np.arange(9)) + b"\0",
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }\n", bytes(8)),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846976,), }\n", bytes(8)),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (1152921504606846976, 0), }\n"),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (True,), }\n", bytes(8)),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': " + "(" * 900, bytes(8)),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"cos\nsystem\n(S'true'\ntR."),
    ],
    ids=lambda content: f"{zlib.crc32(content):08x}",
)
def test_no_npy_file(content: bytes) -> None:
    findings = Findings()
    assert read_npy(MemorySource("x.npy", content), findings) is None
    assert [one.code for one in findings] == ["scheme.file_malformed"]


def test_a_length_of_zero_leaves_the_others_bounded() -> None:
    text = json.dumps({"w": {"dtype": "U8", "shape": [0, 2**63], "data_offsets": [0, 0]}}).encode()
    source = MemorySource("x.safetensors", len(text).to_bytes(8, "little") + text)
    findings = Findings()
    assert read_arrays(source, "safetensors", findings) == ({}, ())
    assert read_raw(MemorySource("x.bin", b""), PART, (0, 2**63), findings) is None
    assert [one.code for one in findings] == ["scheme.part_dtype", "scheme.part_shape"]


def test_an_archive_that_claims_too_much_or_says_a_name_twice() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", npy(np.arange(3)))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr("a.npy", npy(np.arange(3)))
        archive.writestr("a", npy(np.arange(3)))
    cut = npz(a=np.arange(300))[:-30]
    for content in (stream.getvalue(), twice.getvalue(), cut, b"PK\x03\x04"):
        findings = Findings()
        read_arrays(MemorySource("x.npz", content), "npz", findings)
        assert {one.code for one in findings} == {"scheme.file_malformed"}


def test_memory_follows_the_bytes_that_are_there() -> None:
    good = npz(a=np.zeros(1000, np.uint8))
    directory = good.rindex(b"PK\x01\x02")
    claimed = bytearray(good)
    claimed[directory + 24 : directory + 28] = (0xFFFF_FFF0).to_bytes(4, "little")  # its size once expanded
    findings = Findings()
    read_arrays(MemorySource("x.npz", bytes(claimed)), "npz", findings)
    assert [one.code for one in findings] == ["scheme.file_malformed"]
    assert "claims more" in next(iter(findings)).message


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_files_are_answered(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["npy", "npz"]))
    content = bytearray(npy(np.arange(20)) if kind == "npy" else npz(**ARRAYS))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    source, findings = MemorySource("x", bytes(content)), Findings()
    if kind == "npy":
        array = read_npy(source, findings)
        assert (array is None) == bool(findings.errors)
    else:
        read_arrays(source, "npz", findings)
    json.dumps([one.message for one in findings])
