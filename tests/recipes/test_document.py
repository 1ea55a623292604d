"""Recipe documents: each fault as one visible change of a good document, with its code and JSON path."""

import hashlib
import json
from typing import Any

import pytest

from ninfer_core.findings import Findings
from ninfer_core.io import MemorySource
from ninfer_core.recipes import ENCODERS, OPERATIONS, load_recipe
from ninfer_core.recipes.document import LIMITS
from ninfer_core.sources.json_text import JsonLimits
from tests.recipes.build import RULE, W, document, parsed, recipe_of, source, tensor

MATRIX = tensor("m", [64, 64], "BF16")
MAXABS = "MAXABS_F16_RECIP_RNE_V1"
Faults = list[tuple[str, str]]


def rule(**members: Any) -> dict[str, Any]:
    whole = {**RULE, **members}
    return {name: member for name, member in whole.items() if member is not None}


def value(**members: Any) -> list[dict[str, Any]]:
    return [rule(value=members)]


def resource(**members: Any) -> dict[str, Any]:
    whole = {"object": "r", "from": "base", "file": "r.txt", "encode": "copy_bytes", **members}
    return {name: member for name, member in whole.items() if member is not None}


def ranking(**members: Any) -> dict[str, Any]:
    return {"kind": "i64-le-rows", "row_width": 4, "rows": 2, "used_row": 0, **members}


BLOCKS = {"op": "row_blocks", "blocks": 1, "stride": 2, "begin": 0, "end": 1, "of": W}
NVFP4 = {"op": "nvfp4_matrix", "from": "base", "prefix": "p", "shape": [128, 64]}
FP8 = {"op": "fp8_row_matrix", "from": "base", "prefix": "p", "shape": [128, 64]}
IDS = {
    "op": "ranked_token_ids",
    "ranking": "ranking",
    "row_width": 4,
    "candidates": 3,
    "count": 2,
    "special_ids_from": "r",
}
MISFITS: list[Any] = [
    {**BLOCKS, "blocks": 2},
    {**BLOCKS, "begin": 1},
    {**BLOCKS, "end": 3},
    {**BLOCKS, "of": {**W, "shape": []}},
    {"op": "index", "axis": 2, "at": 0, "of": W},
    {"op": "index", "axis": 1, "at": 4, "of": W},
    {"op": "index", "axis": 0, "at": 0, "of": {**W, "shape": []}},
    {**NVFP4, "shape": [128, 40]},
    {"op": "rows", "begin": 0, "end": 129, "of": NVFP4},
    {"op": "concat_rows", "of": [NVFP4, {**NVFP4, "shape": [128, 32]}]},
    {**IDS, "row_width": 8},
    {**IDS, "candidates": 5, "count": 1},
    {**IDS, "count": 4},
]
MISTYPED: list[Any] = [
    {"op": "concat_rows", "of": [NVFP4, FP8]},
    {"op": "concat_rows", "of": [tensor("x", [128, 64], "U8"), FP8]},
    {"op": "reshape", "shape": [64, 128], "of": FP8},
    {"op": "index", "axis": 0, "at": 0, "of": NVFP4},
    {"op": "transpose", "axes": [1, 0], "of": NVFP4},
    {"op": "widen", "to": "FP32", "of": FP8},
    {"op": "cast", "to": "BF16", "of": NVFP4},
    {"op": "invert", "of": FP8},
    {"op": "invert", "of": {"op": "invert", "of": NVFP4}},
    {"op": "invert", "of": W},
    {"op": "invert", "of": tensor("x", [1], "BF16")},
]

ROOT: list[tuple[dict[str, Any], Faults]] = [
    ({"schema": "ninfer-recipe/2"}, [("schema_unknown", "$.schema")]),
    ({"schema": None}, [("schema_unknown", "$.schema")]),
    ({"recipe_id": None, "sources": None, "rules": []}, [("member_missing", "$")] * 2 + [("value_invalid", "$.rules")]),
    ({"extra": 1}, [("member_unexpected", "$")]),
    ({"identity": {"model_id": "", "weights_id": 1}}, [("value_invalid", "$.identity.model_id"), ("value_type", "$.identity.weights_id")]),
    ({"identity": {"model_id": "m"}}, [("member_missing", "$.identity")]),
    ({"identity": []}, [("value_type", "$.identity")]),
    ({"rules": {}}, [("value_type", "$.rules")]),
    ({"rules": []}, [("value_invalid", "$.rules")]),
    ({"rules": [7]}, [("value_type", "$.rules[0]")]),
    ({"restrictions": {}, "cross_checks": 1}, [("value_type", "$.restrictions"), ("value_type", "$.cross_checks")]),
    ({"checks": []}, [("value_type", "$.checks")]),
    ({"checks": {"objects": 1, "expanded_rules": -1, "recipe_sha256": "0"}}, [("member_unexpected", "$.checks"), ("value_invalid", "$.checks.expanded_rules"), ("value_invalid", "$.checks.recipe_sha256")]),
    ({"checks": {"source_requirements": {"base": {"tensors": 1}}}}, [("member_missing", "$.checks.source_requirements.base")] * 2),
    ({"evidence": [{"claim": "c"}]}, [("member_missing", "$.evidence[0]")]),
    ({"evidence": {}}, [("value_type", "$.evidence")]),
    ({"rationale": 1}, [("value_type", "$.rationale")]),
    (
        {"components": {"vision": {}}},
        [("member_missing", "$.components"), ("member_missing", "$.components.vision")],
    ),
    ({"components": {"text": {}}}, [("member_missing", "$.components.text")]),
    ({"components": {"text": {"config": 1}}}, [("value_type", "$.components.text.config")]),
    ({"components": {"text": 1}}, [("value_type", "$.components.text")]),
    ({"metadata": {"name": 1}}, [("value_type", "$.metadata.name")]),
    ({"metadata": {"name": ""}}, [("value_invalid", "$.metadata.name")]),
    ({"metadata": []}, [("value_type", "$.metadata")]),
    ({"metadata": {"n": 2**53}}, [("integer_not_exact", "$.metadata.n")]),
    ({"metadata": {"a": [10**60]}}, [("integer_not_exact", "$.metadata.a[0]")]),
    ({"sets": {"s": [0, 0]}}, [("value_invalid", "$.sets.s")]),
    ({"sets": {"s": [-1], "t": [True], "u": 3}}, [("value_invalid", "$.sets.s"), ("value_invalid", "$.sets.t"), ("value_type", "$.sets.u")]),
    ({"sets": {"a.b": 3}}, [("value_type", '$.sets["a.b"]')]),
    ({"sets": []}, [("value_type", "$.sets")]),
    ({"inputs": {"i": {"kind": "i64-le-rows", "rows": 2}}}, [("member_missing", "$.inputs.i")] * 2),
    ({"inputs": {"i": ranking(used_row=2)}}, [("value_invalid", "$.inputs.i.used_row")]),
    ({"inputs": {"i": ranking(bytes=63)}}, [("value_invalid", "$.inputs.i.bytes")]),
    ({"inputs": {"i": ranking(top_ids=[1, 1])}}, [("value_invalid", "$.inputs.i.top_ids")]),
    ({"inputs": {"i": ranking(top_ids=[4])}}, [("value_invalid", "$.inputs.i.top_ids")]),
    ({"inputs": {"i": ranking(file="a/b", note=1)}}, [("value_invalid", "$.inputs.i.file"), ("value_type", "$.inputs.i.note")]),
    ({"inputs": {"i": {"kind": "f32-rows"}}}, [("value_invalid", "$.inputs.i.kind")]),
    ({"inputs": {"i": {"kind": "file", "sha256": "AB", "bytes": 0}}}, [("value_invalid", "$.inputs.i.bytes"), ("value_invalid", "$.inputs.i.sha256")]),
    ({"inputs": {"i": {"kind": 1}}}, [("value_type", "$.inputs.i.kind")]),
    ({"inputs": {"i": {}}}, [("member_missing", "$.inputs.i")]),
]  # fmt: skip

SOURCES: list[tuple[Any, Faults]] = [
    (source(kind="gguf"), [("value_invalid", "$.sources.base.kind")]),
    (source(kind=[]), [("value_type", "$.sources.base.kind")]),
    (source(index="i"), [("member_unexpected", "$.sources.base")]),
    (source(file="../model.safetensors"), [("value_invalid", "$.sources.base.file")]),
    (source(revision=""), [("value_invalid", "$.sources.base.revision")]),
    (source(exact_tensor_names="yes"), [("value_type", "$.sources.base.exact_tensor_names")]),
    (source(config_requires={"a": 1, "b": {"__exact_members__": "c"}}), [
        ("value_type", "$.sources.base.config_requires.a"),
        ("value_type", "$.sources.base.config_requires.b.__exact_members__"),
    ]),
    (source(layer_types={"member": "x", "set": "s"}, config_absent=[""], side_files=["s"]), [
        ("value_invalid", "$.sources.base.config_absent"),
        ("member_missing", "$.sources.base.layer_types"),
        ("member_missing", "$.sources.base.layer_types"),
        ("set_unknown", "$.sources.base.layer_types.set"),
        ("value_type", "$.sources.base.side_files[0]"),
    ]),
    (source(side_files=[{"file": "../f", "members": []}]), [("value_invalid", "$.sources.base.side_files[0].file"), ("value_type", "$.sources.base.side_files[0].members")]),
    (source(mirror=1, upstream_preflight_tensors=0), [("value_type", "$.sources.base.mirror"), ("value_invalid", "$.sources.base.upstream_preflight_tensors")]),
    (source(kind="safetensors-index"), [("member_missing", "$.sources.base"), ("member_unexpected", "$.sources.base")]),
    ("base", [("value_type", "$.sources.base")]),
]  # fmt: skip

RULES: list[tuple[list[Any], Faults]] = [
    ([rule(object=None)], [("member_missing", "$.rules[0]")]),
    ([rule(object="")], [("value_invalid", "$.rules[0].object")]),
    ([rule(object="w{l}")], [("template_invalid", "$.rules[0].object")]),
    ([rule(object="w{")], [("template_invalid", "$.rules[0].object")]),
    ([rule(object="w}")], [("template_invalid", "$.rules[0].object")]),
    ([rule(format=None)], [("format_missing", "$.rules[0]")]),
    ([rule(format="F32")], [("format_unknown", "$.rules[0].format")]),
    ([rule(format=32)], [("value_type", "$.rules[0].format")]),
    ([rule(encode="copy")], [("encoder_unknown", "$.rules[0].encode")]),
    ([rule(encode="copy_bytes")], [("encoder_format", "$.rules[0].encode")]),
    ([rule(encode=MAXABS)], [("encoder_format", "$.rules[0]")]),
    ([rule(encode=None)], [("member_missing", "$.rules[0]")]),
    ([rule(restrictions=[])], [("member_unexpected", "$.rules[0]")]),
    ([rule(axes=["rows"])], [("axes_rank", "$.rules[0].axes")]),
    ([rule(axes=["rows", ""])], [("value_invalid", "$.rules[0].axes")]),
    ([rule(each={"l": "nowhere"})], [("set_unknown", "$.rules[0].each.l")]),
    ([rule(each={"l": []})], [("set_unknown", "$.rules[0].each.l")]),
    ([rule(each={"l": "none"})], [("set_empty", "$.rules[0].each.l")]),
    ([rule(each=[])], [("value_type", "$.rules[0].each")]),
    ([RULE, RULE], [("object_duplicate", "$.rules[1]")]),
    ([rule(each={"l": "two"})], [("object_duplicate", "$.rules[0]")]),
    ([rule(format="BF16")], [("implicit_conversion", "$.rules[0]")]),
    ([rule(format="I32")], [("implicit_conversion", "$.rules[0]")]),
    ([rule(value={**W, "dtype": "U32"}, format="I32")], [("implicit_conversion", "$.rules[0]")]),
    ([rule(value={**W, "dtype": "F8_E4M3"}, format="BF16")], [("implicit_conversion", "$.rules[0]")]),
    ([rule(value=MATRIX, format="Q4G64_F16S")], [("encoder_format", "$.rules[0]")]),
    ([rule(value=MATRIX, format="NVFP4", encode=MAXABS)], [("shape_unsupported", "$.rules[0]"), ("encoder_format", "$.rules[0]")]),
    ([rule(value={**MATRIX, "dtype": "I32"}, format="Q4G64_F16S", encode=MAXABS)], [("encoder_dtype", "$.rules[0]")]),
    ([rule(value=tensor("v", [64], "F32"), format="W8G32_F16S", encode=MAXABS)], [("shape_unsupported", "$.rules[0]")]),
]  # fmt: skip

SOUND: list[Any] = [
    {"op": "transpose", "axes": [1, 0], "of": W},
    {"op": "widen", "to": "FP32", "of": {**W, "dtype": "BF16"}},
    {"op": "reshape", "shape": [8], "of": {"op": "concat_rows", "of": [{"op": "rows", "begin": 1, "end": 2, "of": W}] * 2}},
]  # fmt: skip

VALUES: list[tuple[Any, Faults]] = [
    (7, [("value_type", "$.rules[0].value")]),
    ({}, [("member_missing", "$.rules[0].value")]),
    ({"op": 7}, [("value_type", "$.rules[0].value.op")]),
    ({"op": "gather"}, [("operation_unknown", "$.rules[0].value.op")]),
    ({"op": "Tensor"}, [("operation_unknown", "$.rules[0].value.op")]),
    ({"op": "tensor"}, [("member_missing", "$.rules[0].value")] * 4),
    ({**W, "from": "other"}, [("source_undefined", "$.rules[0].value.from")]),
    ({**W, "name": "{x}"}, [("template_invalid", "$.rules[0].value.name")]),
    ({**W, "dtype": "bf16"}, [("dtype_unknown", "$.rules[0].value.dtype")]),
    ({**W, "shape": [0]}, [("value_invalid", "$.rules[0].value.shape")]),
    ({**W, "shape": [2.0]}, [("value_invalid", "$.rules[0].value.shape")]),
    ({**W, "shape": [1] * 17}, [("value_invalid", "$.rules[0].value.shape")]),
    ({**W, "shape": [2**50, 2**50]}, [("value_invalid", "$.rules[0].value.shape")]),
    ({**W, "more": 1}, [("member_unexpected", "$.rules[0].value")]),
    ({"op": "rows", "begin": 0, "end": 3, "of": W}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "rows", "begin": 1, "end": 1, "of": W}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "rows", "begin": 0, "end": 1, "of": {**W, "shape": []}}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "rows", "begin": -1, "end": 1.0, "of": W}, [("value_invalid", "$.rules[0].value.begin"), ("value_type", "$.rules[0].value.end")]),
    ({"op": "rows", "begin": 10**60, "end": 1, "of": W}, [("integer_not_exact", "$.rules[0].value.begin"), ("value_invalid", "$.rules[0].value.begin")]),
    ({"op": "concat_rows", "of": []}, [("value_invalid", "$.rules[0].value.of")]),
    ({"op": "concat_rows", "of": W}, [("value_type", "$.rules[0].value.of")]),
    ({"op": "concat_rows", "of": [W, {**W, "shape": [2, 5]}]}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "concat_rows", "of": [{**W, "shape": []}]}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "concat_rows", "of": [W, {**W, "dtype": "F16"}]}, [("operation_dtype", "$.rules[0].value")]),
    ({"op": "concat_rows", "of": [{**W, "shape": [2**33, 2**30]}] * 2}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "concat_rows", "of": [W, 3, {**W, "dtype": ""}]}, [("value_type", "$.rules[0].value.of[1]"), ("value_invalid", "$.rules[0].value.of[2].dtype")]),
    ({"op": "reshape", "shape": [7], "of": W}, [("operation_shape", "$.rules[0].value")]),
    *((tree, [("operation_shape", "$.rules[0].value")]) for tree in MISFITS),
    *((tree, [("operation_dtype", "$.rules[0].value")]) for tree in MISTYPED),
    ({**BLOCKS, "blocks": 0, "stride": 2**70}, [("integer_not_exact", "$.rules[0].value.stride"), ("value_invalid", "$.rules[0].value.blocks"), ("value_invalid", "$.rules[0].value.stride")]),
    ({"op": "gather_rows", "ids": "ids", "of": W}, [("ids_undefined", "$.rules[0].value.ids")]),
    ({"op": "gather_rows", "ids": "w", "of": W}, [("ids_undefined", "$.rules[0].value.ids")]),
    ({"op": "equal_scalar", "from": "base", "names": []}, [("value_invalid", "$.rules[0].value.names")]),
    ({"op": "equal_scalar", "from": "b", "names": ["a", "{x}"]}, [("source_undefined", "$.rules[0].value.from"), ("template_invalid", "$.rules[0].value.names[1]")]),
    ({**NVFP4, "shape": [128]}, [("value_invalid", "$.rules[0].value.shape")]),
    ({**NVFP4, "prefix": "p{l}"}, [("template_invalid", "$.rules[0].value.prefix")]),
    ({**NVFP4, "suffixes": {"code": ".w"}}, [("member_unexpected", "$.rules[0].value.suffixes"), ("encoder_dtype", "$.rules[0]")]),
    ({**NVFP4, "suffixes": {"codes": ".weight_scale"}}, [("value_invalid", "$.rules[0].value.suffixes")]),
    ({**NVFP4, "suffixes": {"codes": ".{x}"}}, [("value_invalid", "$.rules[0].value.suffixes")]),
    ({**IDS, "ranking": "no", "special_ids_from": "no"}, [("input_undefined", "$.rules[0].value.ranking"), ("resource_undefined", "$.rules[0].value.special_ids_from")]),
    ({**IDS, "ranking": "plain"}, [("value_invalid", "$.rules[0].value.ranking")]),
    (NVFP4, [("encoder_dtype", "$.rules[0]")]),
    ({"op": "transpose", "axes": [0, 0], "of": W}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "transpose", "axes": [0], "of": W}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "transpose", "axes": [0], "of": {**W, "shape": []}}, [("operation_shape", "$.rules[0].value")]),
    ({"op": "transpose", "axes": 1, "of": W}, [("value_type", "$.rules[0].value.axes")]),
    ({"op": "widen", "to": "FP32", "of": W}, [("operation_dtype", "$.rules[0].value")]),
    ({"op": "widen", "to": "F32", "of": {**W, "dtype": "BF16"}}, [("value_invalid", "$.rules[0].value.to")]),
    ({"op": "cast", "to": "BF16", "of": {**W, "dtype": "I64"}}, [("operation_dtype", "$.rules[0].value")]),
    ({"op": "cast", "to": "F16", "of": W}, [("value_invalid", "$.rules[0].value.to")]),
    ({"op": "reshape", "shape": [0], "of": {"op": "rows", "begin": "0", "end": 1, "of": {**W, "dtype": "?"}}}, [
        ("value_invalid", "$.rules[0].value.shape"),
        ("value_type", "$.rules[0].value.of.begin"),
        ("dtype_unknown", "$.rules[0].value.of.of.dtype"),
    ]),
]  # fmt: skip

INPUTS = {"ranking": ranking(), "plain": {"kind": "file"}}

RESOURCES: list[tuple[list[Any], Faults]] = [
    ([resource(encode="copy_words")], [("encoder_format", "$.resources[0].encode")]),
    ([resource(encode="zip")], [("encoder_unknown", "$.resources[0].encode")]),
    ([resource(file="a/b")], [("value_invalid", "$.resources[0].file")]),
    ([resource(file=None)], [("member_missing", "$.resources[0]")]),
    ([resource(bytes=0)], [("value_invalid", "$.resources[0].bytes")]),
    ([resource(sha256="0" * 63)], [("value_invalid", "$.resources[0].sha256")]),
    ([resource(object=None)], [("member_missing", "$.resources[0]")]),
    ([{**resource(), "from": "other"}], [("source_undefined", "$.resources[0].from")]),
    ([{"object": "r", "input": "i", "encode": "copy_bytes"}], [("input_undefined", "$.resources[0].input")]),
    ([resource(input="i")], [("member_unexpected", "$.resources[0]")] * 2 + [("input_undefined", "$.resources[0].input")]),
    ([resource(object="w")], [("object_duplicate", "$.rules[0]")]),
    ([7], [("value_type", "$.resources[0]")]),
]  # fmt: skip


@pytest.mark.parametrize(("members", "faults"), ROOT)
def test_root(members: dict[str, Any], faults: Faults) -> None:
    assert parsed(document(**members))[0] == faults


@pytest.mark.parametrize(("base", "faults"), SOURCES)
def test_source(base: Any, faults: Faults) -> None:
    assert parsed(document(sources={"base": base}))[0] == faults


@pytest.mark.parametrize(("rules", "faults"), RULES)
def test_rule(rules: list[Any], faults: Faults) -> None:
    assert parsed(document(rules, sets={"two": [0, 1], "none": []}))[0] == faults


@pytest.mark.parametrize(("tree", "faults"), VALUES)
def test_value(tree: Any, faults: Faults) -> None:
    whole = document([rule(value=tree)], inputs=INPUTS, resources=[resource()])
    assert parsed(whole)[0] == faults


@pytest.mark.parametrize("tree", SOUND)
def test_sound_value(tree: Any) -> None:
    assert parsed(document([rule(value=tree)]))[0] == []


@pytest.mark.parametrize(("resources", "faults"), RESOURCES)
def test_resource(resources: list[Any], faults: Faults) -> None:
    assert parsed(document(resources=resources))[0] == faults


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "structure.json_syntax"),
        (b"[]", "structure.json_root"),
        (b'{"schema": NaN}', "structure.json_number_not_finite"),
        (b"[" * 65 + b"]" * 65, "structure.json_depth"),
        (b'{"a":"\xff"}', "structure.json_utf8"),
    ],
)
def test_no_document_at_all(text: bytes, code: str) -> None:
    assert parsed(text)[0] == [(code, "$")]


def test_a_member_twice_deep_inside_is_a_fault() -> None:
    text = json.dumps(document()).replace('"op": "tensor"', '"op": "tensor", "op": "tensor"').encode()
    assert parsed(text)[0] == [("structure.json_member_duplicate", "$.rules[0].value.op")]


def test_size_limit_comes_before_reading() -> None:
    findings = Findings()
    text = json.dumps(document()).encode()
    assert load_recipe(MemorySource("r.json", text), findings) is not None
    assert (
        load_recipe(MemorySource("r.json", text), findings, JsonLimits(len(text) - 1, LIMITS.depth)) is None
    )
    assert [finding.code for finding in findings] == ["structure.json_too_large"]


def test_a_document_that_shrinks_while_it_is_read() -> None:
    source = MemorySource("r.json", json.dumps(document()).encode())
    source.size += 1
    findings = Findings()
    assert load_recipe(source, findings) is None
    assert [finding.code for finding in findings] == ["structure.file_cut_short"]


def test_every_unfit_object_is_listed() -> None:
    rules = [
        rule(
            object="b/{l}",
            each={"l": "two"},
            value=tensor("b{l}", [64], "F32"),
            format="Q4G64_F16S",
            encode=MAXABS,
        ),
        rule(object="c", value=tensor("c", [2, 2, 2], "F32"), format="W8G32_F16S", encode=MAXABS),
    ]
    _, _, findings = parsed(document(rules, sets={"two": [0, 1]}))
    assert [finding.where["objects"] for finding in findings] == [["b/0", "b/1"], ["c"]]
    assert [finding.count for finding in findings] == [2, 1]
    assert "[64]" in findings.items[0].found


def test_duplicates_name_both_makers() -> None:
    _, _, findings = parsed(document([RULE, rule(object="x"), RULE]))
    (finding,) = findings
    assert finding.object == "w"
    assert (finding.where["other"], finding.where["path"]) == ("$.rules[0]", "$.rules[2]")


def test_a_product_of_sets_is_bounded() -> None:
    sets = {"s": list(range(1000))}
    each = {"a": "s", "b": "s", "c": "s", "d": "s", "e": "s"}
    faults = parsed(document([rule(object="{a}{b}{c}{d}{e}", each=each)], sets=sets))[0]
    assert faults == [("too_many_objects", "$.rules[0]")]


def test_counting_a_product_of_sets_ends() -> None:
    each = {f"v{i}": "s" for i in range(20_000)}
    whole = document([rule(object="x", each=each)], sets={"s": list(range(1000))})
    faults, _, findings = parsed(whole)
    assert faults == [("too_many_objects", "$.rules[0]")]
    assert len(findings.items[0].found) < 100


def test_what_is_kept() -> None:
    recipe = recipe_of(
        document(
            [rule(object="{a}.{b}", each={"a": "two", "b": "three"}, axes=["out", "in"])],
            sets={"two": [4, 2], "three": [1, 0, 10], "unused": []},
            evidence=[{"claim": "c", "citation": "d"}],
            rationale="because",
            checks={"expanded_rules": 6, "encodes": {"copy_words": 6}},
            components={"text": {"config": {"rate": 0.5}}},
            metadata={"name": "tiny"},
            restrictions=[],
            cross_checks=[],
            inputs={},
        )
    )
    assert recipe.rules[0].objects == ("4.1", "4.0", "4.10", "2.1", "2.0", "2.10")
    assert recipe.rules[0].axes == ("out", "in")
    assert (recipe.checks.expanded_rules, recipe.checks.encodes) == (6, {"copy_words": 6})
    assert recipe.evidence[0].citation == "d"
    assert recipe.components == {"text": {"config": {"rate": 0.5}}}
    assert recipe.metadata == {"name": "tiny"}
    assert (recipe.model_id, recipe.weights_id, recipe.recipe_id) == ("tiny", "test", "tiny-v1")


def test_digest_is_that_of_the_canonical_form() -> None:
    whole = document(metadata={"b": 1.0, "a": 2.5e-3})
    spaced = json.dumps(whole, indent=3).replace("1.0", "1e0").encode()
    canonical = json.dumps(whole, separators=(",", ":"), sort_keys=True).replace("1.0", "1").encode()
    expected = "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert recipe_of(whole).digest == recipe_of(spaced).digest == expected
    assert recipe_of(document(rationale="x")).digest != recipe_of(document()).digest


def test_messages_name_what_is_known() -> None:
    message = parsed(document([rule(encode="copy")]))[2].items[0].message
    assert all(name in message for name in ENCODERS)
    message = parsed(document(value(op="slice")))[2].items[0].message
    assert all(name in message for name in OPERATIONS.names)
    message = parsed(document([rule(format="BF16")]))[2].items[0].message
    assert "F32" in message
    assert "cast to BF16" in message
