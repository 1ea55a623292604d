"""The parity entries of the field cases: recipe, source and artifact, through a whole verification."""

from typing import Any

from ninfer_core.recipes.plan import Plan
from ninfer_core.verify.report import Report
from tests.build import plan as bind_files
from tests.build import recipe, run, tensor
from tests.vectors.load import HERE

FOLDER = HERE / "cases" / "parity"


def document(file: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    whole = recipe(rules)
    whole["identity"] = {"model_id": "case-model", "weights_id": "case-weights"}
    whole["sources"]["base"]["file"] = file
    return whole


def bound(file: str, *rules: dict[str, Any]) -> Plan:
    return bind_files(FOLDER, document(file, list(rules)))


def rows(part: str) -> dict[str, Any]:
    begin = {"query": 0, "gate": 2}[part]
    value = {
        "op": "row_blocks",
        "blocks": 2,
        "stride": 4,
        "begin": begin,
        "end": begin + 2,
        "of": tensor("attn.q_proj.weight", [8, 4], "BF16"),
    }
    return {"object": part, "value": value, "format": "BF16", "encode": "copy_words"}


def verified(file: str, plan: Plan) -> Report:
    return run(FOLDER / file, plan)


def test_words_that_took_a_detour_through_floats() -> None:
    rule = {"object": "w", "value": tensor("w", [15], "BF16"), "format": "BF16", "encode": "copy_words"}
    plan = bound("bf16_source.safetensors", rule)
    assert verified("bf16_exact_ok.ninfer", plan).verdict == "passed"
    (finding,) = verified("bf16_flushed_and_quieted.ninfer", plan).findings
    assert (finding.code, finding.object, finding.count) == ("parity.word_mismatch", "w", 6)
    assert finding.where["elements"] == [2, 3, 4, 12, 13, 14]


def test_a_global_scale_stored_as_its_reciprocal() -> None:
    matrix = {
        "op": "nvfp4_matrix",
        "from": "base",
        "prefix": "w",
        "shape": [128, 64],
        "suffixes": {"codes": ".weight", "scales": ".weight_scale", "divisor": ".weight_scale_2"},
    }
    rule = {
        "object": "w",
        "value": {"op": "invert", "of": matrix},
        "format": "NVFP4",
        "encode": "copy_nvfp4_words",
    }
    plan = bound("nvfp4_source_multiplier.safetensors", rule)
    assert verified("nvfp4_divisor_ok.ninfer", plan).verdict == "passed"
    report = verified("nvfp4_divisor_not_inverted.ninfer", plan)
    (finding,) = report.findings
    assert (finding.code, finding.object) == ("parity.global_scale_direction", "w")
    place = finding.where
    assert (place["divisor"], place["expected_divisor"], place["ratio"]) == (0.125, 8.0, 64.0)


def test_a_fused_projection_split_in_the_wrong_place() -> None:
    plan = bound("fused_source.safetensors", rows("query"), rows("gate"))
    assert verified("fused_split_ok.ninfer", plan).verdict == "passed"
    report = verified("fused_split_contiguous.ninfer", plan)
    assert report.verdict == "failed"
    query = next(finding for finding in report.findings if finding.object == "query")
    assert query.code == "parity.word_mismatch"
    assert query.where["rows_differ"] == [2, 3]
    assert query.where["rows_equal"] == [0, 1]
    assert "2 of 4 rows differ and the others are equal" in query.message
