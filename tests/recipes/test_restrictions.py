"""Restrictions, foreign producers and targets of recipes: what each reads, and each fault of it."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.convert import Draft
from ninfer_core.findings import Findings
from ninfer_core.recipes import Recipe, claims, parse_recipe
from ninfer_core.recipes.producers import Bound, Producer, refuse_foreign
from ninfer_core.recipes.restrictions import matches
from ninfer_core.targets import Target, parse_target
from ninfer_core.verify.pool import Pool
from tests.recipes.build import RULE, W, bound, document, folder, parsed, recipe_of, tensor

Json = dict[str, Any]
FINITE = {"scope": {"format": "FP32"}, "rule": "stored_finite", "basis": "recommended"}
RESOURCE = {"object": "r", "from": "base", "file": "r.txt", "encode": "copy_bytes"}


def restriction(**members: Any) -> Json:
    return {name: member for name, member in {**FINITE, **members}.items() if member is not None}


@settings(deadline=None, max_examples=500)
@given(st.text("ab/*", max_size=8), st.text("ab/", max_size=10))
def test_globs(glob: str, name: str) -> None:
    pattern = ".*".join(map(re.escape, glob.split("*")))
    assert matches(glob, name) == bool(re.fullmatch(pattern, name))


FAULTS: list[tuple[Any, list[tuple[str, str]]]] = [
    (7, [("value_type", "")]),
    (restriction(basis=None), [("member_missing", "")]),
    (restriction(basis="law"), [("value_invalid", ".basis")]),
    (restriction(rule="finite"), [("value_invalid", ".rule")]),
    (restriction(scope={}), [("value_invalid", ".scope")]),
    (restriction(scope={"objects": "w"}), [("member_unexpected", ".scope"), ("value_invalid", ".scope")]),
    (restriction(scope={"format": "F32"}), [("value_invalid", ".scope.format")]),
    (restriction(scope={"encode": "copy"}), [("value_invalid", ".scope.encode")]),
    (restriction(scope={"object": "x*"}), [("scope_empty", ".scope")]),
    (restriction(scope={"object": "w", "format": "BF16"}), [("scope_empty", ".scope")]),
    (restriction(min=1), [("member_unexpected", "")]),
    (restriction(rule="int_range", min=3, max=2), [("value_invalid", ".max")]),
    (restriction(rule="int_range", min=3.5, max=10), [("value_type", ".min")]),
    (restriction(rule="int_range"), [("member_missing", "")] * 2),
    (restriction(rule="contains_special_ids", **{"from": "s"}), [("resource_undefined", ".from")]),
    (restriction(rule="canonical_group_shape"), [("restriction_unsuitable", "")]),
    (restriction(rule="int_range", min=1, max=2), [("restriction_unsuitable", "")]),
]


@pytest.mark.parametrize(("stated", "faults"), FAULTS)
def test_faults(stated: Any, faults: list[tuple[str, str]]) -> None:
    found = parsed(document(restrictions=[stated]))[0]
    assert found == [(code, f"$.restrictions[0]{place}") for code, place in faults]


def test_claims_are_those_whose_scope_covers_the_object() -> None:
    rules = [
        RULE,
        {**RULE, "object": "a/b/w"},
        {**RULE, "object": "i", "value": tensor("i", [2], "I32"), "format": "I32"},
    ]
    stated = [
        FINITE,
        restriction(scope={"object": "*/w"}, basis="derived"),
        restriction(scope={"encode": "copy_words", "object": "i"}, rule="int_range", min=-5, max=7, basis="contract"),
        restriction(scope={"object": "i"}, rule="contains_special_ids", **{"from": "r"}),
        restriction(scope={"format": "BF16"}),  # of no object here, and no fault
    ]  # fmt: skip
    covering = claims(recipe_of(document(rules, restrictions=stated, resources=[RESOURCE])))
    places = {name: [claim.path for claim in found] for name, found in covering.items()}
    assert places == {
        "w": ["$.restrictions[0]"],
        "a/b/w": ["$.restrictions[0]", "$.restrictions[1]"],
        "i": ["$.restrictions[2]", "$.restrictions[3]"],
    }
    limits, special = covering["i"]
    assert (limits.minimum, limits.maximum, limits.severity) == (-5, 7, "error")
    assert (special.source, special.severity) == ("r", "advisory")


def test_restrictions_of_many_objects_are_bounded() -> None:
    rules = [{**RULE, "object": "w{l}", "each": {"l": "s"}}]
    whole = document(rules, sets={"s": list(range(5000))}, restrictions=[FINITE] * 1000)
    assert parsed(whole)[0] == [("too_many_objects", "$.restrictions")]


PRODUCER = {"name": "other", "version": "2.1", "document": "https://example.org/other", "bound": None}
MATRIX = tensor("m", [128, 64], "F32")


def foreign(producer: Any, **members: Any) -> Json:
    whole = {"object": "o", "value": MATRIX, "format": "NVFP4", "producer": producer, **members}
    return {name: member for name, member in whole.items() if member is not None}


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        (PRODUCER, Producer("other", "2.1", "https://example.org/other", None)),
        ({"name": "x", "version": "1"}, Producer("x", "1", None, None)),
        ({**PRODUCER, "document": None, "bound": "half a step"}, Producer("other", "2.1", None, None, "half a step")),
        (
            {**PRODUCER, "bound": {"max_scale_error": 0.5, "nmse": 0}},
            Producer("other", "2.1", "https://example.org/other", Bound(max_scale_error=0.5, nmse=0.0)),
        ),
    ],
)  # fmt: skip
def test_producers(stated: Json, kept: Producer) -> None:
    (rule,) = recipe_of(document([foreign(stated)])).rules
    assert (rule.producer, rule.encode, rule.maker) == (kept, None, kept.name)


@pytest.mark.parametrize(
    ("rule", "faults"),
    [
        (foreign("x"), [("value_type", ".producer")]),
        (foreign({"name": "x"}), [("member_missing", ".producer")]),
        (foreign({**PRODUCER, "by": 1}), [("member_unexpected", ".producer")]),
        (foreign({**PRODUCER, "bound": 1}), [("value_type", ".producer.bound")]),
        (foreign({**PRODUCER, "bound": {}}), [("value_invalid", ".producer.bound")]),
        (foreign({**PRODUCER, "bound": {"psnr": 1}}), [("member_unexpected", ".producer.bound")]),
        (foreign({**PRODUCER, "bound": {"nmse": -1}}), [("value_invalid", ".producer.bound.nmse")]),
        (foreign({**PRODUCER, "bound": {"nmse": True}}), [("value_type", ".producer.bound.nmse")]),
        (foreign(PRODUCER, encode="copy_words"), [("value_invalid", ".encode")]),
        (foreign(PRODUCER, encode="other"), []),
        (foreign(PRODUCER, format="FP32"), [("encoder_format", "")]),
        (foreign(PRODUCER, value=tensor("m", [128, 64], "I32")), [("encoder_dtype", "")]),
    ],
)
def test_faults_of_producers(rule: Json, faults: list[tuple[str, str]]) -> None:
    found = parsed(document([rule]))[0]
    assert found == [(code, f"$.rules[0]{place}") for code, place in faults]


def test_convert_names_every_foreign_object_and_writes_none() -> None:
    whole = document([foreign(PRODUCER), foreign({**PRODUCER, "name": "third"}, object="p"), {**RULE}])
    base = folder({"m": ("F32", [128, 64], b"\0" * 128 * 64 * 4), "w": ("F32", [2, 4], b"\0" * 32)})
    codes, plan, _ = bound(whole, {"base": base})
    assert codes == []
    assert plan is not None
    findings = Findings()
    refuse_foreign(plan.recipe, findings)
    (finding,) = findings
    assert (finding.code, finding.about, finding.severity) == ("recipe.producer_foreign", "recipe", "error")
    assert (finding.where["objects"], finding.where["producers"]) == (["o", "p"], ["other", "third"])
    draft = Draft(plan, "x.ninfer", 2, None, Pool(1))
    assert not draft.tasks
    evidence = [item.evidence_kind for item in plan.objects]  # type: ignore[union-attr]
    assert evidence == ["legal-only", "legal-only", "copied-exact"]


def target(objects: list[Json]) -> Target:
    whole = {
        "schema": "ninfer-target/1",
        "identity": {"model_id": "tiny", "weights_id": "test"},
        "layouts": {"FP32": "contiguous-le-v1", "BF16": "contiguous-le-v1"},
        "objects": objects,
    }
    findings = Findings()
    found = parse_target(json.dumps(whole).encode(), findings)
    assert found is not None, [finding.message for finding in findings]
    return found


def object_(name: str, fmt: str = "FP32", shape: tuple[int, ...] = (2, 4), **members: Any) -> Json:
    return {"tensor": name, "shape": list(shape), "format": fmt, **members}


def fitted(whole: Json, contract: Target) -> tuple[list[tuple[str, list[str]]], Recipe | None]:
    findings = Findings()
    recipe = parse_recipe(json.dumps(whole).encode(), findings, target=contract)
    assert (recipe is None) == bool(findings.errors)
    return [(f.code.removeprefix("recipe."), list(f.where.get("objects", ()))) for f in findings], recipe


def plain(name: str, **members: Any) -> Json:
    return {"object": name, "value": W, "encode": "copy_words", **members}


def test_formats_and_order_come_from_the_target() -> None:
    contract = target([object_("b"), object_("a")])
    faults, recipe = fitted(document([plain("a"), plain("b")]), contract)
    assert faults == []
    assert recipe is not None
    assert [fmt.name for rule in recipe.rules for fmt in rule.formats] == ["FP32", "FP32"]
    assert recipe.target is contract


def test_a_format_may_depend_on_the_object() -> None:
    value = {**W, "dtype": "BF16"}
    contract = target([object_("l0", "BF16"), object_("l1", "FP32")])
    rules = [{**plain("l{n}", value=value), "each": {"n": "s"}}]
    faults, _ = fitted(document(rules, sets={"s": [0, 1]}), contract)
    assert faults == [("implicit_conversion", ["l1"])]


@pytest.mark.parametrize(
    ("objects", "rules", "faults"),
    [
        ([object_("a")], [plain("a"), plain("b")], [("object_not_in_target", ["b"])]),
        ([{"resource": "a", "encoding": "raw-bytes-v1"}], [plain("a")], [("format_differs", ["a"])]),
        (
            [object_("a", "BF16"), object_("c")],
            [plain("a", format="FP32"), plain("b", format="FP32")],
            [("format_differs", ["a"]), ("object_not_in_target", ["b"]), ("object_without_rule", ["c"])],
        ),
        ([object_("a")], [plain("a"), plain("b", format="FP32")], [("object_not_in_target", ["b"])]),
        ([object_("a"), object_("b"), object_("c")], [plain("a")], [("object_without_rule", ["b", "c"])]),
        ([object_("a", "BF16")], [plain("a", format="FP32")], [("format_differs", ["a"])]),
        ([object_("a", "FP32", (4, 2))], [plain("a")], [("shape_differs", ["a"])]),
        ([object_("a"), object_("b", bundle="x"), object_("c", bundle="x")], [plain("a")], []),
        (
            [object_("a"), object_("b", bundle="x"), object_("c", bundle="x")],
            [plain("a"), plain("c")],
            [("object_without_rule", ["b"])],
        ),
        ([{"resource": "a", "encoding": "raw-bytes-v1"}], [plain("a", format="FP32")], [("format_differs", ["a"])]),
    ],
)  # fmt: skip
def test_a_recipe_fills_its_target(
    objects: list[Json], rules: list[Json], faults: list[tuple[str, list[str]]]
) -> None:
    found, recipe = fitted(document(rules), target(objects))
    assert found == faults
    assert (recipe is None) == bool(faults)


def test_another_identity() -> None:
    whole = document([plain("a")], identity={"model_id": "tiny", "weights_id": "other"})
    assert fitted(whole, target([object_("a")]))[0] == [("identity_differs", [])]


def test_a_target_is_kept_where_all_formats_are_stated() -> None:
    contract = target([object_("a")])
    assert recipe_of(document([plain("a", format="FP32")])).target is None
    recipe = fitted(document([plain("a", format="FP32")]), contract)[1]
    assert recipe is not None
    assert recipe.target is contract
