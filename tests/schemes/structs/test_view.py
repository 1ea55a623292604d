"""Sizes and views against the slow reader of `oracle`, and the types and copies that a view promises."""

from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from ninfer_core.schemes.structs import bits
from ninfer_core.schemes.structs.faults import StructFault
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Constant,
    Declaration,
    Declared,
    Dim,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
)
from ninfer_core.schemes.structs.sizes import size_bits, size_bytes
from ninfer_core.schemes.structs.view import leaves, view
from tests.schemes.structs.oracle import WIDTHS, Reader
from tests.schemes.structs.strategies import with_payload


def _root(type_: Type, *dims: int) -> Declared:
    return Declared((Declaration(type_, dims_param=("n", "m")[: len(dims)]),), 0, dims)


@given(with_payload())
@settings(max_examples=40)
def test_a_view_reads_what_reading_bit_by_bit_reads(case: tuple[Declared, bytes]) -> None:
    declared, payload = case
    read = Reader(declared, payload)
    with patch.object(bits, "_MAX_PHASES", 0):  # the way of many odd strides, for every leaf
        one_by_one = [leaf.words.tolist() for leaf in view(declared, payload)]
    assert read.used == size_bits(declared) == 8 * len(payload) == 8 * size_bytes(declared)
    found = view(declared, payload)
    assert [leaf.plan.path for leaf in found] == list(read.leaves)
    assert leaves(declared) == tuple(leaf.plan for leaf in found)
    for leaf, expected in zip(found, read.leaves.values(), strict=True):
        assert leaf.words.tolist() == one_by_one.pop(0)
        assert leaf.words.shape == leaf.array.shape == leaf.plan.shape == expected.shape
        if expected.constant is None:
            assert leaf.words.reshape(-1).tolist() == expected.words
        else:
            # A constant of a tensor is packed as a payload of one array would be.
            flat = Array(Leaf(expected.constant.dtype), leaf.words.size)
            spare = -leaf.words.size * WIDTHS[expected.constant.dtype] % 8
            pad = Field("pad", PackedArray((Component("zero", spare),), 1)) if spare else None
            alone = Structure((Field("a", flat), *([pad] if pad else [])))
            again = Reader(_root(alone), expected.constant.data)
            assert leaf.words.reshape(-1).tolist() == again.leaves["a"].words


def test_widths_are_those_of_the_specification() -> None:
    assert {leaf.name: leaf.bits for leaf in LEAVES} == WIDTHS


def test_the_worked_read_of_the_specification() -> None:
    fields = (Field("lo", Leaf("UINT4")), Field("h", Leaf("FLOAT16")), Field("hi", Leaf("UINT4")))
    lo, h, hi = view(_root(Structure(fields)), bytes.fromhex("51c0a3"))
    assert (int(lo.array), float(h.array), int(hi.array)) == (1, 1.0048828125, 10)
    assert h.words == 0x3C05


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("BOOL", np.bool_),
        ("INT2", np.int8),
        ("INT4", np.int8),
        ("UINT2", np.uint8),
        ("UINT4", np.uint8),
        ("FLOAT4E2M1", np.uint8),
        ("FLOAT6E2M3", np.uint8),
        ("FLOAT6E3M2", np.uint8),
        ("FLOAT8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("FLOAT8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz),
        ("FLOAT8E5M2", ml_dtypes.float8_e5m2),
        ("FLOAT8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz),
        ("FLOAT8E8M0", ml_dtypes.float8_e8m0fnu),
        ("FLOAT16", np.float16),
        ("BFLOAT16", ml_dtypes.bfloat16),
        ("FLOAT", np.float32),
        ("DOUBLE", np.float64),
        *((f"{sign}INT{bits}", f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
    ],
)
def test_a_leaf_has_the_type_that_holds_it(name: str, dtype: object) -> None:
    payload = bytes(range(64))
    declared = _root(Array(Leaf(name), 512 // WIDTHS[name] if 512 % WIDTHS[name] == 0 else 84))
    payload = payload[: size_bytes(declared)]
    (leaf,) = view(declared, payload)
    assert leaf.array.dtype == np.dtype(dtype)  # type: ignore[call-overload]
    assert leaf.plan.element.onnx == LEAVES[name].onnx


def test_signs_are_extended_and_codes_are_not() -> None:
    assert view(_root(Array(Leaf("INT4"), 2)), b"\x8f")[0].array.tolist() == [-1, -8]
    assert view(_root(Array(Leaf("UINT4"), 2)), b"\x8f")[0].array.tolist() == [15, 8]
    assert view(_root(Array(Leaf("INT2"), 4)), b"\xe4")[0].array.tolist() == [0, 1, -2, -1]
    assert view(_root(Array(Leaf("FLOAT4E2M1"), 2)), b"\x8f")[0].array.tolist() == [15, 8]


def test_aligned_native_leaves_are_not_copied_and_nothing_can_be_written() -> None:
    block = Structure((Field("d", Leaf("FLOAT16")), Field("qs", Array(Leaf("UINT8"), 16))))
    payload = np.arange(180, dtype=np.uint8)
    d, qs = view(_root(Array(block, 10)), payload)
    assert np.shares_memory(d.array, payload)
    assert np.shares_memory(qs.array, payload)
    assert qs.array.shape == (10, 16)
    for leaf in (d, qs, *view(_root(Array(Leaf("UINT4"), 360)), payload)):
        assert not leaf.words.flags.writeable


def test_a_bool_is_true_for_any_word_but_zero() -> None:
    (leaf,) = view(_root(Array(Leaf("BOOL"), 3)), b"\x00\x01\x80")
    assert leaf.array.tolist() == [False, True, True]
    assert leaf.words.tolist() == [0, 1, 128]


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("width", [1, 7, 9, 31, 33, 57, 58, 63, 64])
def test_a_component_at_every_bit_of_a_byte(start: int, width: int) -> None:
    word = 0x9E3779B97F4A7C15 >> (64 - width)
    end = -(start + width) % 8
    parts = [("low", start), ("it", width), ("high", end)]
    packed = PackedArray(tuple(Component(name, wide) for name, wide in parts if wide), 1)
    stored = (1 << start) - 1 | word << start | ((1 << end) - 1) << (start + width)
    payload = stored.to_bytes((start + width + end) // 8, "little")
    for most in (0, 512):
        with patch.object(bits, "_MAX_PHASES", most):
            found = {leaf.plan.path: leaf.words.tolist() for leaf in view(_root(packed), payload)}
        assert found[".it"] == [word]


def test_many_odd_strides_are_read_element_by_element() -> None:
    # Six levels of odd sizes: the groups of equal phase would be almost as many as the elements.
    type_: Type = Leaf("UINT2")
    for level in range(6):
        type_ = Structure(
            (Field(f"a{level}", Array(type_, 5)), Field(f"b{level}", PackedArray((Component("x", 1),), 1)))
        )
    type_ = Structure((Field("all", type_), Field("pad", PackedArray((Component("p", 4),), 1))))
    declared = _root(type_)
    payload = np.random.default_rng(5).bytes(size_bytes(declared))
    read = Reader(declared, payload).leaves
    for leaf in view(declared, payload):
        assert leaf.words.reshape(-1).tolist() == read[leaf.plan.path].words


def test_constants_of_a_shared_declaration_are_one_leaf_at_their_first_position() -> None:
    constant = Constant("INT32", (), b"\x07\0\0\0")
    inner = Declaration(Structure((Field("v", Leaf("INT8")), Field("k", constant=constant))))
    root = Declaration(
        Structure(
            (Field("a", Reference(0)), Field("b", Array(Reference(0), 2)), Field("k", constant=constant))
        )
    )
    declared = Declared((inner, root), 1)
    assert [plan.path for plan in leaves(declared)] == ["a.v", "a.k", "b.v", "k"]


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_payload_of_another_size_is_not_viewed(size: int) -> None:
    with pytest.raises(StructFault, match="payload_size_mismatch"):
        view(_root(Array(Leaf("UINT8"), 3)), bytes(size))


def test_what_would_be_unpacked_is_limited_and_what_is_only_viewed_is_not() -> None:
    few = Limits(values=4)
    assert view(_root(Array(Leaf("UINT8"), 8)), bytes(8), few)[0].words.size == 8
    (leaf,) = view(_root(Array(Leaf("UINT4"), 8)), bytes(4), few)
    with pytest.raises(StructFault, match="limit_values"):
        _ = leaf.words


def test_an_empty_leaf_of_a_shape_that_no_array_has() -> None:
    declared = _root(Array(Array(Array(Leaf("FLOAT"), 0), 2**40), 2**40))
    assert size_bytes(declared) == 0
    (leaf,) = view(declared, b"")
    with pytest.raises(StructFault, match="limit_values"):
        _ = leaf.array


@pytest.mark.parametrize("counts", [(0, 2**63, 2**63), (2**63, 0, 2**63), (2**63, 2**63, 0)])
def test_zero_is_fine_wherever_it_stands(counts: tuple[int, ...]) -> None:
    type_: Type = Leaf("DOUBLE")
    for count in reversed(counts):
        type_ = Array(type_, count)
    assert size_bits(_root(type_)) == 0


def test_the_largest_size_and_the_first_beyond() -> None:
    whole = _root(Array(Leaf("UINT8"), Dim(0)), 2**61 - 1)
    assert size_bits(whole) == 2**64 - 8
    with pytest.raises(StructFault, match="size_overflow"):
        size_bits(_root(Array(Leaf("UINT8"), Dim(0)), 2**61))


def test_shared_declarations_are_not_walked_once_for_each_way() -> None:
    # Thirty declarations of two references each: 2**30 ways, and not one leaf.
    empty = Declaration(Structure(()))
    model = [empty]
    for level in range(30):
        model.append(Declaration(Structure((Field("a", Reference(level)), Field("b", Reference(level))))))
    assert leaves(Declared(tuple(model), 30)) == ()
    model[0] = Declaration(Structure((Field("v", Leaf("UINT8")),)))
    with pytest.raises(StructFault, match="limit_leaves"):
        leaves(Declared(tuple(model), 30))
