"""Sequences, maps and optionals of values under static types, exact and unconstrained."""

import pytest

from ninfer_core.schemes.structs.containers import (
    UNCONSTRAINED,
    Contained,
    Map,
    MapType,
    Optional,
    OptionalType,
    Sequence,
    SequenceType,
    StaticType,
    check_contained,
    exactly,
)
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.model import Array, Declaration, Dim, Leaf, Reference, Value

MODEL = (
    Declaration(Array(Leaf("FLOAT8E4M3FN"), 4)),
    Declaration(Array(Leaf("INT4"), 4)),
    Declaration(Array(Leaf("UINT8"), Dim(0)), dims_param=("n",)),
)
FP8, INT4, MANY = Value(0, data=bytes(4)), Value(1, data=bytes(2)), Value(2, data=bytes(3), dims=(3,))
INLINE = Value(-1, MODEL[0], bytes(4))
PAGES = (FP8, INT4, MANY, INLINE)


def _codes(static: StaticType, value: Contained, limits: Limits | None = None) -> list[tuple[str, str]]:
    found = check_contained(MODEL, static, value, limits or Limits())
    return [(finding.code.removeprefix("struct."), finding.where["path"]) for finding in found]


def test_pages_of_several_formats_in_one_unconstrained_sequence() -> None:
    assert _codes(SequenceType(UNCONSTRAINED), Sequence(UNCONSTRAINED, PAGES)) == []
    cache = Map((7, 9, 11, 13), Sequence(UNCONSTRAINED, PAGES))
    assert _codes(MapType("INT64", UNCONSTRAINED), cache) == []


def test_a_reference_accepts_values_of_that_declaration_alone() -> None:
    found = _codes(SequenceType(exactly(0)), Sequence(exactly(0), PAGES))
    assert found == [("static_type_mismatch", f"value.values[{index}]") for index in (1, 2, 3)]
    assert _codes(exactly(1), INT4) == []
    assert _codes(exactly(2), MANY) == []  # counts belong to the value


@pytest.mark.parametrize(
    "make", [lambda stated: Sequence(stated, (FP8,)), lambda stated: Optional(stated, FP8)]
)
@pytest.mark.parametrize(
    ("stated", "codes"),
    [
        (exactly(0), []),
        (None, ["value_type_missing"]),
        (UNCONSTRAINED, ["value_type_disagrees"]),
        (exactly(1), ["value_type_disagrees"]),
        (SequenceType(exactly(0)), ["value_type_disagrees"]),
    ],
)
def test_a_container_says_its_element_type(make: type, stated: StaticType | None, codes: list[str]) -> None:
    value: Contained = make(stated)
    static = (SequenceType if isinstance(value, Sequence) else OptionalType)(exactly(0))
    assert [code for code, _ in _codes(static, value)] == codes


def test_an_optional_may_hold_nothing_and_still_says_of_what() -> None:
    assert _codes(OptionalType(exactly(0)), Optional(exactly(0), None)) == []
    assert _codes(OptionalType(exactly(0)), Optional(None, None)) == [("value_type_missing", "value")]


def test_the_faults_of_each_value_are_found_at_its_place() -> None:
    short = Value(0, data=bytes(3))
    value = Sequence(UNCONSTRAINED, (FP8, short, Value(9)))
    assert _codes(SequenceType(UNCONSTRAINED), value) == [
        ("payload_size_mismatch", "value.values[1].raw_data"),
        ("type_index_out_of_range", "value.values[2].type"),
    ]


def test_containers_in_containers() -> None:
    inner = SequenceType(exactly(0))
    right = Sequence(inner, (Sequence(exactly(0), (FP8,)), Sequence(exactly(0), ())))
    assert _codes(SequenceType(inner), right) == []
    wrong = Sequence(inner, (Sequence(exactly(0), (INT4,)), FP8))
    assert _codes(SequenceType(inner), wrong) == [
        ("static_type_mismatch", "value.values[0].values[0]"),
        ("static_type_mismatch", "value.values[1]"),
    ]


@pytest.mark.parametrize(
    ("key", "keys", "count"),
    [
        ("INT64", (1, 1), 1),
        ("INT64", (1,), 1),
        ("INT64", (1, "2"), 1),
        ("STRING", (1, 2), 1),
        ("STRING", ("a", "b"), 0),
    ],
)
def test_keys_of_a_map(key: str, keys: tuple[int | str, ...], count: int) -> None:
    found = _codes(MapType(key, exactly(0)), Map(keys, Sequence(exactly(0), (FP8, FP8))))
    assert found == [("map_keys", "value.keys")] * count


def test_other_categories_and_faulty_static_types() -> None:
    assert _codes(UNCONSTRAINED, Sequence(UNCONSTRAINED, ())) == [("static_type_mismatch", "value")]
    assert _codes(SequenceType(UNCONSTRAINED), FP8) == [("static_type_mismatch", "value")]
    assert _codes(MapType("INT64", UNCONSTRAINED), FP8) == [("static_type_mismatch", "value")]
    extras = Declaration(Reference(0), decoder=b"x")
    assert _codes(SequenceType(extras), Sequence(extras, ())) == [("static_form_extras", "static.element")]


def test_depth_is_limited() -> None:
    static: StaticType = exactly(0)
    value: Contained = FP8
    for _ in range(3):
        value = Sequence(static, (value,))
        static = SequenceType(static)
    assert _codes(static, value, Limits(nesting=4)) == []
    assert {code for code, _ in _codes(static, value, Limits(nesting=3))} == {"limit_nesting"}
