"""Each fault with its code, in the stated order; limits, and types that one change has broken."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.findings import FINDINGS, Finding
from ninfer_core.schemes.structs.check import check_type, check_value
from ninfer_core.schemes.structs.faults import StructFault
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Constant,
    Declaration,
    Declared,
    Dim,
    External,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
    Value,
)
from ninfer_core.schemes.structs.models import check_model, check_names, check_static
from ninfer_core.schemes.structs.sizes import size_bits, size_bytes
from ninfer_core.schemes.structs.view import leaves, view
from tests.schemes.structs import functions
from tests.schemes.structs.oracle import bits_needed
from tests.schemes.structs.strategies import declared

BYTE = Leaf("UINT8")
BYTES4 = Declaration(Array(BYTE, 4))


def _codes(findings: list[Finding]) -> list[str]:
    return [finding.code.removeprefix("struct.") for finding in findings]


def _of(
    type_: Type | None, size: int = 0, dims: tuple[int, ...] = (), limits: Limits = LIMITS, **more: Any
) -> list[str]:
    model = (Declaration(type_, **more),)
    return _codes(check_value(model, Value(0, dims=dims), limits, inline_bytes=size))


def _structure(*types: Type) -> Structure:
    return Structure(tuple(Field(f"f{index}", type_) for index, type_ in enumerate(types)))


def test_all_faults_are_found_in_the_stated_order() -> None:
    inner = Declaration(Array(BYTE, Dim(0)), dims_param=("k",))
    fields = (
        Field("", Leaf("STRING")),
        Field("a", Reference(7)),
        Field("a", PackedArray((Component("x", 0), Component("x", 65)), Dim(3))),
        Field("both", BYTE, Constant("INT32", (2,), b"\0" * 4)),
        Field("neither"),
        Field("p", Reference(0)),
        Field("l", Leaf("FLOAT", (2,))),
    )
    root = Declaration(Structure(fields), dims_param=("n",))
    findings = check_value((inner, root), Value(1, data=b"12"))
    assert [(finding.code.removeprefix("struct."), finding.where["path"]) for finding in findings] == [
        ("type_index_out_of_range", "types[1].structure[1].type"),
        ("missing_name", "types[1].structure[0]"),
        ("duplicate_name", "types[1].structure[2]"),
        ("duplicate_name", "types[1].structure[2].type.packed_array.components[1]"),
        ("field_content", "types[1].structure[3]"),
        ("field_content", "types[1].structure[4]"),
        ("bad_leaf_type", "types[1].structure[0].type"),
        ("bad_component_width", "types[1].structure[2].type.packed_array.components[0]"),
        ("bad_component_width", "types[1].structure[2].type.packed_array.components[1]"),
        ("bad_leaf_type", "types[1].structure[6].type"),
        ("bad_constant", "types[1].structure[3].constant"),
        ("dims_index_out_of_range", "types[1].structure[2].type"),
        ("unused_dimension_parameter", "types[1].dims_param[0]"),
        ("parametric_nested", "types[1].structure[5].type"),
        ("dims_count_mismatch", "value.dims"),
    ]


def test_faults_that_leave_the_size_are_found_beside_those_of_the_payload() -> None:
    twice = Structure((Field("a", BYTE), Field("a", BYTE)))
    assert _of(twice, 3) == ["duplicate_name", "payload_size_mismatch"]
    assert _of(PackedArray((Component("x", 3),), 1), 0) == ["size_not_byte_multiple", "payload_source"]


def test_the_signatures_are_looked_at_last_and_beside_the_payload() -> None:
    model = (functions.declared(functions.FAULTY["decoder_two_outputs"]),)
    codes = _codes(check_value(model, Value(0, data=b"123")))
    assert codes[0] == "payload_size_mismatch"
    assert set(codes[1:]) == set(_codes(check_type(model, Value(0)))) == {"decoder_signature"}


def test_no_signature_is_compared_with_leaves_that_have_a_fault() -> None:
    constant = Field("c", constant=Constant("STRING", (), b""))
    decoder = functions.FAULTY["decoder_two_outputs"].SerializeToString()
    model = (Declaration(Structure((*functions.PAIR.fields, constant)), decoder=decoder),)
    assert _codes(check_value(model, Value(0, data=bytes(8)))) == ["bad_constant"]


def test_only_the_functions_of_the_root_count() -> None:
    below = functions.declared(functions.FAULTY["decoder_two_outputs"])
    model = (below, Declaration(Array(Reference(0), 2)))
    assert check_value(model, Value(1, data=bytes(16))) == []


def test_only_what_a_value_reaches_is_looked_at() -> None:
    assert check_value((BYTES4, Declaration(None)), Value(0, data=b"1234")) == []
    assert _codes(check_model((BYTES4, Declaration(None)))) == ["bad_root_kind"]


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (Value(-2), ["bad_type_sentinel"]),
        (Value(-1), ["bad_type_sentinel"]),
        (Value(0, BYTES4), ["bad_type_sentinel"]),
        (Value(1), ["type_index_out_of_range"]),
        (Value(-1, BYTES4, b"1234"), []),
        (Value(-1, Declaration(Array(Reference(0), 2)), bytes(8)), []),
        (Value(-1, Declaration(Reference(0)), bytes(4)), ["bad_root_kind"]),
        (Value(0), ["payload_source"]),
        (Value(0, data=b"123"), ["payload_size_mismatch"]),
        (Value(0, external=External((("length", "4"), ("location", "w.bin"), ("offset", "0")))), []),
        (Value(0, external=External((("length", "5"),))), ["payload_size_mismatch"]),
        (Value(0, external=External((("location", "w"),))), ["payload_source"]),
        (Value(0, external=External((("length", "4"), ("length", "4")))), ["payload_source"]),
        (Value(0, external=External((("length", "-4"),))), ["payload_source"]),
        (Value(0, external=External((("length", "4.0"),))), ["payload_source"]),
        (Value(0, external=External((("length", "\u0664"),))), ["payload_source"]),  # a digit, not of ASCII
        (Value(0, external=External((("length", "9" * 5000),))), ["payload_source"]),
        (Value(0, external=External((("length", "4"), ("offset", "x")))), ["payload_source"]),
        (Value(0, data=b"1234", external=External((("length", "4"),))), ["payload_source"]),
    ],
)
def test_how_a_value_selects_its_type_and_payload(value: Value, codes: list[str]) -> None:
    assert _codes(check_value((BYTES4,), value)) == codes


def test_nothing_is_a_payload_only_of_a_type_without_size() -> None:
    assert _of(Array(BYTE, 0)) == []
    assert _of(Structure(())) == []
    assert _of(Array(BYTE, 0), 1) == ["payload_size_mismatch"]


@pytest.mark.parametrize(
    ("type_", "codes"),
    [
        (None, ["bad_root_kind"]),
        (BYTE, ["bad_root_kind"]),
        (Array(Reference(0), 1), ["type_cycle"]),
        (Array(Reference(-1), 1), ["type_index_out_of_range"]),
        (PackedArray((), 1), ["bad_component_width"]),
        (PackedArray((Component("", 8),), 0), ["missing_name"]),
        (Structure((Field("c", constant=Constant("STRING", (), b"")),)), ["bad_constant"]),
        (Structure((Field("c", constant=Constant("INT8", (-1,), b"")),)), ["bad_constant"]),
        (Structure((Field("c", constant=Constant("INT8", (2**63, 2**63), b"")),)), ["bad_constant"]),
        (Structure((Field("c", constant=Constant("UINT4", (3,), b"\0\0")),)), []),
        (Structure((Field("c", constant=Constant("UINT4", (3,), b"\0")),)), ["bad_constant"]),
        (Structure((Field("c", constant=Constant("INT8", (1,), b"\0", True)),)), ["bad_constant"]),
        (Array(BYTE, Dim(0)), ["dims_index_out_of_range"]),
        (Array(BYTE, Dim(-1)), ["dims_index_out_of_range"]),
        (Array(BYTE, -1), ["value_invalid"]),
        (Array(BYTE, 2**64), ["value_invalid"]),
        (Array(BYTE, 2**61), ["size_overflow"]),
        (_structure(Array(BYTE, 2**60), Array(BYTE, 2**60)), ["size_overflow"]),
        (PackedArray((Component("x", 64), Component("y", 64)), 2**57), ["size_overflow"]),
        (Structure((Field("a.b", Array(BYTE, 0)), Field("a", _structure(Array(BYTE, 0))))), []),
        (
            Structure((Field("a.f0", Array(BYTE, 0)), Field("a", _structure(Array(BYTE, 0))))),
            ["duplicate_name"],
        ),
    ],
)
def test_a_fault_of_a_type(type_: Type | None, codes: list[str]) -> None:
    assert _of(type_) == codes


def test_counts_of_a_value() -> None:
    parametric: dict[str, Any] = {"dims_param": ("n",)}
    assert _of(Array(BYTE, Dim(0)), 3, (3,), **parametric) == []
    assert _of(Array(BYTE, Dim(0)), 3, (-1,), **parametric) == ["value_invalid"]
    assert _of(Array(BYTE, Dim(0)), 3, (3, 3), **parametric) == ["dims_count_mismatch"]
    assert _of(_structure(Array(BYTE, Dim(0)), Array(Leaf("FLOAT16"), Dim(0))), 9, (3,), **parametric) == []


def _bytes_at(levels: int) -> Type:
    type_: Type = BYTE
    for _ in range(levels):
        type_ = Array(type_, 1)
    return type_


SMALL = Limits(4, 3, 3, 3, 8, 5, 2, 16)


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("limit_nesting", lambda n: (Declaration(_bytes_at(n + 4)),)),
        (
            "limit_nesting",
            lambda n: (
                Declaration(_bytes_at(1)),
                Declaration(_structure(Array(Array(BYTE, 1), 1), *[Array(Array(Reference(0), 1), 1)] * n)),
            ),
        ),
        ("limit_fields", lambda n: (Declaration(_structure(*[BYTE] * (3 + n))),)),
        (
            "limit_components",
            lambda n: (Declaration(PackedArray(tuple(Component(f"c{i}", 8) for i in range(3 + n)), 1)),),
        ),
        (
            "limit_declarations",
            lambda n: (
                *(Declaration(_structure(BYTE)) for _ in range(2 + n)),
                Declaration(Structure(tuple(Field(f"f{i}", Reference(i)) for i in range(2 + n)))),
            ),
        ),
        (
            "limit_constant_bytes",
            lambda n: (
                Declaration(Structure((Field("c", constant=Constant("UINT8", (8 + n,), bytes(8 + n))),))),
            ),
        ),
        (
            "limit_leaves",
            lambda n: (
                Declaration(_structure(BYTE, BYTE, *[Array(BYTE, 1)] * n)),
                Declaration(_structure(Reference(0), Reference(0), Array(BYTE, 1))),
            ),
        ),
        (
            "limit_leaves",
            lambda n: (
                Declaration(
                    Structure(
                        tuple(Field(f"c{i}", constant=Constant("UINT8", (1,), b"1")) for i in range(2 + n))
                    )
                ),
                Declaration(_structure(_structure(BYTE, BYTE), BYTE, Reference(0))),
            ),
        ),
        (
            "limit_dimension_parameters",
            lambda n: (
                Declaration(
                    _structure(*(Array(BYTE, Dim(i)) for i in range(2 + n))), dims_param=tuple("abc"[: 2 + n])
                ),
            ),
        ),
    ],
)
def test_a_limit_is_met_just_beyond_it(code: str, make: Callable[[int], tuple[Declaration, ...]]) -> None:
    for more, expected in ((0, []), (1, [code])):
        model = make(more)
        dims = (1,) * len(model[-1].dims_param)
        assert _codes(check_type(model, Value(len(model) - 1, dims=dims), SMALL)) == expected


def test_limits_that_nothing_can_be_checked_under_are_none() -> None:
    with pytest.raises(ValueError, match="nesting"):
        Limits(nesting=129)
    with pytest.raises(ValueError, match="negative"):
        Limits(leaves=-1)
    assert _of(_bytes_at(128), 1, (), Limits(nesting=128)) == []


def test_depth_and_length_of_a_hostile_model_are_no_danger() -> None:
    far = 5 * sys.getrecursionlimit()
    assert _of(_bytes_at(far)) == ["limit_nesting"]
    chain = (*(Declaration(Array(Reference(index + 1), 1)) for index in range(far)), BYTES4)
    assert "limit_nesting" in _codes(check_type(chain, Value(0), Limits(declarations=2 * far)))
    assert _codes(check_type(chain, Value(0))) == ["limit_declarations"]
    ring = tuple(Declaration(Array(Reference((index + 1) % 3000), 1)) for index in range(3000))
    assert "type_cycle" in _codes(check_model(ring))


def test_a_root_that_reaches_too_much_is_judged_no_further() -> None:
    fields = tuple(Field(f"f{index}", Reference(index)) for index in range(3))
    root = Declaration(Structure((*fields, Field("", Array(BYTE, Dim(0))))), dims_param=("n",))
    value = Value(3, dims=(1,))
    assert _codes(check_type((BYTES4, BYTES4, BYTES4, root), value, Limits(declarations=3))) == [
        "limit_declarations"
    ]


def test_the_constants_of_a_model_are_limited_root_by_root() -> None:
    one = Declaration(Structure((Field("c", constant=Constant("UINT8", (5,), bytes(5))),)))
    assert check_model((one, one), SMALL) == []
    both = Declaration(_structure(Reference(0), Reference(1)))
    assert _codes(check_type((one, one, both), Value(2), SMALL)) == ["limit_constant_bytes"]


def test_names_are_asked_of_a_model_and_not_of_a_value() -> None:
    model = (replace(BYTES4, name="a"), BYTES4, replace(BYTES4, name="a"))
    assert _codes(check_names(model)) == ["missing_name", "duplicate_name"]
    assert check_model(model) == []


def test_a_model_is_sized_where_no_value_is_needed() -> None:
    huge = Declaration(Array(BYTE, 2**61))
    open_ = Declaration(Array(Array(BYTE, Dim(0)), 2**61), dims_param=("n",))
    assert _codes(check_model((BYTES4, huge, open_))) == ["size_overflow"]


@pytest.mark.parametrize(
    ("form", "codes"),
    [
        (Declaration(None), []),
        (Declaration(Reference(0)), []),
        (Declaration(Reference(1)), ["type_index_out_of_range"]),
        (Declaration(Reference(0), decoder=b""), ["static_form_extras"]),
        (Declaration(None, name="n"), ["static_form_extras"]),
        (Declaration(None, dims_param=("n",)), ["static_form_extras"]),
        (Declaration(None, metadata=(("k", "v"),)), ["static_form_extras"]),
        (Declaration(Array(BYTE, 1)), ["static_form_extras"]),
    ],
)
def test_static_types(form: Declaration, codes: list[str]) -> None:
    assert _codes(check_static(form, (BYTES4,))) == codes


def test_every_code_is_registered_and_says_what_to_do() -> None:
    for definition in FINDINGS:
        if definition.check == "struct":
            assert all((definition.meaning, definition.causes, definition.remedy, definition.where))


# One change that breaks any sound type; each leads to its code whatever else the type holds.
def _wrapped(type_: Type | None, more: Field) -> Structure:
    assert type_ is not None
    return Structure((Field("whole", type_), more))


BREAKS: dict[str, Callable[[Declaration], Declaration]] = {
    "duplicate_name": lambda root: replace(root, type=_wrapped(root.type, Field("whole", BYTE))),
    "missing_name": lambda root: replace(root, type=_wrapped(root.type, Field("", BYTE))),
    "field_content": lambda root: replace(root, type=_wrapped(root.type, Field("x"))),
    "bad_leaf_type": lambda root: replace(root, type=_wrapped(root.type, Field("x", Leaf("COMPLEX64")))),
    "bad_constant": lambda root: replace(
        root, type=_wrapped(root.type, Field("x", constant=Constant("INT16", (1,), b"1")))
    ),
    "bad_component_width": lambda root: replace(
        root, type=_wrapped(root.type, Field("x", PackedArray((Component("c", 0),), 1)))
    ),
    "type_index_out_of_range": lambda root: replace(
        root, type=_wrapped(root.type, Field("x", Reference(99)))
    ),
    "size_overflow": lambda root: replace(root, type=_wrapped(root.type, Field("x", Array(BYTE, 2**61)))),
    "dims_count_mismatch": lambda root: replace(
        root,
        type=_wrapped(root.type, Field("x", Array(BYTE, Dim(len(root.dims_param))))),
        dims_param=(*root.dims_param, "z"),
    ),
    "unused_dimension_parameter": lambda root: replace(root, dims_param=(*root.dims_param, "z")),
    "dims_index_out_of_range": lambda root: replace(
        root, type=_wrapped(root.type, Field("x", Array(BYTE, Dim(len(root.dims_param)))))
    ),
    "payload_size_mismatch": lambda root: replace(root, type=_wrapped(root.type, Field("x", BYTE))),
    "size_not_byte_multiple": lambda root: replace(root, type=_wrapped(root.type, Field("x", Leaf("UINT4")))),
    "bad_root_kind": lambda root: replace(root, type=None),
}


@given(declared(), st.sampled_from(sorted(BREAKS)))
@settings(max_examples=30)
def test_a_broken_type_is_refused_with_its_code(found: Declared, code: str) -> None:
    size = bits_needed(found) // 8
    value = Value(found.root, dims=found.dims)
    assert check_value(found.declarations, value, inline_bytes=size) == []
    assert check_model(found.declarations) == []
    model = (*found.declarations[:-1], BREAKS[code](found.declarations[-1]))
    codes = _codes(check_value(model, value, inline_bytes=size))
    # A type without any bits has no payload at all, which is said instead of a wrong length.
    assert code in codes or (code == "payload_size_mismatch" and codes == ["payload_source"] and not size)
    broken = replace(found, declarations=model)
    if code != "payload_size_mismatch":
        for ask in (size_bytes, size_bits, leaves, lambda one: view(one, bytes(size))):
            if not (code == "size_not_byte_multiple" and ask in (size_bits, leaves)):
                with pytest.raises(StructFault):
                    ask(broken)
