"""What a recipe demands of its own objects holds of everything that is written: a breach refuses, and publishes nothing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import Conversion, convert
from ninfer_core.recipes import Plan
from tests.convert.test_draft import convert_by_shards
from tests.recipes.build import bound, document, folder, tensor

Json = dict[str, Any]

NAN, ONE = 0x7FC00000, 0x3F800000
FLOATS = np.array([ONE, ONE, 0x40000000, 0xC0000001], "<u4")
IDS = np.array([3, 1, 2, 1], "<i4")
STORED = {
    "f": ("F32", [4], FLOATS.tobytes()),
    "n": ("F32", [2], np.array([ONE, NAN], "<u4").tobytes()),
    "i": ("I32", [4], IDS.tobytes()),
}


def rule(name: str, fmt: str, value: Json) -> Json:
    return {"object": name, "format": fmt, "encode": "copy_words", "value": value}


RULES = [
    rule("f", "FP32", tensor("f", [4], "F32")),
    rule("n", "FP32", tensor("n", [2], "F32")),
    rule("i", "I32", tensor("i", [4], "I32")),
]


def plan_of(basis: str, name: str, demand: str, **members: int) -> Plan:
    stated = {"scope": {"object": name}, "rule": demand, "basis": basis, **members}
    found, plan, _ = bound(document(RULES, restrictions=[stated]), {"base": folder(STORED)})
    assert plan is not None, found
    return plan


def both_ways(plan: Plan, tmp_path: Path) -> Conversion:
    """One process and shard by shard: the same document, and a file in both cases or in none."""
    straight, out, work = (tmp_path / name for name in ("straight", "out", "work"))
    for made in (straight, out, work):
        made.mkdir()
    conversion = convert(plan, straight / "a.ninfer")
    assert convert_by_shards(plan, out / "a.ninfer", work, 1).as_json() == conversion.as_json()
    assert [path.read_bytes() for path in straight.iterdir()] == [path.read_bytes() for path in out.iterdir()]
    assert len(list(straight.iterdir())) == conversion.written
    return conversion


BREACHES = [
    ("i", "int_range", {"min": 0, "max": 2}),
    ("i", "unique", {}),
    ("f", "unique", {}),
    ("f", "finite_positive", {}),
    ("f", "fp32_low16_zero", {}),
    ("n", "stored_finite", {}),
]


@pytest.mark.parametrize("basis", ["contract", "derived"])
@pytest.mark.parametrize(("name", "demand", "members"), BREACHES)
def test_a_breach_is_refused(name: str, demand: str, members: Json, basis: str, tmp_path: Path) -> None:
    conversion = both_ways(plan_of(basis, name, demand, **members), tmp_path)
    assert not conversion.written
    (finding,) = conversion.findings
    assert (finding.code, finding.object, finding.severity) == (f"restrictions.{demand}", name, "error")


@pytest.mark.parametrize(("name", "demand", "members"), BREACHES)
def test_what_is_only_recommended_is_said(name: str, demand: str, members: Json, tmp_path: Path) -> None:
    conversion = both_ways(plan_of("recommended", name, demand, **members), tmp_path)
    assert conversion.written
    (finding,) = conversion.findings
    assert (finding.code, finding.object, finding.severity) == (f"restrictions.{demand}", name, "advisory")


def test_what_is_met_is_silent(tmp_path: Path) -> None:
    conversion = both_ways(plan_of("contract", "i", "int_range", min=1, max=3), tmp_path)
    assert conversion.written
    assert not conversion.findings


def related(top_ids: list[int] | None = None, special: str = "2") -> Plan:
    """A ranking whose list is 4, 2, 0, and a copied list without id 5; `special` is the id of the copied list."""
    ranked = {
        "op": "ranked_token_ids",
        "ranking": "ranking",
        "row_width": 6,
        "candidates": 6,
        "count": 3,
        "special_ids_from": "tokens",
    }
    counts = np.array([5, 0, 7, 1, 9, 0], "<i8")
    ranking = {"kind": "i64-le-rows", "row_width": 6, "rows": 1, "used_row": 0}
    files = [
        {"object": name, "from": "base", "file": name, "encode": "copy_bytes"} for name in ("tokens", "own")
    ]
    whole = document(
        [rule("ranked", "I32", ranked), rule("i", "I32", tensor("i", [4], "I32"))],
        inputs={"ranking": {**ranking, **({} if top_ids is None else {"top_ids": top_ids})}},
        resources=files,
        restrictions=[
            {"scope": {"object": "i"}, "rule": "contains_special_ids", "from": "own", "basis": "contract"}
        ],
    )
    texts = {
        name: json.dumps({"added_tokens_decoder": {token: {"special": True}}}).encode()
        for name, token in (("tokens", "0"), ("own", special))
    }
    base = folder({"i": STORED["i"]}, **texts)
    found, plan, _ = bound(whole, {"base": base}, {"ranking": counts.tobytes()})
    assert plan is not None, found
    return plan


def test_relations_that_hold(tmp_path: Path) -> None:
    conversion = both_ways(related([4, 2]), tmp_path)
    assert conversion.written, conversion.findings


@pytest.mark.parametrize(
    ("members", "code", "name"),
    [
        ({"top_ids": [4, 0]}, "relations.top_ids_differ", "ranked"),
        ({"special": "5"}, "relations.special_id_missing", "i"),
    ],
)
def test_a_broken_relation_is_refused(members: Json, code: str, name: str, tmp_path: Path) -> None:
    conversion = both_ways(related(**members), tmp_path)
    assert not conversion.written
    assert [(one.code, one.object) for one in conversion.findings] == [(code, name)]


def test_copied_rows_that_no_encoder_left_behind(tmp_path: Path) -> None:
    matrix = {"op": "fp8_row_matrix", "from": "base", "prefix": "m", "shape": [2, 4]}
    rules = [
        {"object": "m", "format": "FP8_E4M3FN_ROW_BF16S", "encode": "copy_fp8_row_words", "value": matrix}
    ]
    stated = {"scope": {"object": "m"}, "rule": "canonical_fp8_row_shape", "basis": "derived"}
    codes, scales = np.full((2, 4), 0x7E, np.uint8), np.full((2, 1), 0x3F80, "<u2")
    for largest, written in ((0x7E, True), (0x7D, False)):
        codes[1] = largest
        stored = {
            "m.weight": ("F8_E4M3", [2, 4], codes.tobytes()),
            "m.weight_scale": ("BF16", [2, 1], scales.tobytes()),
        }
        _, plan, _ = bound(document(rules, restrictions=[stated]), {"base": folder(stored)})
        assert plan is not None
        case = tmp_path / str(largest)
        case.mkdir()
        conversion = both_ways(plan, case)
        assert conversion.written == written
        assert [one.code for one in conversion.findings] == (
            [] if written else ["restrictions.canonical_fp8_row_shape"]
        )
