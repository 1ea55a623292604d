"""The JSON document: what it takes, what it refuses, and that reading and writing are total and inverse."""

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.findings import Findings
from ninfer_core.schemes.struct_checking import check_text
from ninfer_core.schemes.structs.conformance import read_cases, verdict_of
from ninfer_core.schemes.structs.document import Document, read_document
from ninfer_core.schemes.structs.examine import declared_by, examine
from ninfer_core.schemes.structs.json_writing import write_document
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Constant,
    Declaration,
    Declared,
    Dim,
    External,
    Field,
    Leaf,
    Reference,
    Structure,
    Value,
)
from ninfer_core.schemes.structs.numbers import packed
from ninfer_core.schemes.structs.sizes import size_bits
from tests.schemes.structs import functions
from tests.schemes.structs.strategies import with_payload
from tests.schemes.structs.test_cases import CASES

BYTES4: dict[str, Any] = {"array": {"element": "UINT8", "dimension": 4}}


def _read(**members: Any) -> Document:
    document = read_document(json.dumps(members).encode())
    assert isinstance(document, Document), [finding.message for finding in document]
    return document


def _refused(**members: Any) -> list[tuple[str, str]]:
    findings = read_document(json.dumps(members).encode())
    assert isinstance(findings, Findings)
    return [(finding.code, finding.where["path"]) for finding in findings]


def _codes(document: Document) -> list[str]:
    return [finding.code for finding in examine(document).findings]


def test_a_declaration_with_all_that_it_may_carry() -> None:
    decoder = functions.DECODER.SerializeToString()
    declaration = {
        "bit_packing": {"components": [["low", 4], ["high", 4]], "dims_index": 0},
        "name": "pairs",
        "doc_string": "two of four",
        "dims_param": ["n"],
        "metadata_props": {"k": "v"},
        "decoder": {"base64": base64.b64encode(decoder).decode()},
    }
    (read,) = _read(types=[declaration]).model
    assert (read.name, read.doc, read.dims_param, read.metadata) == (
        "pairs",
        "two of four",
        ("n",),
        (("k", "v"),),
    )
    assert read.decoder == decoder
    assert read.encoder is None


def test_a_decoder_in_the_text_form_of_onnx() -> None:
    from ninfer_core.schemes.functions.text import function_to_text

    text = function_to_text(functions.DECODER)
    pair = {"structure": [{"name": "codes", "type": BYTES4}, {"name": "scale", "type": "FLOAT"}]}
    document = _read(types=[pair | {"decoder": {"onnx_text": text}}], root=0, payload_bytes=8)
    assert _codes(document) == []
    ((code, path),) = _refused(types=[pair | {"decoder": {"onnx_text": "nonsense {"}}])
    assert (code, path) == ("struct.decoder_signature", "$.types[0].decoder.onnx_text")


def test_parameters_are_as_many_as_counts_use_where_none_are_listed() -> None:
    types = [{"array": {"element": {"array": {"element": "UINT8", "dims_index": 1}}, "dims_index": 0}}]
    assert len(_read(types=types).model[0].dims_param) == 2
    assert _codes(_read(types=types, root=0, dims=[2, 3], payload_bytes=6)) == []
    # An index far outside makes no list of its size.
    assert (
        len(_read(types=[{"array": {"element": "UINT8", "dims_index": 2**31 - 1}}]).model[0].dims_param) == 1
    )


def test_payloads_of_every_kind() -> None:
    assert _codes(_read(types=[BYTES4], root=0, payload_hex="00010203")) == []
    assert _codes(_read(types=[BYTES4], root=0, payload_bytes=3)) == ["struct.payload_size_mismatch"]
    assert _codes(_read(types=[BYTES4], root=0)) == []  # only the type is asked about
    assert _codes(_read(types=[BYTES4], value={"type": 0})) == ["struct.payload_source"]
    named = _read(types=[BYTES4], root=0, payload_file="w.bin")
    assert (named.payload_file, named.inline_bytes) == ("w.bin", None)
    # A number of bytes is a number, whatever it says.
    assert _codes(_read(types=[BYTES4], root=0, payload_bytes=2**64 - 1)) == ["struct.payload_size_mismatch"]


def test_an_examination_says_size_and_leaves() -> None:
    found = examine(_read(types=[BYTES4], root=0, payload_bytes=3))
    assert (found.size_bits, found.size_bytes, [leaf.shape for leaf in found.leaves]) == (32, 4, [(4,)])
    broken = examine(_read(types=[{"type_index": 0}], root=0))
    assert (broken.size_bits, broken.size_bytes, broken.leaves) == (None, None, ())
    odd = examine(_read(types=[{"array": {"element": "UINT4", "dimension": 3}}], root=0))
    assert (odd.size_bits, odd.size_bytes) == (12, None)


def test_elements_are_expected_of_a_payload_and_of_constants() -> None:
    constant = {"name": "k", "constant": {"dtype": "INT8", "dims": [1], "values": [7]}}
    types = [{"structure": [constant, {"name": "v", "type": "UINT8"}]}]
    leaves: list[dict[str, Any]] = [{"path": "k", "values": [7]}, {"path": "v", "values": [5]}]
    assert _codes(_read(types=types, root=0, leaves=leaves, payload_hex="05")) == []
    for more in ({"payload_hex": "06"}, {"payload_bytes": 1}, {}):
        found = examine(_read(types=types, root=0, leaves=leaves, **more)).findings
        assert [(finding.code, finding.where["path"]) for finding in found] == [
            ("struct.expectation_differs", "leaves[1].values")
        ]


def test_true_is_no_number_in_what_is_expected() -> None:
    (finding,) = examine(_read(types=[BYTES4], root=0, leaves=[{"path": "", "constant": 0}])).findings
    assert (finding.code, finding.where["path"]) == ("struct.expectation_differs", "leaves[0].constant")


def test_a_model_without_a_value_is_checked_as_one() -> None:
    assert _codes(_read(types=[BYTES4, {"type_index": 0}])) == ["struct.bad_root_kind"]
    assert _codes(_read(types=[BYTES4], names=[""])) == ["struct.missing_name"]
    assert _codes(_read(types=[BYTES4], static={"type_index": 1})) == ["struct.type_index_out_of_range"]


@pytest.mark.parametrize(
    ("members", "code", "path"),
    [
        ({"types": [BYTES4], "more": 1}, "member_unexpected", "$"),
        ({}, "member_missing", "$"),
        ({"name": "n"}, "member_missing", "$"),
        ({"types": {}}, "value_type", "$.types"),
        ({"types": [{"array": {"element": "UINT8"}}]}, "value_invalid", "$.types[0].array"),
        (
            {"types": [{"array": {"element": "UINT8", "dimension": 1, "dims_index": 0}}]},
            "value_invalid",
            "$.types[0].array",
        ),
        ({"types": [{"array": {"dimension": 1}}]}, "member_missing", "$.types[0].array"),
        (
            {"types": [{"array": {"element": "UINT8", "dimension": 2**64}}]},
            "value_invalid",
            "$.types[0].array.dimension",
        ),
        (
            {"types": [{"array": {"element": "UINT8", "dimension": -1}}]},
            "value_invalid",
            "$.types[0].array.dimension",
        ),
        (
            {"types": [{"array": {"element": "UINT8", "dimension": True}}]},
            "value_type",
            "$.types[0].array.dimension",
        ),
        (
            {"types": [{"array": {"element": "UINT8", "dimension": 1.0}}]},
            "value_type",
            "$.types[0].array.dimension",
        ),
        ({"types": [BYTES4 | {"structure": []}]}, "value_invalid", "$.types[0]"),
        ({"types": [BYTES4 | {"shape": [1]}]}, "member_unexpected", "$.types[0]"),
        (
            {"types": [{"packed_array": {"components": [["a"]], "dimension": 1}}]},
            "value_type",
            "$.types[0].packed_array.components[0]",
        ),
        (
            {"types": [{"packed_array": {"components": [["a", True]], "dimension": 1}}]},
            "value_type",
            "$.types[0].packed_array.components[0]",
        ),
        ({"types": [{"structure": [{"name": 3}]}]}, "value_type", "$.types[0].structure[0].name"),
        (
            {"types": [{"array": {"element": BYTES4 | {"name": "n"}, "dimension": 1}}]},
            "static_form_extras",
            "$.types[0].array.element",
        ),
        ({"types": [BYTES4], "root": 0, "payload_bytes": 4, "payload_hex": ""}, "value_invalid", "$"),
        (
            {"types": [BYTES4], "value": {"type": 0, "raw_data_hex": "", "raw_data_bytes": 4}},
            "value_invalid",
            "$.value",
        ),
        ({"types": [BYTES4], "root": 0, "payload_hex": "0"}, "value_invalid", "$.payload_hex"),
        ({"types": [BYTES4], "root": 0, "payload_hex": "\u0660\u0661"}, "value_invalid", "$.payload_hex"),
        ({"types": [BYTES4], "root": 1, "value": {"type": 0}}, "value_invalid", "$.root"),
        ({"types": [BYTES4], "dims": [1], "value": {"type": 0}}, "value_invalid", "$.dims"),
        ({"types": [BYTES4], "names": []}, "value_invalid", "$.names"),
        ({"types": [BYTES4 | {"name": "a"}], "names": ["b"]}, "value_invalid", "$.names"),
        ({"types": [BYTES4], "dims_param": [[1]]}, "value_invalid", "$.dims_param"),
        ({"types": [BYTES4], "decoder": {"inputs": 1}}, "member_unexpected", "$.decoder"),
        ({"types": [BYTES4 | {"decoder": {"inputs": 1}}]}, "member_unexpected", "$.types[0].decoder"),
        ({"types": [BYTES4 | {"decoder": {"base64": "*"}}]}, "value_invalid", "$.types[0].decoder.base64"),
        ({"types": [BYTES4 | {"decoder": {}}]}, "value_invalid", "$.types[0].decoder"),
        ({"types": [BYTES4], "root": 0, "leaves": [{"shape": []}]}, "member_missing", "$.leaves[0]"),
        (
            {"types": [BYTES4], "value": {"type": 0, "external_data": {"length": 1.5}}},
            "value_invalid",
            "$.value.external_data",
        ),
    ],
)
def test_what_the_document_does_not_take(members: dict[str, Any], code: str, path: str) -> None:
    assert (f"struct.{code}", path) in _refused(**members)


@pytest.mark.parametrize(
    ("constant", "words"),
    [
        ({"dtype": "INT4", "dims": [3], "values": [-1, 7, -8]}, "7f08"),
        ({"dtype": "UINT2", "dims": [5], "values": [3, 2, 1, 0, 3]}, "1b03"),
        ({"dtype": "FLOAT6E3M2", "dims": [4], "values": [0, -0.0, 28.0, -28.0]}, "00f8fd"),
        ({"dtype": "FLOAT4E2M1", "dims": [2], "values": [0.5, -6]}, "f1"),
        ({"dtype": "FLOAT8E8M0", "dims": [2], "values": [1.0, "nan"]}, "7fff"),
        ({"dtype": "BFLOAT16", "dims": [2], "values": [1.0, "-inf"]}, "803f80ff"),
        ({"dtype": "FLOAT", "dims": [2], "values": [0.1, "nan"]}, "cdcccc3d0000c07f"),
        ({"dtype": "UINT64", "dims": [], "values": [2**64 - 1]}, "ffffffffffffffff"),
        ({"dtype": "INT64", "dims": [], "values": [-(2**63)]}, "0000000000000080"),
        ({"dtype": "BOOL", "dims": [2], "values": [True, False]}, "0100"),
        ({"dtype": "DOUBLE", "dims": [1], "raw_hex": "010000000000f87f"}, "010000000000f87f"),
        ({"dtype": "INT8", "dims": [0], "values": []}, ""),
    ],
)
def test_constants_become_words(constant: dict[str, Any], words: str) -> None:
    (declaration,) = _read(types=[{"structure": [{"name": "c", "constant": constant}]}]).model
    assert isinstance(declaration.type, Structure)
    found = declaration.type.fields[0].constant
    assert found is not None
    assert found.data.hex() == words


def test_a_float_of_a_constant_is_rounded_once() -> None:
    # 2**-8 is half a step of BFLOAT16 above 1; binary32 does not have what lies a little beside it.
    above, below, half = 1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40, 1 + 2**-8
    values = [above, -above, below, half, 2**-134 + 2**-180, 0.1]
    words = np.frombuffer(packed(values, LEAVES["BFLOAT16"]), "<u2").tolist()
    assert words == [0x3F81, 0xBF81, 0x3F81, 0x3F80, 0x0001, 0x3DCD]


@pytest.mark.parametrize(
    "constant",
    [
        {"dtype": "INT4", "dims": [1], "values": [8]},
        {"dtype": "INT4", "dims": [1], "values": [-9]},
        {"dtype": "UINT8", "dims": [1], "values": [-1]},
        {"dtype": "UINT4", "dims": [3], "values": [1, 2, 3, 4]},  # two bytes either way
        {"dtype": "INT8", "dims": [1], "values": [1.0]},
        {"dtype": "INT8", "dims": [1], "values": [True]},
        {"dtype": "BOOL", "dims": [1], "values": [1]},
        {"dtype": "FLOAT", "dims": [1], "values": [True]},
        {"dtype": "FLOAT", "dims": [1], "values": ["1.0"]},
        {"dtype": "FLOAT", "dims": [1], "values": [10**39]},
        {"dtype": "DOUBLE", "dims": [1], "values": [10**400]},
        {"dtype": "FLOAT4E2M1", "dims": [1], "values": [5.0]},
        {"dtype": "FLOAT8E8M0", "dims": [1], "values": [-1.0]},
        {"dtype": "FLOAT", "dims": [1], "values": [None]},
        {"dtype": "FLOAT", "dims": [2**63, 2**63], "values": []},
    ],
)
def test_numbers_that_a_constant_cannot_hold(constant: dict[str, Any]) -> None:
    fields = [{"name": "c", "constant": constant}]
    codes = [code for code, _ in _refused(types=[{"structure": fields}])]
    assert codes[0] in ("struct.bad_constant", "struct.value_invalid", "struct.value_type")


def test_deep_documents_are_refused_by_the_limit_of_types() -> None:
    type_: Any = "UINT8"
    for _ in range(200):
        type_ = {"array": {"element": type_, "dimension": 1}}
    assert [code for code, _ in _refused(types=[type_])] == ["struct.limit_nesting"]
    text = '{"types": [' + '{"array": {"element": ' * 5000 + '"UINT8"' + "}}" * 5000 + "]}"
    findings = read_document(text.encode())
    assert isinstance(findings, Findings)
    assert [finding.code for finding in findings] == ["structure.json_depth"]


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"1", b"\xff", b'{"types": [NaN]}', b'{"a": 1, "a": 2}', b'{"\\ud800": 1}']
)
def test_what_is_no_document(text: bytes) -> None:
    assert isinstance(read_document(text), Findings)
    assert isinstance(read_cases(text, "cases"), Findings)


@pytest.mark.parametrize("members", [{"accept": 1}, {"accept": [], "more": []}, {"reject": {}}])
def test_what_is_no_file_of_cases(members: dict[str, Any]) -> None:
    found = read_cases(json.dumps(members).encode(), "cases")
    assert isinstance(found, Findings)
    assert {finding.code for finding in found} == {"struct.member_unexpected"}


def test_cases_that_are_no_documents_fail() -> None:
    found = read_cases(
        json.dumps({"accept": [1, {"name": 2}], "reject": ["x", {"code": 3}]}).encode(), "cases"
    )
    assert isinstance(found, tuple)
    assert [case.outcome for case in found] == ["failed"] * 4
    assert read_cases(json.dumps({"types": []}).encode(), "one") is None


@given(with_payload())
@settings(max_examples=25)
def test_writing_and_reading_give_the_same_back(case: tuple[Declared, bytes]) -> None:
    declared, payload = case
    value = Value(declared.root, data=payload, name="v", doc="d", dims=declared.dims)
    document = read_document(write_document(declared.declarations, value).encode())
    assert isinstance(document, Document)
    assert (document.model, document.value) == (declared.declarations, value)
    assert declared_by(document) == declared
    found = examine(document)
    assert found.findings == ()
    assert found.size_bits == size_bits(declared) == 8 * len(payload)


def test_what_only_the_checker_refuses_is_written_as_well() -> None:
    strange = Constant("BOOL", (2,), b"\x02\x00")
    model = (
        Declaration(None, name="empty"),
        Declaration(Leaf("FLOAT", (2,)), doc="a tensor"),
        Declaration(Reference(5), metadata=(("k", "v"),), decoder=b"\x00", encoder=b"\xff"),
        Declaration(
            Structure(
                (
                    Field("", Array(Leaf("STRING"), Dim(-3)), Constant("INT8", (3,), b"1", True)),
                    Field("b", constant=strange, doc="note"),
                    Field("c", constant=Constant("STRING", (1,), b"x")),
                )
            ),
            dims_param=("", ""),
        ),
    )
    value = Value(
        -1, model[3], external=External((("length", "4"), ("location", "w.bin"))), dims=(1, 2**64 - 1)
    )
    document = read_document(write_document(model, value).encode())
    assert isinstance(document, Document)
    fields = list(model[3].type.fields) if isinstance(model[3].type, Structure) else []
    # An external constant has no data here: the document does not follow it.
    fields[0] = replace(fields[0], constant=Constant("INT8", (3,), b"", True))
    read = replace(model[3], type=Structure(tuple(fields)))
    assert document.model == (*model[:3], read)
    assert document.value == replace(value, declaration=read)


_BY_PATH = [
    case for kind in CASES.values() for case in kind if "leaves" not in case or len(case["leaves"]) < 4
]


@given(st.data())
@settings(max_examples=60)
def test_reading_is_total(data: st.DataObject) -> None:
    # One member anywhere in a reference case replaced by any JSON: an answer, never an exception.
    case = json.loads(json.dumps(data.draw(st.sampled_from(_BY_PATH))))
    where: Any = case
    while True:
        key = data.draw(st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where))))
        below = where[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            break
        where = below
    where[key] = data.draw(_JSON)
    text = json.dumps(case).encode()
    document = read_document(text)
    if isinstance(document, Document):
        for finding in examine(document).findings:
            assert finding.code.startswith("struct.")
    else:
        assert document.items


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "UINT8", "FLOAT", "STRING", "nan", "00"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "array",
                    "element",
                    "dimension",
                    "type_index",
                    "structure",
                    "name",
                    "type",
                    "constant",
                    "dims",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


ONE_ARRAY: dict[str, object] = {"types": [{"array": {"element": "UINT8", "dimension": 4}}]}


def _examined(**members: object) -> list[str]:
    document = read_document(json.dumps(members).encode())
    found = document if isinstance(document, Findings) else examine(document).findings
    return [finding.code for finding in found]


def _constant(**members: object) -> list[str]:
    field = {"name": "a", "constant": {"dtype": "UINT8", **members}}
    return _examined(types=[{"structure": [field, {"name": "b", "type": "UINT8"}]}], root=0)


@pytest.mark.parametrize("data", [{"values": [1]}, {"raw_hex": "01"}])
def test_a_constant_has_few_dimensions(data: dict[str, object]) -> None:
    assert _constant(dims=[2**64 - 1] * 100_000, **data) == ["struct.bad_constant"]
    assert _constant(dims=[1] * 64, **data) == []


def test_paths_without_end_are_no_leaves() -> None:
    inner = {"structure": [{"name": f"f{index}", "type": "UINT8"} for index in range(4_000)]}
    long = [{"structure": [{"name": "n" * 20_000, "type": inner}]}]
    assert _examined(types=long, root=0) == ["struct.limit_leaves"]


def test_a_leaf_that_no_array_holds_is_a_fault_where_its_elements_are_expected() -> None:
    outer = {"array": {"element": {"array": {"element": "UINT64", "dimension": 2**63}}, "dimension": 0}}
    leaf = {"path": "", "shape": [0, 2**63], "values": []}
    expected = ["struct.limit_values"]
    assert _examined(types=[outer], root=0, payload_hex="", leaves=[leaf]) == expected


def test_what_a_document_expects_is_never_passed_over() -> None:
    assert _examined(**ONE_ARRAY, root=0, code="type_cycle") == ["struct.expectation_differs"]
    assert _examined(**ONE_ARRAY, size_bits=32, leaves=[]) == ["struct.expectation_differs"] * 2
    assert _examined(**ONE_ARRAY, dims=[4], payload_hex="00") == ["struct.member_missing"] * 2


@pytest.mark.parametrize("text", [b'{"types": []}', b'{"names": []}', b'{"code": "x"}', b'{"profile": "x"}'])
def test_where_nothing_is_checked_nothing_passes(text: bytes) -> None:
    assert check_text(text).verdict == "incomplete"


def test_a_file_of_cases_has_cases() -> None:
    assert isinstance(read_cases(b'{"accept": [], "reject": []}', "cases"), Findings)
    cases = read_cases(b'{"reject": [{"code": "x", "profile": "in words"}]}', "cases")
    assert isinstance(cases, tuple)
    assert verdict_of(cases) == "incomplete"


@pytest.mark.parametrize("text", [b"{}," * 1_000_001, b"1," * 8_000_001], ids=["objects", "values"])
def test_a_document_that_would_take_all_memory_is_not_read(text: bytes) -> None:
    assert [one.code for one in check_text(b'{"types":[' + text).findings] == ["struct.document_malformed"]
    assert isinstance(read_cases(text, "cases"), Findings)
