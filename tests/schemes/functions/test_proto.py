"""The protobuf form: exact round trips, hostile bytes, and the numbers that the draft publishes."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Constant,
    Declaration,
    Dim,
    External,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Value,
)
from ninfer_core.schemes.structs.proto_messages import message_class
from ninfer_core.schemes.structs.proto_numbers import ADDED_FIELDS, NEW_MESSAGES
from ninfer_core.schemes.structs.proto_reading import (
    ProtoRefused,
    declaration_from_proto,
    model_from_proto,
    value_from_proto,
)
from ninfer_core.schemes.structs.proto_writing import (
    CannotWrite,
    declaration_to_proto,
    model_to_proto,
    value_to_proto,
)

NAMES = st.text("ab_é", max_size=3)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
COUNTS = st.integers(0, (1 << 64) - 1) | st.builds(Dim, INT32)
LEAF = st.builds(
    Leaf,
    st.sampled_from([*(leaf.name for leaf in LEAVES), "STRING", "UNDEFINED"]),
    st.lists(st.integers(-3, 3), max_size=2).map(tuple),
)
CONSTANTS = st.builds(
    Constant,
    st.sampled_from([leaf.name for leaf in LEAVES]),
    st.lists(st.integers(-2, 3), max_size=2).map(tuple),
    st.binary(max_size=5),
    st.booleans(),
)
PACKED = st.builds(PackedArray, st.lists(st.builds(Component, NAMES, INT32), max_size=3).map(tuple), COUNTS)


def _deeper(inner: st.SearchStrategy) -> st.SearchStrategy:
    field = st.builds(Field, NAMES, st.none() | inner, st.none() | CONSTANTS, NAMES)
    return st.builds(Array, inner, COUNTS) | st.builds(Structure, st.lists(field, max_size=3).map(tuple))


TYPES = st.recursive(LEAF | PACKED | st.builds(Reference, INT32), _deeper, max_leaves=6)
FUNCTION = helper.make_function(
    "", "f", ["x"], ["y"], [helper.make_node("Identity", ["x"], ["y"])], [helper.make_opsetid("", 25)]
).SerializeToString(deterministic=True)
DECLARATIONS = st.builds(
    Declaration,
    st.none() | TYPES.filter(lambda t: not isinstance(t, Leaf)),
    NAMES,
    NAMES,
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple),
    st.none() | st.just(FUNCTION),
    st.none() | st.just(b""),
)
VALUES = st.builds(
    Value,
    INT32,
    st.none() | DECLARATIONS,
    st.binary(max_size=4),
    st.none() | st.builds(External, st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=2).map(tuple)),
    NAMES,
    NAMES,
    st.lists(st.integers(0, (1 << 64) - 1), max_size=2).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.lists(DECLARATIONS, max_size=2).map(tuple))
def test_what_is_written_reads_back(value: Value, model: tuple[Declaration, ...]) -> None:
    assert value_from_proto(value_to_proto(value)) == value
    assert model_from_proto(model_to_proto(model)) == model
    for declaration in model:
        assert declaration_from_proto(declaration_to_proto(declaration)) == declaration


@settings(max_examples=60, deadline=None)
@given(VALUES, st.data())
def test_mutated_bytes_are_read_or_refused_with_findings(value: Value, data: st.DataObject) -> None:
    mutated = bytearray(value_to_proto(value))
    for _ in range(data.draw(st.integers(0, 3))):
        if mutated:
            mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(mutated[: data.draw(st.integers(0, len(mutated)))])
    for read in (value_from_proto, declaration_from_proto, model_from_proto):
        codes = _codes(read, cut)
        assert codes is None or (codes and all(code.startswith("struct.") for code in codes))


def _codes(read: Callable[[bytes], object], data: bytes) -> list[str] | None:
    """The codes of a refusal, None where the bytes are read."""
    try:
        read(data)
    except ProtoRefused as refused:
        return [finding.code for finding in refused.findings.items]
    return None


def _nested(levels: int) -> Declaration:
    inner: Array | Leaf = Leaf("UINT8")
    for _ in range(levels):
        inner = Array(inner, 1)
    return Declaration(inner)


def test_nesting_that_protobuf_cannot_read_is_not_written() -> None:
    deepest = next(n for n in range(20, 60) if not _writes(Value(-1, _nested(n + 1))))
    value = Value(-1, _nested(deepest))
    assert deepest == 32
    assert value_from_proto(value_to_proto(value)) == value
    with pytest.raises(CannotWrite, match="nested"):
        value_to_proto(Value(-1, _nested(5000)))


def _writes(value: Value) -> bool:
    try:
        value_to_proto(value)
    except CannotWrite:
        return False
    return True


@pytest.mark.parametrize(
    "value",
    [
        Value(1 << 31),
        Value(0, dims=(1 << 64,)),
        Value(0, dims=(-1,)),
        Value(0, name="\ud800"),
        Value(0, external=External(())),
        Value(-1, Declaration(Leaf("UINT8"))),
        Value(-1, Declaration(Array(Leaf("NO_SUCH_TYPE"), 1))),
        Value(-1, Declaration(Array(Leaf("UINT8"), -1))),
        Value(-1, Declaration(Reference(0), decoder=b"\xff")),
        Value(-1, Declaration(Reference(0), decoder=FUNCTION.replace(b"Iden", b"Ide\xff"))),
        Value(-1, Declaration(Structure((Field("a", constant=Constant("NONE", (), b"")),)))),
    ],
)
def test_what_has_no_place_is_refused(value: Value) -> None:
    with pytest.raises(CannotWrite):
        value_to_proto(value)


def _message(build: object) -> bytes:
    message = message_class("StructProto")(type=-1)
    build(message.struct_type)  # type: ignore[operator]
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda t: t.array.element_type.tensor_type.shape.SetInParent(), "struct.member_missing"),
        (lambda t: setattr(t.array, "dimension", 1), "struct.bad_leaf_type"),
        (lambda t: setattr(t.array.element_type.tensor_type, "elem_type", 2), "struct.bad_leaf_type"),
        (lambda t: setattr(t.array.element_type.tensor_type, "elem_type", 99), "struct.bad_leaf_type"),
        (lambda t: setattr(t.array.element_type, "denotation", "x"), "struct.member_unexpected"),
        (lambda t: t.array.element_type.sequence_type.SetInParent(), "struct.bad_leaf_type"),
        (lambda t: t.array.element_type.struct_type.SetInParent(), "struct.bad_leaf_type"),
        (lambda t: setattr(t.array.element_type.struct_type, "name", "x"), "struct.static_form_extras"),
        (lambda t: t.structure.field.add().constant.string_data.append(b"x"), "struct.bad_constant"),
        (lambda t: setattr(t.structure.field.add().constant, "data_type", 99), "struct.bad_constant"),
    ],
)
def test_a_message_without_a_place_in_the_model_is_a_finding(build: object, code: str) -> None:
    with pytest.raises(ProtoRefused) as refused:
        value_from_proto(_message(build))
    assert code in {finding.code for finding in refused.value.findings.items}


def test_a_string_that_is_no_utf8_is_a_finding() -> None:
    broken = model_to_proto((Declaration(Array(Leaf("UINT8"), 1), "AB", decoder=FUNCTION),)).replace(
        b"AB", b"A\xa3"
    )
    inside = model_to_proto((Declaration(Array(Leaf("UINT8"), 1), decoder=FUNCTION),)).replace(
        b"Iden", b"Ide\xff"
    )
    for data, path in ((broken, "struct_types[0].name"), (inside, "struct_types[0].decoder.node[0].op_type")):
        with pytest.raises(ProtoRefused) as refused:
            model_from_proto(data)
        (finding,) = refused.value.findings.items
        assert (finding.code, finding.where["path"]) == ("struct.value_invalid", path)


def test_an_unknown_field_is_a_finding_and_not_lost() -> None:
    with pytest.raises(ProtoRefused) as refused:
        value_from_proto(b"\x08\x00\xa0\x06\x01")  # field 100
    (finding,) = refused.value.findings.items
    assert (finding.code, finding.found) == ("struct.member_unexpected", "100")


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf.name != "BOOL"], ids=lambda leaf: leaf.name)
def test_constants_are_read_from_typed_and_from_raw_data(leaf: object) -> None:
    name = leaf.name  # type: ignore[attr-defined]
    dtype = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(name))
    array = np.arange(4).astype(dtype)
    raw = numpy_helper.from_array(array)
    typed = helper.make_tensor("", raw.data_type, array.shape, array.tolist())
    read = []
    for tensor in (raw, typed):
        data = tensor.SerializeToString()
        message = _message(lambda t, d=data: t.structure.field.add(name="c").constant.ParseFromString(d))
        declaration = value_from_proto(message).declaration
        assert declaration is not None
        assert isinstance(declaration.type, Structure)
        constant = declaration.type.fields[0].constant
        assert constant is not None
        read.append((constant.dtype, constant.dims, constant.data))
    assert not typed.raw_data
    assert read[0] == read[1] == (name, (4,), raw.raw_data)


@pytest.mark.parametrize(
    "tensor",
    [
        onnx.TensorProto(data_type=2, dims=[1], int32_data=[300]),
        onnx.TensorProto(data_type=2, dims=[1], float_data=[1]),
        onnx.TensorProto(data_type=27, dims=[1], int32_data=[64]),
        onnx.TensorProto(data_type=1, dims=[1], int32_data=[1]),
        onnx.TensorProto(data_type=2, dims=[1], int32_data=[1], raw_data=b"\x01"),
        onnx.TensorProto(data_type=12, dims=[1], uint64_data=[1 << 32]),
    ],
)
def test_a_constant_whose_data_is_not_its_own_is_refused(tensor: onnx.TensorProto) -> None:
    data = tensor.SerializeToString()
    with pytest.raises(ProtoRefused) as refused:
        value_from_proto(_message(lambda t: t.structure.field.add().constant.ParseFromString(data)))
    assert {finding.code for finding in refused.value.findings.items} == {"struct.bad_constant"}


@example(1)
@given(st.integers(0, 3))
@settings(max_examples=3, deadline=None)
def test_onnx_reads_the_messages_that_it_knows(extra: int) -> None:
    """A function inside of a declaration, and a model with declarations, stay ONNX's own messages on the wire."""
    model = model_to_proto((Declaration(Array(Leaf("UINT8"), extra), "A", decoder=FUNCTION),))
    declaration = model_from_proto(model)[0]
    assert declaration.decoder is not None
    assert onnx.FunctionProto.FromString(declaration.decoder).node[0].op_type == "Identity"
    assert onnx.ModelProto.FromString(model).graph == onnx.GraphProto()


def test_the_published_numbers_are_on_the_wire() -> None:
    """Section 1 of struct types, written by hand: field number and wire type of each byte."""
    field = Field("a", Leaf("UINT8"), doc="b")
    value = Value(-1, Declaration(Structure((field,)), "n"), b"\x07", name="v", doc="w", dims=(5,))
    leaf = b"\x0a\x04\x08\x02\x12\x00"
    structure = b"\x0a\x0e" + b"\x0a\x01a" + b"\x12\x06" + leaf + b"\x1a\x01b"
    declared = b"\x12\x10" + structure + b"\x42\x01n"
    expected = (
        b"\x08" + b"\xff" * 9 + b"\x01" + b"\x12\x15" + declared + b"\x1a\x01\x07\x2a\x01v\x32\x01w\x38\x05"
    )
    assert value_to_proto(value) == expected
    packed = Declaration(PackedArray((Component("c", 3),), Dim(0)), dims_param=("n",))
    assert declaration_to_proto(packed) == b"\x1a\x09\x0a\x05\x0a\x01c\x10\x03\x18\x00\x5a\x01n"


def test_our_own_numbers_collide_with_none_of_onnx() -> None:
    for name, rows in {**ADDED_FIELDS, **NEW_MESSAGES}.items():
        numbers = [field.number for field in message_class(name).DESCRIPTOR.fields]
        assert len(numbers) == len(set(numbers))
        if name in ADDED_FIELDS and hasattr(onnx, name):
            known = {field.number for field in getattr(onnx, name).DESCRIPTOR.fields}
            assert not known & {row.number for row in rows}
