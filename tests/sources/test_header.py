"""One safetensors header: each way to be wrong as a few literal bytes and its code."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from ninfer_core.findings import Findings
from ninfer_core.io import MemorySource
from ninfer_core.sources import DTYPES, HeaderLimits, read_header
from tests.sources.build import blob, codes_of, entry, file

ONE = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'


def header(**tensors: Any) -> bytes:
    return json.dumps(tensors).encode()


FAULTS: list[tuple[str, bytes, list[str]]] = [
    ("empty file", b"", ["file_too_short"]),
    ("seven bytes", b"\x00" * 7, ["file_too_short"]),
    ("length zero", b"\x00" * 8, ["header_start"]),
    ("length past the end", (3).to_bytes(8, "little") + b"{}", ["header_past_end"]),
    ("length 2^64 - 1", b"\xff" * 8 + b"{}", ["header_past_end"]),
    ("blank before the brace", blob(b" {}"), ["header_start"]),
    ("an array", blob(b"[]"), ["header_start"]),
    ("cut JSON", blob(b'{"a":'), ["json_syntax"]),
    ("bytes after the object", blob(b"{}\x00"), ["json_syntax"]),
    ("not UTF-8", blob(b'{"\xff":1}'), ["json_utf8"]),
    ("too deep", blob(b'{"a":' + b"[" * 16 + b"]" * 16 + b"}"), ["json_depth"]),
    ("NaN", blob(b'{"a":NaN}'), ["json_number_not_finite"]),
    ("name twice", blob(b'{"a":1,"a":1}'), ["json_member_duplicate", "tensor_entry_type"]),
    (
        "member twice",
        blob(b'{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
        ["json_member_duplicate"],
    ),
    ("metadata key twice", blob(b'{"__metadata__":{"k":"1","k":"2"}}'), ["json_member_duplicate"]),
    ("metadata twice", blob(b'{"__metadata__":{},"__metadata__":{}}'), ["json_member_duplicate"]),
    (
        "half a surrogate pair",
        blob(b'{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
        ["json_surrogate"],
    ),
    ("metadata null", blob(b'{"__metadata__":null}'), ["header_metadata"]),
    ("metadata number", blob(b'{"__metadata__":{"k":1,"l":[]}}'), ["header_metadata", "header_metadata"]),
    ("minus zero", blob(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[-0,0]}}'), ["header_number"]),
    ("entry is an array", blob(b'{"a":["U8",[1],[0,1]]}', b"x"), ["tensor_entry_type"]),
    ("entry is empty", blob(b'{"a":{}}'), ["tensor_member_missing"] * 3),
    (
        "extra member",
        blob(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"z":1}}', b"x"),
        ["tensor_member_unexpected"],
    ),
    ("lower-case dtype", blob(header(a=entry("u8", [1], 0, 1)), b"x"), ["tensor_dtype_unknown"]),
    (
        "dtype is a number",
        blob(b'{"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}}', b"x"),
        ["tensor_dtype_unknown"],
    ),
    ("negative size", blob(header(a=entry("U8", [-1], 0, 1)), b"x"), ["tensor_shape_invalid"]),
    ("size with a fraction", blob(ONE.replace(b"[1]", b"[1.0]"), b"x"), ["tensor_shape_invalid"]),
    ("size true", blob(ONE.replace(b"[1]", b"[true]"), b"x"), ["tensor_shape_invalid"]),
    ("size 2^64", blob(header(a=entry("U8", [2**64], 0, 1)), b"x"), ["tensor_shape_invalid"]),
    ("size of 50 digits", blob(ONE.replace(b"[1]", b"[" + b"9" * 50 + b"]"), b"x"), ["tensor_shape_invalid"]),
    ("one offset", blob(ONE.replace(b"[0,1]", b"[0]"), b"x"), ["tensor_offsets_invalid"]),
    ("negative offset", blob(ONE.replace(b"[0,1]", b"[-1,0]"), b"x"), ["tensor_offsets_invalid"]),
    ("offsets reversed", blob(header(a=entry("U8", [1], 1, 0)), b"x"), ["tensor_range_invalid"]),
    ("offsets past the end", blob(header(a=entry("U8", [9], 0, 9)), b"x"), ["tensor_range_past_end"]),
    ("product past 2^64", blob(header(a=entry("U8", [2**63, 4], 0, 1)), b"x"), ["tensor_size_overflow"]),
    ("overflow before a zero", blob(header(a=entry("U8", [2**63, 4, 0], 0, 0))), ["tensor_size_overflow"]),
    ("bits past 2^64", blob(header(a=entry("F64", [2**58], 0, 1)), b"x"), ["tensor_size_overflow"]),
    ("range too short", blob(header(a=entry("F32", [2], 0, 4)), b"xxxx"), ["tensor_size_mismatch"]),
    ("range too long", blob(header(a=entry("U8", [1], 0, 2)), b"xx"), ["tensor_size_mismatch"]),
    ("odd number of half bytes", blob(header(a=entry("F4", [3], 0, 2)), b"xx"), ["tensor_bits_partial"]),
    ("hole at the start", blob(header(a=entry("U8", [1], 1, 2)), b"xx"), ["tensor_gap"]),
    (
        "hole in the middle",
        blob(header(a=entry("U8", [1], 0, 1), b=entry("U8", [1], 2, 3)), b"xxx"),
        ["tensor_gap"],
    ),
    ("bytes at the end", blob(ONE, b"xx"), ["data_uncovered"]),
    ("data and no tensor", blob(b"{}", b"x"), ["data_uncovered"]),
    (
        "same range",
        blob(header(a=entry("U8", [1], 0, 1), b=entry("U8", [1], 0, 1)), b"x"),
        ["tensor_overlap"],
    ),
    (
        "range inside a range",
        blob(header(b=entry("U8", [1], 1, 2), a=entry("U8", [4], 0, 4)), b"xxxx"),
        ["tensor_overlap"],
    ),
    (
        "empty range inside a range",
        blob(header(b=entry("U8", [0], 1, 1), a=entry("U8", [4], 0, 4)), b"xxxx"),
        ["tensor_overlap"],
    ),
    (
        "everything at once",
        blob(header(a=entry("U8", [1], 1, 0), b=entry("X", [1], 0, 1), c=entry("U8", [2], 0, 1)), b"x"),
        ["tensor_range_invalid", "tensor_dtype_unknown", "tensor_size_mismatch"],
    ),
]


@pytest.mark.parametrize(("content", "codes"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_refuses(content: bytes, codes: list[str]) -> None:
    found, header = codes_of(content)
    assert header is None
    assert found == [f"structure.{code}" for code in codes]


def test_header_length_limit_is_a_setting() -> None:
    assert codes_of(blob(ONE, b"x"), HeaderLimits(len(ONE) - 1))[0] == ["structure.header_too_large"]
    assert codes_of(blob(ONE, b"x"), HeaderLimits(len(ONE)))[0] == []


def test_a_file_cut_while_it_is_read() -> None:
    class Shrinking(MemorySource):
        def __init__(self) -> None:
            super().__init__("model.safetensors", blob(ONE, b"x")[:20])
            self.size = 62

    findings = Findings()
    assert read_header(Shrinking(), findings) is None
    assert [finding.code for finding in findings] == ["structure.file_cut_short"]


def test_overlap_names_both_and_the_place() -> None:
    findings = Findings()
    content = blob(header(a=entry("U8", [4], 0, 4), b=entry("U8", [4], 2, 6)), b"x" * 6)
    read_header(MemorySource("m", content), findings)
    (finding,) = findings
    assert finding.where == {"file": "m", "tensors": ["a", "b"], "begin": 2, "end": 4}


def test_a_name_that_is_no_text_stays_out_of_the_report() -> None:
    findings = Findings()
    read_header(MemorySource("m", blob(b'{"\\ud800":{},"b":{"\\udfff":1}}')), findings)
    assert [finding.code for finding in findings] == ["structure.json_surrogate"] * 2
    assert findings.items[1].object == "b"
    str([(finding.where, finding.message, finding.found) for finding in findings]).encode()


@pytest.mark.parametrize("name", ["../x", "/abs", "a\\b", "C:x", "a/./b", "..", "", "a\x00b"])
def test_names_like_paths_are_noted(name: str) -> None:
    assert codes_of(file({name: ("U8", [1], b"x")}))[0] == ["structure.tensor_name_pathlike"]


@pytest.mark.parametrize("name", ["a/b", "model.layers.0.w", "a..b", "ä", "ab:c"])
def test_ordinary_names_are_not(name: str) -> None:
    assert codes_of(file({name: ("U8", [1], b"x")}))[0] == []


def test_reads_what_is_there() -> None:
    codes, header = codes_of(
        file({"a": ("BF16", [2, 1], b"1234"), "z": ("F32", [0, 3], b"")}, {"format": "pt"})
    )
    assert codes == []
    assert header is not None
    assert header.metadata == {"format": "pt"}
    a, z = header.tensors.values()
    assert (a.name, a.dtype, a.shape, a.offset, a.bytes) == ("a", "BF16", (2, 1), header.data_offset, 4)
    assert (z.shape, z.offset, z.bytes) == ((0, 3), header.data_offset + 4, 0)


def test_dtypes_are_those_of_the_public_reader() -> None:
    with pytest.raises(SafetensorError) as refusal:
        deserialize(blob(header(a=entry("no such dtype", [1], 0, 1)), b"x"))
    listed = set(str(refusal.value).split("`")[3::2])
    assert listed == set(DTYPES.names)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_widths_are_those_of_the_public_reader(dtype: Any) -> None:
    stored = b"x" * dtype.bits  # eight elements
    content = file({"a": (dtype.name, [8], stored)})
    assert codes_of(content)[0] == []
    ((_, tensor),) = deserialize(content)
    assert tensor["shape"] == [8]
    if dtype.word is not None:
        assert dtype.word.itemsize * 8 == dtype.bits
        assert np.issubdtype(dtype.word, np.unsignedinteger)


tensors = st.tuples(
    st.sampled_from([d for d in DTYPES if d.bits >= 8]), st.lists(st.integers(0, 4), max_size=4).map(list)
).map(lambda pair: (pair[0].name, pair[1], b"\x5a" * (int(np.prod(pair[1])) * pair[0].bits // 8)))
names = st.text(st.characters(codec="utf-8"), max_size=6).filter(lambda name: name != "__metadata__")
files = st.builds(
    file, st.dictionaries(names, tensors, max_size=4), st.none() | st.dictionaries(names, names, max_size=2)
)


@settings(deadline=None, max_examples=150)
@given(files)
def test_accepts_what_the_public_reader_accepts(content: bytes) -> None:
    ours = codes_of(content)[1]
    assert ours is not None
    theirs = dict(deserialize(content))
    assert set(ours.tensors) == set(theirs)
    for name, tensor in ours.tensors.items():
        assert (tensor.dtype, list(tensor.shape)) == (theirs[name]["dtype"], theirs[name]["shape"])
        assert content[tensor.offset : tensor.offset + tensor.bytes] == theirs[name]["data"]


@settings(deadline=None, max_examples=600)
@given(files, st.data())
def test_refuses_what_the_public_reader_refuses(content: bytes, data: st.DataObject) -> None:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed) - 1))
        how = data.draw(st.sampled_from(["flip", "replace", "delete", "double"]))
        if how == "flip":
            changed[place] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "replace":
            changed[place] = data.draw(st.sampled_from(list(b'0123456789-.eE"{}[],: \\')))
        elif how == "delete":
            del changed[place]
        else:
            changed.insert(place, changed[place])
        if not changed:
            break
    try:
        deserialize(bytes(changed))
    except SafetensorError:
        assert codes_of(bytes(changed))[1] is None
    else:
        codes_of(bytes(changed))
