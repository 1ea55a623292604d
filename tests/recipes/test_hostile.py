"""Documents with any member replaced by anything: there is always an answer, and never an exception."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.findings import Findings
from ninfer_core.recipes import parse_recipe
from ninfer_core.targets import registered_recipe
from tests.recipes.build import RULE, W, document, parsed

TEXT = registered_recipe("mini_hybrid_mixed-v1")
JUNK = [None, True, -1, 0, 1, 2**53 + 1, 10**50, 1.5, "", "x", "{l}", "{", "*", "F32", "tensor", [], [[]], {}, {"op": "rows"}, {"": {}}]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for name, member in value.items():
            found += places(member, (*path, name))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            found += places(member, (*path, index))
    return found


WHOLE = json.loads(TEXT or b"{}")
PLACES = places(WHOLE)[1:]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(JUNK)), min_size=1, max_size=3))
def test_any_member_may_be_anything(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    whole = copy.deepcopy(WHOLE)
    for path, junk in changes:
        holder = whole
        try:
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = junk
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    findings = Findings()
    recipe = parse_recipe(json.dumps(whole).encode(), findings)
    assert (recipe is None) == bool(findings.errors)
    for finding in findings:
        assert finding.about == "recipe"
        assert finding.message


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(PLACES))
def test_any_member_may_be_missing(path: tuple[Any, ...]) -> None:
    whole = copy.deepcopy(WHOLE)
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    findings = Findings()
    recipe = parse_recipe(json.dumps(whole).encode(), findings)
    assert (recipe is None) == bool(findings.errors)


def test_a_deep_tree_is_refused_as_text() -> None:
    tree: Any = W
    for _ in range(70):
        tree = {"op": "reshape", "shape": [8], "of": tree}
    assert parsed(document([{**RULE, "value": tree}]))[0] == [("structure.json_depth", "$")]


def test_a_broad_tree_of_many_objects_is_bounded() -> None:
    wide = {"op": "concat_rows", "of": [{**W, "name": "w{l}"}] * 1000}
    rules = [{**RULE, "object": "o{l}", "each": {"l": "s"}, "value": wide}]
    faults = parsed(document(rules, sets={"s": list(range(5000))}))[0]
    assert faults == [("too_many_objects", "$.rules[0]")]


@pytest.mark.parametrize("count", [2**24 + 1, 2**52])
def test_lists_of_row_numbers_are_bounded(count: int) -> None:
    ids = {"op": "tensor", "from": "base", "name": "i", "shape": [count], "dtype": "I32"}
    rules = [
        {**RULE, "value": {"op": "gather_rows", "ids": "ids", "of": W}},
        {"object": "ids", "value": ids, "format": "I32", "encode": "copy_words"},
    ]
    assert parsed(document(rules))[0] == [("operation_shape", "$.rules[0].value")]
