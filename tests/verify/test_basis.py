"""What a check stands on: where that is missing the check is not done, and what sees nothing has not passed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, FP32, I32
from ninfer_core.layouts import CONTIGUOUS_LE
from ninfer_core.opening import open_path
from ninfer_core.recipes import Recipe, parse_recipe
from ninfer_core.targets import Target
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.basis import BROKEN_STRUCTURE, LEFT_OUT
from ninfer_core.verify.report import CheckResult, Report
from tests.build import ninfer_file, plan, recipe, tensor, write_artifact, write_checkpoint
from tests.targets.build import document, sound

FINITE = {"scope": {"object": "*"}, "rule": "stored_finite", "basis": "contract"}


def words(fmt: Any, *shape: int) -> tuple[Any, tuple[int, ...], np.ndarray[Any, Any]]:
    """An object of small finite words, the same for the same shape."""
    count = int(np.prod(shape))
    return fmt, shape, np.arange(1, count + 1).astype(f"<u{fmt.word_bits // 8}").view(np.uint8)


def rule(name: str, fmt: Any, *shape: int) -> dict[str, Any]:
    """The rule that copies the source tensor of its name."""
    source = {"BF16": "BF16", "FP32": "F32", "I32": "I32"}[fmt.name]
    return {
        "object": name,
        "value": tensor(name, shape, source),
        "encode": "copy_words",
        "format": fmt.name,
    }


def parsed(root: dict[str, Any], target: Target | None = None) -> Recipe:
    findings = Findings()
    found = parse_recipe(json.dumps(root).encode(), findings, target=target)
    assert found is not None, [finding.message for finding in findings]
    return found


def target_of(*objects: dict[str, Any], identity: str = "x") -> Target:
    """A target of these objects and of the identity that `write_artifact` and `recipe` give."""
    identified = {"model_id": "test", "weights_id": identity}
    return sound(document(identity=identified, objects=list(objects), views=None, aliases=None))


def judge(path: Path, against: Against, *checks: str) -> tuple[Report, dict[str, CheckResult]]:
    with open_path(path) as opened:
        report = verify(opened, asked(checks), against)
    return report, {check.name: check for check in report.checks}


def test_an_error_of_the_structure_leaves_what_stands_on_it_unchecked(tmp_path: Path):
    """The second entry overlaps the first; both are there, in the formats that target and recipe state."""
    entry = {"kind": "tensor", "shape": [64], "format": "FP32", "layout": CONTIGUOUS_LE.name, "bytes": 256}
    root = {
        "identity": {"model_id": "test", "weights_id": "x"},
        "objects": [{"name": "a", "offset": 0, **entry}, {"name": "b", "offset": 0, **entry}],
    }
    path = tmp_path / "broken.ninfer"
    path.write_bytes(ninfer_file(2, root, words(FP32, 64)[2].tobytes()))
    made = recipe([rule("a", FP32, 64), rule("b", FP32, 64)], restrictions=[FINITE])
    data = words(FP32, 64)[2].view("<u4")
    folder = write_checkpoint(tmp_path, {"a": ("F32", data), "b": ("F32", data)})
    both = target_of(*({"tensor": name, "shape": [64], "format": "FP32"} for name in "ab"))
    against = Against(plan(folder, made), targets=(both,))
    report, checks = judge(path, against, "values", "restrictions", "inventory", "relations", "parity")
    assert report.verdict == "failed"
    for name in ("inventory", "parity", "relations"):
        assert (checks[name].outcome, checks[name].coverage) == ("not_checked", "none")
        assert checks[name].reason == BROKEN_STRUCTURE
    assert checks["structure"].outcome == "failed"
    assert {item.check for item in report.findings} == {"structure"}
    assert {item.evidence for item in report.objects} == {None}
    # What reads an object by itself goes on, for the entry that can be read.
    assert (checks["values"].objects, checks["restrictions"].objects) == (1, 1)


def test_an_object_that_is_not_the_target_s_is_left_out_and_the_rest_goes_on(tmp_path: Path):
    path = write_artifact(
        tmp_path / "a.ninfer", {"a": words(FP32, 4, 16), "b": words(FP32, 64), "more": words(FP32, 8)}
    )
    wanted = target_of(
        {"tensor": "a", "shape": [64], "format": "FP32"},
        {"tensor": "b", "shape": [64], "format": "FP32"},
        {"tensor": "gone", "shape": [64], "format": "FP32"},
    )
    names = ("a", "b", "gone")
    made = recipe([rule(name, FP32, 64) for name in names], restrictions=[FINITE])
    folder = write_checkpoint(tmp_path, {name: ("F32", words(FP32, 64)[2].view("<u4")) for name in names})
    bound = plan(folder, made)
    against = Against(replace(bound, recipe=parsed(made, wanted)), targets=(wanted,))
    report, checks = judge(path, against, "restrictions", "inventory", "parity")
    assert {(item.definition.rule, item.object) for item in report.findings} == {
        ("B3", "a"),
        ("B2", "gone"),
        ("B2", "more"),
    }
    reasons = {item.name: dict(item.reasons) for item in report.objects}
    assert reasons == {
        "a": {"restrictions": LEFT_OUT, "parity": LEFT_OUT},
        "b": {},
        "more": {"parity": LEFT_OUT},
    }
    assert {item.name: item.evidence for item in report.objects} == {
        "a": None,
        "b": "copied-exact",
        "more": None,
    }
    assert checks["parity"].outcome == checks["restrictions"].outcome == "not_checked"
    assert checks["parity"].objects == 1


@pytest.mark.parametrize(
    ("stored", "outcome", "reason"),
    [
        ({"a": words(FP32, 64)}, "passed", None),
        ({"a": words(I32, 64)}, "not_checked", '"a" is I32 [64] here, the recipe makes FP32 [64]'),
        ({"a": words(FP32, 32)}, "not_checked", '"a" is FP32 [32] here, the recipe makes FP32 [64]'),
        ({"b": words(FP32, 64)}, "not_checked", '"a" is not here, the recipe makes FP32 [64]'),
    ],
)
def test_a_demand_that_cannot_be_judged_is_not_met(stored, outcome, reason, tmp_path: Path):
    """With the recipe alone nobody says that an object is missing or another one: the demand stays open."""
    path = write_artifact(tmp_path / "a.ninfer", stored)
    made = parsed(recipe([rule("a", FP32, 64)], restrictions=[FINITE]))
    report, checks = judge(path, Against(recipe=made), "restrictions")
    assert (checks["restrictions"].outcome, checks["restrictions"].reason) == (outcome, reason)
    assert report.verdict == ("passed" if outcome == "passed" else "incomplete")
    assert report.findings == ()


@pytest.mark.parametrize("restrictions", [[], [FINITE]], ids=["demands nothing", "demands something"])
def test_a_recipe_speaks_for_all_the_objects_that_it_makes(restrictions, tmp_path: Path):
    """Also for those that it demands nothing of, and also if it demands nothing at all."""
    path = write_artifact(tmp_path / "a.ninfer", {"a": words(FP32, 64)})
    made = parsed(recipe([rule("a", FP32, 64), rule("b", FP32, 8)], restrictions=restrictions))
    report, checks = judge(path, Against(recipe=made), "restrictions")
    assert checks["restrictions"].outcome == "not_checked"
    assert checks["restrictions"].reason == '"b" is not here, the recipe makes FP32 [8]'
    assert report.verdict == "incomplete"


@pytest.mark.parametrize("check", ["restrictions", "relations"])
def test_the_recipe_of_another_model_fails(check, tmp_path: Path):
    """Whichever of its demands is asked about."""
    path = write_artifact(tmp_path / "a.ninfer", {"a": words(FP32, 64)})
    document = recipe([rule("a", FP32, 64)], restrictions=[FINITE])
    document["identity"]["model_id"] = "another-model"
    report, checks = judge(path, Against(recipe=parsed(document)), check)
    assert [item.code for item in report.findings] == ["restrictions.identity_differs"]
    assert report.verdict == "failed"
    assert checks["restrictions"].outcome == ("failed" if check == "restrictions" else "not_asked")


def test_a_bundle_that_is_absent_as_a_whole_owes_nothing(tmp_path: Path):
    wanted = target_of(
        {"tensor": "a", "shape": [64], "format": "FP32"},
        {"tensor": "b", "shape": [64], "format": "FP32", "bundle": "more"},
        {"tensor": "c", "shape": [64], "format": "FP32", "bundle": "more"},
    )
    made = recipe([rule(name, FP32, 64) for name in "abc"], restrictions=[FINITE])
    against = Against(recipe=parsed(made, wanted))
    for names, outcome in (("a", "passed"), ("ab", "not_checked"), ("abc", "passed")):
        path = write_artifact(tmp_path / f"{names}.ninfer", {name: words(FP32, 64) for name in names})
        assert judge(path, against, "restrictions")[1]["restrictions"].outcome == outcome


def test_relations_of_objects_that_are_not_there_are_not_checked(tmp_path: Path):
    rank = {
        "op": "ranked_token_ids",
        "ranking": "ranking",
        "row_width": 8,
        "candidates": 8,
        "count": 4,
        "special_ids_from": "config",
    }
    made = recipe(
        [{"object": "ids", "value": rank, "encode": "copy_words", "format": "I32"}, rule("a", FP32, 64)],
        [{"object": "config", "from": "base", "file": "tokenizer_config.json", "encode": "copy_bytes"}],
        inputs={"ranking": {"kind": "i64-le-rows", "row_width": 8, "rows": 1, "used_row": 0}},
    )
    path = write_artifact(tmp_path / "a.ninfer", {"a": words(FP32, 64)})
    report, checks = judge(path, Against(recipe=parsed(made)), "relations")
    assert report.verdict == "incomplete"
    assert (checks["relations"].outcome, checks["relations"].objects) == ("not_checked", 0)
    assert checks["relations"].reason is not None
    assert checks["relations"].reason.startswith("D1 needs ids, config")


@pytest.mark.parametrize("same", [True, False])
def test_a_recipe_of_another_target_is_said_though_the_inventory_passes(same: bool, tmp_path: Path):
    """Two models may have equal inventories: the target is filled, and yet the recipe is another model's."""
    objects = {"tensor": "a", "shape": [64], "format": "FP32"}
    mine, other = target_of(objects), target_of(objects, identity="other")
    path = write_artifact(tmp_path / "a.ninfer", {"a": words(FP32, 64)})
    folder = write_checkpoint(tmp_path, {"a": ("F32", words(FP32, 64)[2].view("<u4"))})
    made = recipe([rule("a", FP32, 64)])
    if not same:
        made["identity"]["weights_id"] = "other"
    bound = plan(folder, made)
    against = Against(
        replace(bound, recipe=parsed(made, mine if same else other)), targets=(mine, other), auto=True
    )
    report, checks = judge(path, against, "inventory", "parity")
    assert checks["inventory"].outcome == "passed"
    assert checks["parity"].outcome == ("passed" if same else "failed")
    assert {item.code for item in report.findings} == (set() if same else {"parity.identity_differs"})


@pytest.mark.parametrize(
    ("wanted", "auto", "outcome"),
    [("x", True, "passed"), ("x", False, "passed"), ("y", False, "failed"), ("y", True, "not_checked")],
)
def test_the_target_is_picked_or_named(wanted: str, auto: bool, outcome: str, tmp_path: Path):
    """An identity that no target has is no failure of the rest; a target that was named must fit."""
    path = write_artifact(tmp_path / "a.ninfer", {"a": words(BF16, 64)})
    target = target_of({"tensor": "a", "shape": [64], "format": "BF16"}, identity=wanted)
    report, checks = judge(path, Against(targets=(target,), auto=auto), "values", "inventory")
    assert checks["inventory"].outcome == outcome
    assert checks["values"].outcome == "passed"
    assert {item.definition.rule for item in report.findings} == ({"B1"} if outcome == "failed" else set())
    if outcome == "not_checked":
        assert report.verdict == "incomplete"
        assert report.target is None
        assert (checks["inventory"].reason or "").startswith("no registered target")
    else:
        assert report.target is not None
        assert (report.target["digest"], report.target["registered"]) == (target.digest, False)


def test_an_error_behind_any_number_of_advisories_is_listed():
    findings = Findings()
    for number in range(10_001):
        findings.add("restrictions.stored_finite", "m", object=str(number), severity="advisory")
    findings.add("restrictions.stored_finite", "m", object="bad", ordinal=5, severity="error")
    assert [item.object for item in findings.errors] == ["bad"]
    assert findings.unlisted == {"restrictions.stored_finite": 1}
    merged = Findings()
    merged.extend(findings)
    assert [item.object for item in merged.errors] == ["bad"]
