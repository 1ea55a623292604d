"""Containers of structured values as ONNX's messages: exact round trips, and what has no place is a finding."""

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes.structs.containers import (
    UNCONSTRAINED,
    Map,
    MapType,
    Optional,
    OptionalType,
    Sequence,
    SequenceType,
    check_contained,
    exactly,
)
from ninfer_core.schemes.structs.model import Array, Declaration, Leaf, Value
from ninfer_core.schemes.structs.proto_containers import (
    contained_to_proto,
    map_from_proto,
    optional_from_proto,
    sequence_from_proto,
    static_from_proto,
    static_to_proto,
)
from ninfer_core.schemes.structs.proto_messages import message_class
from ninfer_core.schemes.structs.proto_reading import ProtoRefused
from ninfer_core.schemes.structs.proto_writing import CannotWrite

BYTES = Declaration(Array(Leaf("UINT8"), 2), "BYTES")
STATIC = st.recursive(
    st.sampled_from([UNCONSTRAINED, exactly(0), exactly(7), Declaration(None, name="extra")]),
    lambda inner: (
        st.builds(SequenceType, inner)
        | st.builds(OptionalType, inner)
        | st.builds(MapType, st.sampled_from(["INT64", "STRING"]), inner)
    ),
    max_leaves=3,
)
VALUES = st.builds(Value, st.integers(-1, 2), data=st.binary(max_size=3))
KEYS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3) | st.lists(
    st.text(max_size=3), max_size=3
)


def _sequences(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(Sequence, st.none() | STATIC, st.lists(inner, max_size=3).map(tuple))


SEQUENCES = _sequences(VALUES) | _sequences(_sequences(VALUES))
MAPS = st.builds(Map, KEYS.map(tuple), SEQUENCES)
OPTIONALS = st.builds(Optional, st.none() | STATIC, st.none() | VALUES | SEQUENCES | MAPS)


@settings(max_examples=40, deadline=None)
@given(SEQUENCES, MAPS, OPTIONALS, STATIC)
def test_what_is_written_reads_back(sequence: Sequence, map_: Map, optional: Optional, static: Any) -> None:
    assert sequence_from_proto(contained_to_proto(sequence)) == sequence
    assert map_from_proto(contained_to_proto(map_)) == map_
    assert optional_from_proto(contained_to_proto(optional)) == optional
    assert static_from_proto(static_to_proto(static)) == static


@settings(max_examples=40, deadline=None)
@given(MAPS, st.binary(max_size=6), st.integers(0, 60))
def test_other_bytes_are_read_or_refused(map_: Map, other: bytes, cut: int) -> None:
    data = contained_to_proto(map_)
    mutated = data[:cut] + other + data[cut:]
    for read in (sequence_from_proto, optional_from_proto, map_from_proto, static_from_proto):
        try:
            read(mutated)
        except ProtoRefused as refused:
            codes = {finding.code.split(".")[0] for finding in refused.findings.items}
        else:
            codes = {"struct"}
        assert codes == {"struct"}


def test_a_paged_cache_goes_through_both_forms() -> None:
    """Pages of two formats under an unconstrained type, by number, as a value that its graph accepts."""
    wide = Declaration(Array(Leaf("FLOAT"), 1), "WIDE")
    pages = Sequence(UNCONSTRAINED, (Value(0, data=b"ab"), Value(1, data=bytes(4))))
    cache = Map((3, 9), pages)
    static = MapType("INT64", UNCONSTRAINED)
    read = map_from_proto(contained_to_proto(cache))
    assert check_contained((BYTES, wide), static_from_proto(static_to_proto(static)), read) == []


@pytest.mark.parametrize(
    "value",
    [
        Sequence(None, (Value(0), Sequence(None, ()))),
        Map((1, "a"), Sequence(None, ())),
        Map((1 << 63,), Sequence(None, ())),
        Map(("\ud800",), Sequence(None, ())),
        Optional(MapType("NO_TYPE", UNCONSTRAINED), None),
        Sequence(Declaration(Leaf("UINT8")), ()),
    ],
)
def test_what_has_no_place_is_refused(value: Any) -> None:
    with pytest.raises(CannotWrite):
        contained_to_proto(value)


def test_nesting_is_bounded() -> None:
    inner, static = Sequence(None, ()), UNCONSTRAINED
    for _ in range(5000):
        inner, static = Sequence(None, (inner,)), SequenceType(static)
    with pytest.raises(CannotWrite, match="nested"):
        contained_to_proto(inner)
    with pytest.raises(CannotWrite, match="nested"):
        static_to_proto(static)


def _sequence(build: Callable[[Any], object]) -> bytes:
    message = message_class("SequenceProto")()
    build(message)
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff", "struct.document_malformed"),
        (_sequence(lambda m: setattr(m, "elem_type", 1)), "struct.value_invalid"),
        (_sequence(lambda m: m.struct_values.add()), "struct.member_unexpected"),
        (b"\x10\x63", "struct.value_invalid"),
        (_sequence(lambda m: m.value_type.tensor_type.SetInParent()), "struct.value_invalid"),
        (_sequence(lambda m: m.value_type.SetInParent()), "struct.value_invalid"),
        (_sequence(lambda m: setattr(m.value_type.map_type, "key_type", 99)), "struct.value_invalid"),
    ],
    ids=["no message", "tensors", "two things", "no category", "tensor type", "no type", "no key type"],
)
def test_a_message_of_other_things_is_a_finding(data: bytes, code: str) -> None:
    with pytest.raises(ProtoRefused) as refused:
        sequence_from_proto(data)
    assert code in {finding.code for finding in refused.value.findings.items}


def test_keys_that_are_no_text_or_of_two_kinds_are_findings() -> None:
    for keys in ({"string_keys": [b"\xff"]}, {"keys": [1], "string_keys": [b"a"]}):
        data = message_class("MapProto")(**keys).SerializeToString()
        with pytest.raises(ProtoRefused) as refused:
            map_from_proto(data)
        assert {finding.code for finding in refused.value.findings.items} == {"struct.map_keys"}


def test_onnx_reads_what_it_knows_of_a_container() -> None:
    data = contained_to_proto(Map(("a",), Sequence(exactly(0), (Value(0),))))
    assert onnx.MapProto.FromString(data).string_keys == [b"a"]
