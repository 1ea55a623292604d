"""All 41 accepted and 42 refused reference cases; those that only words describe are built here as the words say."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.schemes.structs.check import check_value
from ninfer_core.schemes.structs.conformance import Case, read_cases
from ninfer_core.schemes.structs.model import (
    Array,
    Declaration,
    Declared,
    Field,
    Leaf,
    Reference,
    Structure,
    Type,
    Value,
)
from ninfer_core.schemes.structs.profile_checks import check_decision_tree, check_paged_kv
from tests.schemes.structs import functions

PATH = Path(__file__).parents[2] / "vectors" / "struct_types" / "cases.json"
TEXT = PATH.read_bytes()
CASES: dict[str, list[dict[str, Any]]] = json.loads(TEXT)
FOUND = read_cases(TEXT, PATH.name)
assert isinstance(FOUND, tuple)
JUDGED = {case.name: case for case in FOUND}
WORDS = [case.name for case in FOUND if case.outcome == "described"]


def test_every_case_is_judged() -> None:
    assert (len(CASES["accept"]), len(CASES["reject"])) == (41, 42)
    assert list(JUDGED) == [case["name"] for case in (*CASES["accept"], *CASES["reject"])]


@pytest.mark.parametrize("name", [case["name"] for case in CASES["accept"]])
def test_an_accepted_case_has_no_finding_and_all_that_it_states(name: str) -> None:
    assert JUDGED[name] == Case(name, "", "passed", ())


@pytest.mark.parametrize(
    "case", [case for case in CASES["reject"] if case["name"] not in WORDS], ids=lambda c: c["name"]
)
def test_a_refused_case_has_its_code_first(case: dict[str, Any]) -> None:
    judged = JUDGED[case["name"]]
    assert (judged.expected, judged.outcome) == (f"struct.{case['code']}", "passed")
    codes = [finding.code for finding in judged.findings]
    # The count that points outside leaves the only parameter unused, which is a fault of its own.
    also = {"dims_index_out_of_range": ["struct.unused_dimension_parameter"]}
    assert codes == [f"struct.{case['code']}", *also.get(case["name"], [])]


@pytest.mark.parametrize("member", ["size_bits", "size_bytes", "leaves"])
def test_a_case_that_states_something_else_fails(member: str) -> None:
    case = next(dict(case) for case in CASES["accept"] if case["name"] == "int4_kv_page_small")
    if member == "leaves":
        values = [dict(leaf) for leaf in case["leaves"]]
        values[1]["values"] = [0.5, *values[1]["values"][1:]]
        case["leaves"] = values
    else:
        case[member] += 8
    (judged,) = read_cases(json.dumps({"accept": [case]}).encode(), "one") or ()
    assert isinstance(judged, Case)
    assert judged.outcome == "failed"
    assert [finding.code for finding in judged.findings] == ["struct.expectation_differs"]


def test_a_refused_case_that_has_no_fault_fails() -> None:
    case = {
        "name": "fine",
        "code": "type_cycle",
        "types": [{"structure": []}],
        "root": 0,
        "payload_bytes": 0,
    }
    (judged,) = read_cases(json.dumps({"reject": [case]}).encode(), "one") or ()
    assert isinstance(judged, Case)
    assert judged.outcome == "failed"


def _judged(**lists: Any) -> list[tuple[str, list[str]]]:
    cases = read_cases(json.dumps(lists).encode(), "one") or ()
    assert isinstance(cases, tuple)
    return [(case.outcome, [finding.code for finding in case.findings]) for case in cases]


def test_a_refused_case_without_a_code_does_not_pass() -> None:
    sound = {"types": [{"structure": []}], "root": 0}
    broken = {"types": [{"type_index": 9}], "root": 0}
    found = _judged(reject=[sound, broken])
    assert [(outcome, codes[0]) for outcome, codes in found] == [("failed", "struct.member_missing")] * 2


def test_no_case_passes_by_a_payload_that_nobody_reads() -> None:
    case = {"types": [{"structure": []}], "root": 0, "payload_file": "w.bin"}
    assert _judged(accept=[case]) == [("failed", ["struct.member_unexpected"])]


def _nested(levels: int) -> Type:
    type_: Type = Leaf("UINT8")
    for _ in range(levels):
        type_ = Array(type_, 1)
    return type_


def _codes(declaration: Declaration, size: int) -> list[str]:
    findings = check_value((declaration,), Value(0), inline_bytes=size)
    return [finding.code.removeprefix("struct.") for finding in findings]


def _tree(child: int) -> list[str]:
    case = next(case for case in CASES["accept"] if case["name"] == "decision_tree_7_nodes")
    payload = bytearray.fromhex(case["payload_hex"])
    payload[13:17] = child.to_bytes(4, "little", signed=True)  # after kind, feature_id and threshold: left
    node = Structure(
        tuple(
            Field(
                field["name"],
                Leaf(field["type"]) if isinstance(field["type"], str) else Array(Leaf("FLOAT"), 3),
            )
            for field in case["types"][0]["structure"]
        )
    )
    nodes = Field("nodes", Array(Reference(0), 7))
    declared = Declared((Declaration(node), Declaration(Structure((nodes,)))), 1)
    return [finding.code.removeprefix("struct.") for finding in check_decision_tree(declared, payload)]


def _pages(*shapes: tuple[int, ...]) -> list[str]:
    model = tuple(functions.declared(functions.reshaped(*shape)) for shape in shapes)
    found = check_paged_kv(model, [Value(index) for index in range(len(model))])
    return [finding.code.removeprefix("struct.") for finding in found]


# What the words of each case describe, as the codes that come of building it.
BUILT: dict[str, Callable[[], list[str]]] = {
    "too_deep": lambda: _codes(Declaration(_nested(200)), 1),
    "tree_child_out_of_range": lambda: _tree(7),
    "kv_decoder_signature": lambda: _pages((4,), (2, 2)),
    **{name: partial(_codes, functions.declared(faulty), 8) for name, faulty in functions.FAULTY.items()},
    "encoder_type_mismatch": lambda: _codes(
        functions.declared(functions.DECODER, functions.encoder(functions.DOUBLE)), 8
    ),
}


def test_the_cases_in_words_are_all_built() -> None:
    assert sorted(BUILT) == sorted(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_a_case_in_words_has_its_code_and_no_other(name: str) -> None:
    expected = next(case["code"] for case in CASES["reject"] if case["name"] == name)
    assert set(BUILT[name]()) == {expected}


def test_what_the_built_cases_differ_from_has_no_fault() -> None:
    assert _codes(Declaration(_nested(64)), 1) == []
    assert _codes(Declaration(_nested(65)), 1) == ["limit_nesting"]
    assert _tree(6) == _tree(-1) == []
    assert _tree(-2) == ["profile_tree_child"]
    assert _pages((4,), (4,)) == []
    assert _codes(functions.declared(functions.DECODER, functions.encoder()), 8) == []


def test_a_page_without_a_decoder_or_with_a_faulty_type() -> None:
    model = (functions.declared(functions.DECODER), Declaration(functions.PAIR), Declaration(None))
    found = check_paged_kv(model, [Value(0), Value(1), Value(2), Value(9)])
    assert [(finding.code, finding.where["path"]) for finding in found] == [
        ("struct.profile_kv_signature", "pages[1]"),
        ("struct.bad_root_kind", "types[2]"),
        ("struct.type_index_out_of_range", "pages[3].type"),
    ]
