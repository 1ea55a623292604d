"""Types as boxes: places, repetition, constants, and what is nested."""

import pytest

from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.drawing import Box, draw, draw_word, flat
from ninfer_core.schemes.run import complete
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
)
from ninfer_core.schemes.structs.sizes import size_bits
from ninfer_core.schemes.structs.view import leaves

PAIR = Structure(
    (
        Field("low", Leaf("UINT4")),
        Field("table", constant=Constant("FLOAT", (2, 3), bytes(24))),
        Field("half", Leaf("FLOAT16")),
        Field("codes", PackedArray((Component("sign", 1), Component("rest", 3)), 5)),
    )
)
DECLARED = Declared(
    (
        Declaration(PAIR, name="PAIR"),
        Declaration(
            Structure((Field("head", Leaf("UINT8")), Field("pairs", Array(Array(Reference(0), 3), Dim(0))))),
            name="PAIRS",
            dims_param=("n",),
        ),
    ),
    1,
    (2,),
)


def test_a_nested_type_is_drawn_with_its_places() -> None:
    root = draw(DECLARED)
    assert (root.name, root.what, root.total) == ("PAIRS", "structure", size_bits(DECLARED))
    head, pairs = root.inside
    assert (head.offset, head.bits) == (0, 8)
    assert (pairs.offset, pairs.counts, pairs.bits) == (8, (2, 3), 40)
    low, table, half, codes = pairs.inside
    assert [box.offset for box in (low, table, half, codes)] == [0, 4, 4, 20]
    assert (table.constant, table.total, table.what) == (True, 0, "FLOAT[2][3]")
    assert (half.what, codes.counts, codes.bits) == ("FLOAT16", (5,), 4)
    assert [(box.name, box.offset, box.bits) for box in codes.inside] == [("sign", 0, 1), ("rest", 1, 3)]
    assert [depth for depth, _ in flat(root)] == [0, 1, 1, 2, 2, 2, 2, 3, 3]


def test_the_places_are_those_of_the_leaves() -> None:
    starts = {plan.path: plan.offset_bits for plan in leaves(DECLARED) if plan.constant is None}
    drawn: dict[str, int] = {}

    def place(box: Box, path: str, at: int) -> None:
        for inner in box.inside:
            name = f"{path}.{inner.name}" if path else inner.name
            if not inner.inside and not inner.constant:
                drawn[name] = at + inner.offset
            place(inner, name, at + inner.offset)

    place(draw(DECLARED), "", 0)
    assert drawn == starts


def test_what_has_no_layout() -> None:
    with pytest.raises(ValueError, match="no kind"):
        draw(Declared((Declaration(None),), 0))
    circle = Declared((Declaration(Array(Reference(0), 2)),), 0)
    with pytest.raises(ValueError, match="deeper"):
        draw(circle)


def test_a_word_of_codes_is_drawn_lowest_first() -> None:
    word = draw_word(FORMS["gptq"], complete(FORMS["gptq"], {"bits": 4}))
    assert word is not None
    assert (word.bits, len(word.inside)) == (32, 8)
    assert [box.offset for box in word.inside] == list(range(0, 32, 4))
    assert draw_word(FORMS["ggml_q4_0"], {}) is None
