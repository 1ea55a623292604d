"""The source preflight: configs, side files, names, cross checks, shared tensors; what became of every source tensor."""

import json
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import Draft, convert
from ninfer_core.recipes import Plan
from ninfer_core.recipes.accounting import accounting_json
from ninfer_core.recipes.configs import at_path, same_value
from ninfer_core.recipes.preflight import source_tasks
from ninfer_core.strict_json import parse
from ninfer_core.verify.pool import Pool
from tests.recipes.build import RULE, W, bound, document, folder, parsed, source, tensor
from tests.sources.build import MemoryFiles

Json = dict[str, Any]
WORDS = np.arange(8, dtype="<u4") + 0x3F800000
STORED = ("F32", [2, 4], WORDS.tobytes())
CONFIG = {
    "model_type": "tiny",
    "tie": False,
    "text": {"layers": 4, "eps": 1e-06, "types": ["full", "line", "line", "full"], "rope": {"b": [1, 2], "a": None}},
}  # fmt: skip


def with_config(config: Any = CONFIG, **others: Any) -> MemoryFiles:
    texts = {name: json.dumps(value).encode() for name, value in {"config.json": config, **others}.items()}
    return folder({"w": STORED}, **texts)


def codes(base: MemoryFiles, **members: Any) -> tuple[list[str], list[Any]]:
    whole = document(sources={"base": source(**members)}, sets={"full": [0, 3]})
    found, _, findings = bound(whole, {"base": base})
    return found, list(findings)


LAYERS = {"member": "text.types", "set": "full", "in_set": "full", "otherwise": "line"}


@pytest.mark.parametrize(
    "members",
    [
        {"config_requires": {"": {"model_type": "tiny", "tie": False}, "text": {"layers": 4.0, "eps": 0.000001}}},
        {"config_requires": {"text.rope": {"__exact_members__": ["b", "a"], "a": None, "b": [1.0, 2]}}},
        {"config_requires": {"text": {"rope": {"a": None, "b": [1, 2]}}}},
        {"config_absent": ["quantization_config", "text.window"]},
        {"layer_types": LAYERS},
        {"side_files": [{"file": "side.json", "members": {"count": 3}}]},
    ],
)  # fmt: skip
def test_a_config_that_is_as_demanded(members: Json) -> None:
    assert codes(with_config(**{"side.json": {"count": 3, "more": 1}}), **members) == ([], [])


@pytest.mark.parametrize(
    ("members", "place", "expected", "found"),
    [
        ({"config_requires": {"": {"tie": 0}}}, "tie", "0", "false"),
        ({"config_requires": {"": {"tie": None}}}, "tie", "null", "false"),
        ({"config_requires": {"": {"none": 1}}}, "none", "1", "nothing"),
        ({"config_requires": {"text": {"layers": "4"}}}, "text.layers", '"4"', "4"),
        ({"config_requires": {"text": {"layers": True}}}, "text.layers", "true", "4"),
        ({"config_requires": {"text.types": {"a": 1}}}, "text.types", "an object", '["full", "line", "line", "full"]'),
        ({"config_requires": {"vision": {}}}, "vision", "an object", "nothing"),
        ({"config_requires": {"text.rope": {"__exact_members__": ["a", "b"]}}}, "text.rope", '["a", "b"]', '["b", "a"]'),
        ({"config_absent": ["text.rope.a"]}, "text.rope.a", "nothing", "null"),
        ({"layer_types": {**LAYERS, "otherwise": "linear"}}, "text.types[1]", '"linear"', '"line"'),
        ({"layer_types": {**LAYERS, "member": "types"}}, "types", "a list of layer types", "nothing"),
        ({"side_files": [{"file": "side.json", "members": {"n": {"a": 1}}}]}, "n", '{"a": 1}', "an object of 2 members"),
    ],
)  # fmt: skip
def test_a_config_that_is_not(members: Json, place: str, expected: str, found: str) -> None:
    names, (finding,) = codes(with_config(**{"side.json": {"n": {"a": 1, "b": 2}}}), **members)
    assert names == ["source.config_mismatch"]
    assert (finding.where["member"], finding.expected, finding.found) == (place, expected, found)
    assert (finding.about, finding.definition.rule) == ("source", "E1")


def test_every_fault_of_a_config_is_named() -> None:
    demanded = {"": {"model_type": "x", "a": 1}, "text": {"layers": 5}}
    names, findings = codes(with_config(), config_requires=demanded, config_absent=["tie"])
    assert names == ["source.config_mismatch"] * 4
    assert [finding.where["member"] for finding in findings] == ["model_type", "a", "text.layers", "tie"]


def test_layers_that_end_too_early() -> None:
    config = {"text": {"types": ["full", "line"]}}
    names, (finding,) = codes(with_config(config), layer_types=LAYERS)
    assert names == ["source.config_mismatch"]
    assert finding.expected == "at least 4 layers"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "source.file_missing"),
        (b"{", "structure.json_syntax"),
        (b"[]", "structure.json_root"),
        (b'{"a": 1, "a": 1}', "structure.json_member_duplicate"),
        (b"version https://git-lfs.github.com/spec/v1\n", "structure.pointer_stub"),
    ],
)
def test_a_config_that_cannot_be_read(content: bytes | None, code: str) -> None:
    base = folder({"w": STORED}, **({} if content is None else {"config.json": content}))
    names, findings = codes(base, config_absent=["x"])
    assert names == [code]
    assert findings[0].about == "source"


def test_no_config_is_read_where_nothing_is_demanded() -> None:
    assert codes(folder({"w": STORED}, **{"config.json": b"{"})) == ([], [])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", "1.0", True),
        ("1e3", "1000", True),
        ("0.1", "0.10", True),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "0", False),
        ("9007199254740993", "9007199254740992.0", False),
        ('{"a": 1, "b": [2]}', '{"b": [2.0], "a": 1}', True),
        ("[1, 2]", "[2, 1]", False),
        ("[1]", "[1, 1]", False),
        ('"1"', "1", False),
        ("{}", "[]", False),
        ("1" * 60, "1" * 60, True),
        ("4", "4.0000000000000000000001", False),
        ("4.00", "0.4E+1", True),
        ("-0.0", "0", True),
        ("-1.5", "1.5", False),
        ("-120e-2", "-1.2", True),
        ("1" + "0" * 60, "1e60", True),
        ("1e-999999999999", "10e-1000000000000", True),
        ("1e-999999999999", "1e-999999999998", False),
        ("0e-" + "9" * 9000, "0", True),
        ("1e-" + "9" * 9000, "1e-0" + "9" * 9000, True),
        ("1e-" + "9" * 9000, "1e-" + "8" * 9000, False),
        ("1e-" + "9" * 9000, "0", False),
    ],
)
def test_values_compare_by_value(left: str, right: str, same: bool) -> None:
    one, other = parse(left.encode(), 4)[0], parse(right.encode(), 4)[0]
    assert same_value(one, other) == same_value(other, one) == same


def test_dotted_paths() -> None:
    assert at_path({"a": {"b": None}}, "a.b") == (True, None)
    assert at_path({"a": {"b": 1}}, "a.b.c") == (False, None)
    assert at_path({"a": 1}, "") == (True, {"a": 1})


OTHER = {
    "repository": "r",
    "revision": "1",
    "license": "none",
    "kind": "safetensors-file",
    "file": "model.safetensors",
}
BF16_A, BF16_B = b"\x01\x02" * 4, b"\x01\x02" * 3 + b"\x01\x03"


def two_roles(cross: list[Any], left: Json, right: Json, config: Any = None, **members: Any) -> Any:
    texts = {} if config is None else {"config.json": json.dumps(config).encode()}
    own = {} if config is None else {"config.json": json.dumps(CONFIG).encode()}
    whole = document(
        sources={"base": source(**members), "other": OTHER}, sets={"s": [0, 1]}, cross_checks=cross
    )
    return bound(whole, {"base": folder({"w": STORED, **left}, **own), "other": folder(right, **texts)})


PAIR = {
    "check": "equal_source_tensors",
    "left": "base",
    "right": "other",
    "dtype": "BF16",
    "names": [{"name": "x{l}.weight", "each": {"l": "s"}}],
    "count": 2,
}


def pair(first: bytes, second: bytes) -> Json:
    return {"x0.weight": ("BF16", [2, 2], first), "x1.weight": ("BF16", [2, 2], second)}


def compared(plan: Plan) -> list[Any]:
    return [finding for task in source_tasks(plan, Pool(1)) for finding in task.run()]


def test_shared_tensors_are_compared_word_by_word() -> None:
    found, plan, _ = two_roles([PAIR], pair(BF16_A, BF16_A), pair(BF16_A, BF16_A))
    assert found == []
    assert compared(plan) == []
    reasons = [use.reason for uses in plan.accounting.values() for use in uses.values() if not use.objects]
    assert reasons == [f"compared with the same tensor of {r}" for r in ("other", "other", "base", "base")]
    _, plan, _ = two_roles([PAIR], pair(BF16_A, BF16_A), pair(BF16_A, BF16_B))
    (finding,) = compared(plan)
    assert (finding.code, finding.about, finding.definition.rule) == ("source.tensors_differ", "source", "E3")
    assert (finding.where["tensor"], finding.where["index"], finding.count) == ("x1.weight", 3, 1)
    assert (finding.expected, finding.found) == ("0x0201", "0x0301")


def test_convert_compares_shared_tensors_before_it_writes(tmp_path: Any) -> None:
    _, plan, _ = two_roles([PAIR], pair(BF16_A, BF16_A), pair(BF16_A, BF16_B))
    conversion = convert(plan, tmp_path / "o.ninfer")
    assert [finding.code for finding in conversion.findings] == ["source.tensors_differ"]
    assert not conversion.written
    assert list(tmp_path.iterdir()) == []
    assert len(Draft(plan, "o.ninfer", 2, None, Pool(1)).tasks) == 3


@pytest.mark.parametrize(
    ("right", "code"),
    [
        ({"x0.weight": ("BF16", [2, 2], BF16_A)}, "source.pair_missing"),
        ({**pair(BF16_A, BF16_A), "x1.weight": ("F16", [2, 2], BF16_A)}, "source.pair_missing"),
        ({**pair(BF16_A, BF16_A), "x1.weight": ("BF16", [4], BF16_A)}, "source.tensors_differ"),
    ],
)
def test_shared_tensors_that_cannot_be_compared(right: Json, code: str) -> None:
    found, _, findings = two_roles([PAIR], pair(BF16_A, BF16_A), right)
    assert found == [code]
    assert findings.items[0].where["tensor"] == "x1.weight"


EQUAL = {"check": "equal_configs", "left": "base", "right": "other", "members": "the config_requires groups of the base source"}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "places"),
    [
        ({}, ["model_type", "text.layers", "text.rope.__exact_members__"]),
        ({**CONFIG, "text": {}}, ["text.layers", "text.rope.__exact_members__"]),
        ({**CONFIG, "text": {"layers": 4, "rope": {"a": 1}}}, ["text.rope.__exact_members__"]),
        ({**CONFIG, "text": {"layers": 4, "rope": {"b": 1, "a": 1}}}, []),
    ],
)  # fmt: skip
def test_what_one_config_lacks_is_not_equal(config: Json, places: list[str]) -> None:
    demanded = {
        "": {"model_type": "tiny"},
        "text": {"layers": 4},
        "text.rope": {"__exact_members__": ["b", "a"]},
    }
    found, _, findings = two_roles([EQUAL], {}, {}, config, config_requires=demanded)
    assert found == ["source.configs_differ"] * len(places)
    assert [finding.where["member"] for finding in findings] == places


def test_nothing_equals_nothing() -> None:
    demanded = {"": {"none": 1}}
    found, _, findings = two_roles([EQUAL], {}, {}, CONFIG, config_requires=demanded)
    assert found == ["source.config_mismatch", "source.configs_differ"]
    assert (findings.items[1].expected, findings.items[1].found) == ("nothing", "nothing")


def test_equal_configs() -> None:
    check = EQUAL
    demanded = {"": {"model_type": "tiny"}, "text": {"layers": 4}}
    text = {**CONFIG["text"], "layers": 4.0, "types": []}  # type: ignore[dict-item]
    assert two_roles([check], {}, {}, {**CONFIG, "text": text}, config_requires=demanded)[0] == []
    found, _, findings = two_roles(
        [check], {}, {}, {"model_type": "big", "text": text}, config_requires=demanded
    )
    assert found == ["source.configs_differ"]
    assert (findings.items[0].where["member"], findings.items[0].found) == ("model_type", '"big"')


CLOSED = {"check": "closed_dtypes", "from": "base", "dtypes": ["F32", "U8"], "count": 1}
UNUSED = {"check": "unused_sources", "from": "base", "names": ["y", "z.*", "no such"], "meaning": "left out"}


SUFFIXES = {
    "check": "absent_source_suffixes",
    "from": "base",
    "of": "fp8_row_matrix prefixes",
    "suffixes": [".s"],
}


def one_role(cross: list[Any], stored: Json, rules: Any = None, **members: Any) -> Any:
    whole = document(rules, sources={"base": source(**members)}, cross_checks=cross)
    return bound(whole, {"base": folder(stored)})


def test_dtypes_that_must_be_read_whole() -> None:
    stored = {"w": STORED, "y": ("U8", [1], b"y"), "x": ("BF16", [1], b"xx"), "z.1": ("F32", [1], b"zzzz")}
    found, _, findings = one_role([CLOSED], stored)
    assert found == ["source.tensor_unaccounted", "source.dtypes_not_closed"]
    assert findings.items[1].where["tensors"] == ["y", "z.1"]
    assert one_role([CLOSED], {"w": STORED, "x": ("BF16", [1], b"xx")})[0] == ["source.tensor_unaccounted"]


def test_accounting() -> None:
    stored = {"w": STORED, "y": ("U8", [1], b"y"), "x": ("BF16", [1], b"xx"), "z.1": ("F32", [1], b"zzzz")}
    rules = [RULE, {**RULE, "object": "again"}]
    found, plan, findings = one_role([UNUSED], stored, rules)
    assert found == ["source.tensor_unaccounted", "source.unused_absent"]
    finding, absent = findings
    assert (absent.severity, absent.count, absent.where["names"]) == ("advisory", 1, ["no such"])
    assert (finding.severity, finding.count, finding.where["tensors"]) == ("advisory", 1, ["x"])
    assert accounting_json(plan.accounting) == {
        "base": {
            "total": 4,
            "used": 1,
            "excluded": 2,
            "unaccounted": 1,
            "shared": {"w": ["w", "again"]},
            "excluded_tensors": {"y": "left out", "z.1": "left out"},
            "unaccounted_tensors": ["x"],
        }
    }


def test_exact_names_know_no_excuse() -> None:
    stored = {"w": STORED, "y": ("U8", [1], b"y")}
    named = {**UNUSED, "names": ["y"]}
    assert one_role([named], stored, exact_tensor_names=True)[0] == ["source.tensor_unexpected"]


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (tensor("w", [4, 2], "F32"), True),
        (tensor("w", [2, 4], "I32"), True),
        (tensor("w", [2, 4], "F32"), False),
        ({**tensor("w", [4, 2], "F32"), "from": "other"}, False),
    ],
)
def test_one_tensor_is_not_two_things(second: Json, fault: bool) -> None:
    rules = [
        RULE,
        {**RULE, "object": "again", "value": second, "format": "FP32" if second["dtype"] == "F32" else "I32"},
    ]
    found, _, findings = parsed(document(rules, sources={"base": source(), "other": source()}))
    assert found == ([("source_contradiction", "$.rules[1]")] if fault else [])
    if fault:
        assert (findings.items[0].where["tensor"], findings.items[0].where["other"]) == ("w", "$.rules[0]")


def test_one_word_may_be_read_as_a_scalar() -> None:
    word = {"op": "equal_scalar", "from": "base", "names": ["s"]}
    rules = [{**RULE, "value": word}, {**RULE, "object": "again", "value": tensor("s", [], "F32")}]
    assert parsed(document(rules))[0] == []


def test_upstream_may_ask_for_more_tensors() -> None:
    found, _, findings = one_role([], {"w": STORED}, upstream_preflight_tensors=2)
    assert found == ["source.preflight_count"]
    assert findings.items[0].severity == "advisory"
    assert one_role([], {"w": STORED}, upstream_preflight_tensors=1)[0] == []


def test_suffixes_that_may_not_be_there() -> None:
    matrix = {"op": "fp8_row_matrix", "from": "base", "prefix": "m", "shape": [2, 4]}
    rule = {"object": "m", "value": matrix, "format": "FP8_E4M3FN_ROW_BF16S", "encode": "copy_fp8_row_words"}
    stored = {"m.weight": ("F8_E4M3", [2, 4], b"\0" * 8), "m.weight_scale": ("BF16", [2, 1], b"\0" * 4)}
    check = {"check": "absent_source_suffixes", "from": "base", "of": "fp8_row_matrix prefixes", "suffixes": [".bias", ".packed"]}  # fmt: skip
    assert one_role([check], stored, [rule])[0] == []
    found, _, findings = one_role([check], {**stored, "m.bias": ("BF16", [1], b"bb")}, [rule])
    assert found == ["source.tensor_unaccounted", "source.tensor_forbidden"]
    assert findings.items[1].where["tensors"] == ["m.bias"]
    other = {**check, "of": "nvfp4_matrix prefixes"}
    assert one_role([other], {**stored, "m.bias": ("BF16", [1], b"bb")}, [rule])[0] == [
        "source.tensor_unaccounted"
    ]


def test_suffixes_beside_compared_tensors() -> None:
    check = {"check": "absent_source_suffixes", "from": "other", "of": "prefixes compared by equal_source_tensors", "suffixes": [".scale"]}  # fmt: skip
    right = {**pair(BF16_A, BF16_A), "x1.scale": ("F32", [1], b"\0" * 4)}
    found, _, findings = two_roles([PAIR, check], pair(BF16_A, BF16_A), right)
    assert found == ["source.tensor_unaccounted", "source.tensor_forbidden"]
    assert findings.items[1].where["tensors"] == ["x1.scale"]


FAULTS: list[tuple[Any, list[tuple[str, str]]]] = [
    (7, [("value_type", "")]),
    ({}, [("member_missing", "")]),
    ({"check": "equal"}, [("value_invalid", ".check")]),
    ({**CLOSED, "dtypes": ["F31"]}, [("value_invalid", ".dtypes")]),
    ({**CLOSED, "from": "third"}, [("source_undefined", ".from")]),
    ({**CLOSED, "count": 2}, [("count_differs", ".count")]),
    ({**CLOSED, "names": []}, [("member_unexpected", "")]),
    ({**UNUSED, "meaning": None}, [("value_type", ".meaning")]),
    ({**UNUSED, "names": ["*"] * 257}, [("value_invalid", ".names")]),
    ({**PAIR, "count": 3}, [("count_differs", ".count")]),
    ({**PAIR, "dtype": "B"}, [("dtype_unknown", ".dtype")]),
    ({**PAIR, "names": [{"name": "{x}"}]}, [("template_invalid", ".names[0].name")]),
    ({**PAIR, "names": [{"name": "x", "each": {"l": "t"}}]}, [("set_unknown", ".names[0].each.l")]),
    ({"check": "equal_configs", "left": "base", "right": "other", "members": "all"}, [("value_invalid", ".members")]),
    ({"check": "absent_source_suffixes", "from": "base", "of": "prefixes", "suffixes": [".s"]}, [("value_invalid", ".of")]),
    # Checks that nothing could fail:
    ({**CLOSED, "dtypes": [], "count": 0}, [("value_invalid", ".dtypes")]),
    ({**PAIR, "names": [], "count": None}, [("value_type", ".count"), ("value_invalid", ".names")]),
    ({"check": "equal_source_tensors", "left": "base", "right": "other", "dtype": "F32", "names": []}, [("value_invalid", ".names")]),
    ({**PAIR, "right": "base"}, [("value_invalid", ".right")]),
    ({**EQUAL, "right": "base"}, [("value_invalid", ".right")]),
    (EQUAL, [("value_invalid", ".members")]),
    ({**SUFFIXES, "suffixes": []}, [("value_invalid", ".suffixes")]),
    # What is left out is not read:
    ({**UNUSED, "names": ["w"]}, [("unused_source_read", ".names")]),
    ({**UNUSED, "names": ["x", "*"]}, [("unused_source_read", ".names")]),
]  # fmt: skip


@pytest.mark.parametrize(("check", "faults"), FAULTS)
def test_faults_of_cross_checks(check: Any, faults: list[tuple[str, str]]) -> None:
    sources = {"base": source(), "other": source()}
    found = parsed(document(cross_checks=[check], sets={"s": [0, 1]}, sources=sources))[0]
    assert found == [(code, f"$.cross_checks[0]{place}") for code, place in faults]


def test_names_of_a_check_are_bounded() -> None:
    names = [{"name": "{a}{b}{c}", "each": dict.fromkeys("abc", "s")}]
    sources = {"base": source(), "other": source()}
    whole = document(cross_checks=[{**PAIR, "names": names}], sets={"s": list(range(1000))}, sources=sources)
    assert parsed(whole)[0] == [("too_many_objects", "$.cross_checks[0].names[0]")]


def test_blocks_of_a_hostile_document_cost_nothing() -> None:
    rows = 2**40
    value = {
        "op": "row_blocks",
        "blocks": rows,
        "stride": 1,
        "begin": 0,
        "end": 1,
        "of": {**W, "shape": [rows, 4]},
    }
    whole = document([{**RULE, "value": value}])
    found, plan, _ = bound(whole, {"base": folder({"w": STORED})})
    assert found == ["source.shape_mismatch"]
    assert plan is None


def test_index_is_what_other_moves_say() -> None:
    value = {"op": "index", "axis": 1, "at": 2, "of": tensor("t", [3, 4, 5], "F32")}
    words = np.arange(60, dtype="<u4")
    rules = [{**RULE, "value": value}]
    found, plan, _ = bound(document(rules), {"base": folder({"t": ("F32", [3, 4, 5], words.tobytes())})})
    assert found == []
    made = plan.objects[0]  # type: ignore[union-attr]
    assert made.shape == (3, 5)  # type: ignore[union-attr]
    expected = words.reshape(3, 4, 5)[:, 2].reshape(-1)
    assert np.array_equal(made.value.read(2, 15), expected[2:])  # type: ignore[union-attr]
