"""Shortlists of token ids against a plain reading of their definition; special tokens of a config; hostile inputs."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.findings import Findings
from ninfer_core.recipes import Bundle, TensorPlan
from ninfer_core.recipes.ranking import ranked_ids, special_ids
from ninfer_core.sources.json_text import parse_object
from tests.recipes.build import bound, document, folder, parsed, tensor

counts = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])


def plainly(count_of: list[int], count: int, forced: list[int]) -> list[int]:
    """Section 4 of the targets' page, sentence by sentence."""
    order = sorted(range(len(count_of)), key=lambda number: (-count_of[number], number))
    picked = [number for number in order if number not in forced][: count - len(forced)]
    return sorted([*picked, *sorted(forced)], key=lambda number: -count_of[number])


@settings(deadline=None, max_examples=400)
@given(st.lists(counts, min_size=1, max_size=30), st.data())
def test_ids_are_those_of_the_definition(count_of: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(count_of)))
    forced = data.draw(st.lists(st.integers(0, len(count_of) - 1), max_size=count, unique=True))
    found = ranked_ids(np.array(count_of, np.int64), count, forced)
    assert found.tolist() == plainly(count_of, count, forced)


def test_within_one_count_forced_ids_come_last() -> None:
    assert ranked_ids(np.array([5, 5, 5, 5, 9], np.int64), 4, [1, 0]).tolist() == [4, 2, 0, 1]


def config(**entries: Any) -> dict[str, Any]:
    return {"added_tokens_decoder": {name: {"special": flag} for name, flag in entries.items()}}


@pytest.mark.parametrize(
    ("document", "ids", "faults"),
    [
        (config(**{"7": True, "2": True, "3": False}), (2, 7), 0),
        ({"added_tokens_decoder": {}}, (), 0),
        ({"added_tokens_decoder": {"0": {"content": "x"}}}, (), 0),
        ({}, (), 1),
        ({"added_tokens_decoder": []}, (), 1),
        (config(**{"07": True, "+1": True, " 2": True, "": True, "\u0663": True, "1e3": True, "-1": True}), (), 7),
        ({"added_tokens_decoder": {"1": {"special": 1}, "2": None, "3": "x"}}, (), 3),
        (config(**{"9" * 20: True}), (), 1),
    ],
)  # fmt: skip
def test_special_ids(document: Any, ids: tuple[int, ...], faults: int) -> None:
    root = parse_object(json.dumps(document).encode(), 8, "tokenizer_config.json", Findings())
    assert root is not None
    found, wrong = special_ids(root)
    assert (found, len(wrong)) == (ids, faults)


IDS = {
    "op": "ranked_token_ids",
    "ranking": "ranking",
    "row_width": 8,
    "candidates": 6,
    "count": 3,
    "special_ids_from": "tokens",
}
HEAD = tensor("head", [8, 2], "BF16")
WORDS = np.arange(16, dtype="<u2")
ROWS = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [9, 1, 7, 1, 1, 8, 99, 99]], "<i8")


def shortlist(special: Any = None, rows: bytes = ROWS.tobytes(), **members: Any) -> tuple[list[str], Any]:
    """Codes, and the plan of an id list and of the rows gathered by it; the used row is the second."""
    rules = [
        {"object": "rows", "value": {"op": "gather_rows", "ids": "ids", "of": HEAD}, "format": "BF16", "encode": "copy_words"},
        {"object": "ids", "value": {**IDS, **members}, "format": "I32", "encode": "copy_words"},
    ]  # fmt: skip
    whole = document(
        rules,
        inputs={"ranking": {"kind": "i64-le-rows", "row_width": 8, "rows": 2, "used_row": 1}},
        resources=[{"object": "tokens", "from": "base", "file": "t.json", "encode": "copy_bytes"}],
    )
    text = config(**{"4": True}) if special is None else special
    others = {} if text is False else {"t.json": json.dumps(text).encode()}
    base = folder({"head": ("BF16", [8, 2], WORDS.tobytes())}, **others)
    codes, plan, _ = bound(whole, {"base": base}, {"ranking": rows})
    return codes, plan


def test_rows_are_gathered_by_what_another_rule_makes() -> None:
    codes, plan = shortlist()
    assert codes == []
    rows, ids = (item for item in plan.objects if isinstance(item, TensorPlan))
    assert not isinstance(ids.value, Bundle)
    assert not isinstance(rows.value, Bundle)
    assert ids.value.read(0, 3).tolist() == [0, 5, 4]
    assert (ids.inputs, rows.inputs, rows.sources) == (("ranking",), (), (("base", "head"),))
    assert rows.value.read(0, 6).tolist() == [0, 1, 10, 11, 8, 9]
    assert (ids.evidence_kind, rows.evidence_kind) == ("derived-exact", "copied-exact")


@pytest.mark.parametrize(
    ("special", "code"),
    [
        ({}, "source.special_ids_invalid"),
        (config(**{"6": True}), "source.special_ids_invalid"),  # counted, but no candidate
        (config(**{"0": True, "1": True, "2": True, "3": True}), "source.special_ids_invalid"),
        (config(x=True), "source.special_ids_invalid"),
        ([], "structure.json_root"),
        (False, "source.file_missing"),
    ],
)
def test_special_tokens_that_cannot_be_forced(special: Any, code: str) -> None:
    assert shortlist(special)[0] == [code]


def test_a_ranking_of_another_size() -> None:
    assert shortlist(rows=ROWS.tobytes()[:-8])[0] == ["source.file_size_mismatch"]


@pytest.mark.parametrize("number", [8, -1, 2**31, 2**40])
def test_a_row_that_is_not_there(number: int) -> None:
    rules = [
        {"object": "rows", "value": {"op": "gather_rows", "ids": "ids", "of": HEAD}, "format": "BF16", "encode": "copy_words"},
        {"object": "ids", "value": {"op": "cast", "to": "I32", "of": tensor("i", [2], "I64")}, "format": "I32", "encode": "copy_words"},
    ]  # fmt: skip
    stored = np.array([1, number], "<i8").tobytes()
    base = folder({"head": ("BF16", [8, 2], WORDS.tobytes()), "i": ("I64", [2], stored)})
    codes, _, findings = bound(document(rules), {"base": base})
    assert codes == ["source.id_out_of_range"]
    assert findings.items[0].where["index"] == 1


def test_ids_that_gather_themselves_are_refused() -> None:
    ids = {"op": "gather_rows", "ids": "a", "of": tensor("x", [4], "I32")}
    rules = [{"object": "a", "value": ids, "format": "I32", "encode": "copy_words"}]
    assert parsed(document(rules))[0] == [("ids_undefined", "$.rules[0].value.ids")]


@pytest.mark.parametrize(("candidates", "faults"), [(1 << 24, []), ((1 << 24) + 1, [".candidates"])])
def test_candidates_fit_memory_and_words_of_i32(candidates: int, faults: list[str]) -> None:
    width = 1 << 40  # of rows that nobody reads to their end
    value = {**IDS, "row_width": width, "candidates": candidates}
    found, _, _ = parsed(
        document(
            [{"object": "ids", "value": value, "format": "I32", "encode": "copy_words"}],
            inputs={"ranking": {"kind": "i64-le-rows", "row_width": width, "rows": 1, "used_row": 0}},
            resources=[{"object": "tokens", "from": "base", "file": "t.json", "encode": "copy_bytes"}],
        )
    )
    assert found == [("value_invalid", f"$.rules[0].value{place}") for place in faults]
