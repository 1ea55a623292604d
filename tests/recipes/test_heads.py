"""Draft heads and the heads that they are rows of: found object by object, however the rules are written."""

from typing import Any

import pytest

from ninfer_core.recipes import relations
from ninfer_core.recipes.claims import MAX_PAIRS
from tests.recipes.build import document, parsed, recipe_of, tensor

Json = dict[str, Any]
ENCODER = "MAXABS_F16_RECIP_RNE_V1"
IDS = {"object": "ids", "format": "I32", "encode": "copy_words", "value": tensor("i", [4], "I32")}
SETS = {"one": [0], "two": [0, 1]}


def head(name: str, source: str, fmt: str = "Q6G64_F16S", **members: Any) -> Json:
    return {
        "object": name,
        "format": fmt,
        "encode": ENCODER,
        "value": tensor(source, [8, 64], "BF16"),
        **members,
    }


def draft(name: str, source: str, **members: Any) -> Json:
    value = {"op": "gather_rows", "ids": "ids", "of": tensor(source, [8, 64], "BF16")}
    return {"object": name, "format": "Q4G64_F16S", "encode": ENCODER, "value": value, **members}


def pairs(*rules: Json) -> list[tuple[str, str]]:
    recipe = recipe_of(document([IDS, *rules], sets=SETS))
    return [(pair.draft, pair.head) for pair in relations(recipe).head_pairs if pair.ids == "ids"]


@pytest.mark.parametrize("each", [{}, {"each": {"n": "one"}}])
@pytest.mark.parametrize("other", [{}, {"each": {"m": "one"}}])
def test_a_set_of_one_is_no_hiding_place(each: Json, other: Json) -> None:
    n, m = ("{n}" if each else "0"), ("{m}" if other else "0")
    rules = head(f"head/{m}", f"w{m}", **other), draft(f"draft/{n}", f"w{n}", **each)
    assert pairs(*rules) == [("draft/0", "head/0")]


def test_every_object_has_its_own_operand() -> None:
    each = {"each": {"n": "two"}}
    rules = [head("head/{n}", "w{n}", **each), draft("draft/{n}", "w{n}", **each), head("again", "w1")]
    assert pairs(*rules) == [("draft/0", "head/0"), ("draft/1", "head/1"), ("draft/1", "again")]


def test_what_is_no_encode_of_the_same_matrix_is_no_head() -> None:
    foreign = {name: member for name, member in head("foreign", "w").items() if name != "encode"}
    foreign["producer"] = {"name": "other", "version": "1"}
    plain = {**head("plain", "w", "BF16"), "encode": "copy_words"}
    rows = head("rows", "w", value={"op": "rows", "begin": 0, "end": 8, "of": tensor("w", [8, 64], "BF16")})
    assert pairs(draft("draft", "w"), foreign, plain, rows, head("v", "v")) == []


def test_pairs_are_bounded() -> None:
    sets = {"many": list(range(MAX_PAIRS // 2 + 1)), "two": [0, 1]}
    rules = [IDS, head("head/{n}", "w", each={"n": "many"}), draft("draft/{n}", "w", each={"n": "two"})]
    assert parsed(document(rules, sets=sets))[0] == [("too_many_objects", "$.rules")]
