"""Where two JSON documents differ: every innermost member, and no other."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.documents.contrast import contradictions, differences, whole_difference

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "1"]) | st.just(0.5)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def told(a: Any, b: Any) -> list[tuple[str, str | None, str | None]]:
    return [(item.path, item.a, item.b) for item in differences("r", a, b)]


@given(DOCUMENTS, DOCUMENTS)
def test_equal_documents_and_no_others_have_no_differences(a: Any, b: Any):
    same = json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    assert (not told(a, b)) == same
    assert not told(a, a)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"x": 1, "y": [1, {"z": 2}]}, {"x": 1, "y": [1, {"z": 3}]}, [("r.y[1].z", "2", "3")]),
        ({"x": 1}, {"y": None}, [("r.x", "1", None), ("r.y", None, "null")]),
        ([1], [1, 2], [("r", "[1]", "[1, 2]")]),
        (True, 1, [("r", "true", "1")]),
        (0, False, [("r", "0", "false")]),
        (1, 1.0, []),
        ("1", 1, [("r", '"1"', "1")]),
        ({"x": {}}, {"x": []}, [("r.x", "{}", "[]")]),
        ("a\x1b\ud800", "b", [("r", '"a\\u001b\\ud800"', '"b"')]),
    ],
)
def test_each_difference_is_told_once(a: Any, b: Any, expected: list[tuple[str, str | None, str | None]]):
    assert told(a, b) == expected


def test_long_texts_are_shown_where_they_part():
    a, b = "x" * 1000 + "left" + "y" * 1000, "x" * 1000 + "right" + "y" * 1000
    (difference,) = differences("r", a, b)
    assert difference.a is not None
    assert difference.b is not None
    assert "left" in difference.a
    assert "right" in difference.b
    assert max(len(difference.a), len(difference.b)) < 200


def test_what_is_shown_is_bounded():
    name, value = "k" * 300_000, {str(index): "x" * 1000 for index in range(5000)}
    found = list(differences("r", {name: {"a": value, "b": 1}}, {name: {"b": 2}}))
    assert len(found) == 2
    for difference in found:
        assert len(difference.path) < 1200
        assert len(difference.a or "") < 200


def test_an_empty_path_is_the_document():
    assert [item.path for item in differences("", {"a": {"b": 1}}, {"a": {"b": 2}})] == ["a.b"]


def test_a_contradiction_takes_two():
    known = {"id": {"a": "1", "b": "2"}, "more": 3}
    assert [item.path for item in contradictions("p", {"id": {"a": "9"}, "own": 1}, known)] == ["p.id.a"]
    assert [item.path for item in contradictions("p", {"id": "9"}, known)] == ["p.id"]
    assert not list(contradictions("p", {}, known))


def test_one_difference_as_a_whole():
    found = whole_difference("p", None, {"a": [1]})
    assert (found.path, found.a, found.b) == ("p", None, '{"a": [1]}')
