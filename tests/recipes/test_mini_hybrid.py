"""The synthetic model from its checkpoint: preflight, accounting, and the finished artifact, byte for byte."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from ninfer_core.convert import convert
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.recipes import Bundle, Plan, TensorPlan, bind, parse_recipe
from ninfer_core.targets import registered_recipe
from tests import mini_hybrid


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    built = mini_hybrid.checkpoint(tmp_path_factory.mktemp("mini"))
    findings = Findings()
    text = registered_recipe("mini_hybrid_mixed-v1")
    assert text is not None
    recipe = parse_recipe(text, findings)
    assert recipe is not None
    roles = {role: DiskFiles(folder) for role, folder in built.roles.items()}
    inputs = {name: DiskFile(path) for name, path in built.inputs.items()}
    bound = bind(recipe, roles, inputs, findings)
    assert [finding.code for finding in findings] == []
    assert bound is not None
    return bound


def test_every_source_tensor_is_accounted_for(plan: Plan) -> None:
    states = {role: Counter(use.state for use in uses.values()) for role, uses in plan.accounting.items()}
    assert states == {
        "base": {"used": 90},
        "quantized": {"used": 45, "excluded": 5},
        "dflash": {"used": 14},
    }
    reasons = {name: use.reason for name, use in plan.accounting["quantized"].items() if use.reason}
    assert reasons["model.language_model.layers.3.self_attn.k_scale"] == (
        "present in the checkpoint but never materialised"
    )
    assert reasons["model.language_model.layers.1.self_attn.q_proj.weight"] == (
        "compared with the same tensor of base"
    )
    assert plan.accounting["base"]["lm_head.weight"].objects == ("text/draft_head",)


def test_objects_come_in_the_order_of_the_target(plan: Plan) -> None:
    golden = mini_hybrid.document("golden")
    assert [item.name for item in plan.objects] == [item["name"] for item in golden["objects"]]


def test_ids_are_those_of_the_golden_file(plan: Plan) -> None:
    ids = next(item for item in plan.objects if item.name == "text/draft_head_token_ids")
    assert isinstance(ids, TensorPlan)
    assert not isinstance(ids.value, Bundle)
    assert (ids.inputs, ids.sources, ids.evidence_kind) == (("ranking",), (), "derived-exact")
    words = ids.value.read(0, 512).tolist()
    golden = mini_hybrid.document("golden")["draft_head_token_ids"]
    assert (words[: len(golden["first"])], words[-len(golden["last"]) :]) == (golden["first"], golden["last"])
    special = {str(number): words.index(number) for number in (990, 992, 995, 997, 999)}
    assert special == golden["positions_of_special"]


def test_the_artifact_is_the_golden_one(plan: Plan, tmp_path: Path) -> None:
    conversion = convert(plan, tmp_path / "m.ninfer")
    assert [finding.code for finding in conversion.findings] == []
    golden = mini_hybrid.document("golden")
    assert [(item.name, item.bytes, item.sha256) for item in conversion.objects] == [
        (item["name"], item["bytes"], item["sha256"]) for item in golden["objects"]
    ]
    content = (tmp_path / "m.ninfer").read_bytes()
    assert hashlib.sha256(content).hexdigest() == golden["artifact"]["sha256"]
