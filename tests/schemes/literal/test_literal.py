"""Literal forms against the stored vectors: types equal, numbers equal bit for bit, decoders equal in both engines."""

import json
import re

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.literal import FORMS
from ninfer_core.schemes.profiles.describe import describe, normalized
from ninfer_core.schemes.profiles.dispatch import decode, dequantize
from ninfer_core.schemes.profiles.functions import with_functions
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.check import check_value
from ninfer_core.schemes.structs.document import Document, read_document
from ninfer_core.schemes.structs.model import Array, Declared, Leaf, Structure, Value
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import view
from tests.schemes.literal.cases import CUSTOM, ROTATED, Literal, literals, words

BY_NAME = {form.name: form for form in FORMS}
EACH = pytest.mark.parametrize("case", literals(), ids=lambda case: case.form)
DECODED = pytest.mark.parametrize(
    "case", [case for case in literals() if case.form != CUSTOM], ids=lambda case: case.form
)
REFERENCE_ONLY = ("mxfp4_literal", "nvfp4_literal")  # FLOAT4E2M1 leaves, which onnxruntime does not take


def test_every_form_has_a_case() -> None:
    assert sorted(BY_NAME) == sorted(case.form for case in literals())
    assert len(FORMS) == 50


@pytest.mark.parametrize("case", [case for case in literals() if case.declared], ids=lambda case: case.form)
def test_the_type_is_the_one_of_the_vectors(case: Literal) -> None:
    document = read_document(json.dumps(case.declared).encode())
    assert isinstance(document, Document)
    assert document.value is not None
    expected = Declared(document.model, document.value.type, document.value.dims)
    made = translate(case.quantization, case.shape)
    # Names and metadata stand in no vector.
    assert [item.type for item in normalized(made)[0]] == [item.type for item in normalized(expected)[0]]
    assert made.dims == expected.dims


@EACH
def test_size_and_way_back(case: Literal) -> None:
    quantization = case.quantization
    declared = translate(quantization, case.shape)
    assert size_bytes(declared) == case.payload.size
    assert describe(declared) == quantization
    full = with_functions(quantization, case.shape)
    value = Value(full.root, data=case.payload.tobytes(), dims=full.dims)
    assert check_value(full.declarations, value) == []  # names, constants, counts, size, decoder
    assert describe(full) == quantization


@pytest.mark.parametrize(
    ("form", "leaf", "size", "values", "scale"),
    [
        ("mxfp4_literal", "FLOAT4E2M1", 17, 32, "FLOAT8E8M0"),
        ("mxfp6_e3m2_literal", "UINT8", 25, 24, "FLOAT8E8M0"),
        ("mxfp6_e2m3_literal", "UINT8", 25, 24, "FLOAT8E8M0"),
        ("nvfp4_literal", "FLOAT4E2M1", 9, 16, "FLOAT8E4M3FN"),
    ],
)
def test_blocks_of_small_floats_are_as_the_catalogue_writes_them(
    form: str, leaf: str, size: int, values: int, scale: str
) -> None:
    case = next(case for case in literals() if case.form == form)
    declared = translate(case.quantization, (values if leaf != "UINT8" else 32,))
    block = declared.declarations[0].type
    assert isinstance(block, Structure)
    assert [item.name for item in block.fields] == [
        "values", "scale", "sign_bits", "exponent_bits", "mantissa_bits", "exponent_bias", "has_inf", "has_nan",
        "split_storage", "packed_count", "packed_bytes",
    ]  # fmt: skip
    assert block.fields[0].type == Array(Leaf(leaf), values)
    assert block.fields[1].type == Array(Leaf(scale), 1)
    assert size_bytes(declared) == size


@DECODED
def test_numbers(case: Literal) -> None:
    values = run.decode(BY_NAME[case.form], {"payload": case.payload}, case.shape, case.params)
    if case.form in ROTATED:  # the vectors themselves state 1e-5 of the largest value
        largest = float(np.abs(case.expected).max())
        assert float(np.abs(values - case.expected).max()) <= 1e-6 * largest
    else:
        assert np.array_equal(words(values), words(case.expected))
    declared = translate(case.quantization, case.shape)
    assert np.array_equal(words(dequantize(declared, case.payload, case.shape)), words(values))


def test_what_a_plugin_stores_can_be_seen_and_is_not_decoded() -> None:
    case = next(case for case in literals() if case.form == CUSTOM)
    declared = translate(case.quantization, case.shape)
    payload = next(leaf for leaf in view(declared, case.payload) if leaf.plan.path == "payload")
    assert np.array_equal(payload.array, case.expected)
    with pytest.raises(run.SchemeRefused) as refused:
        run.decode(BY_NAME[CUSTOM], {"payload": case.payload}, case.shape, {})
    assert [item.code for item in refused.value.findings] == ["profile.decoder_absent"]
    assert with_functions(case.quantization, case.shape) == declared
    with pytest.raises(run.SchemeRefused) as refused:  # its size is checked all the same
        run.decode(BY_NAME[CUSTOM], {"payload": case.payload[:-1]}, case.shape, {})
    assert [item.code for item in refused.value.findings] == ["scheme.part_shape"]


@DECODED
def test_portable_decoders_agree_bit_for_bit(case: Literal) -> None:
    import onnx

    from ninfer_core.schemes.functions.evaluate import Unsupported, run_onnxruntime, run_reference

    quantization = case.quantization
    declared = with_functions(quantization, case.shape)
    root = declared.declarations[declared.root]
    assert root.decoder is not None
    function = onnx.FunctionProto()
    function.ParseFromString(root.decoder)
    held = [leaf.array for leaf in view(declared, case.payload)]
    ours = decode(quantization, declared, case.payload, case.shape)
    if quantization.data_type == "FLOAT16":  # cast last (R14)
        ours = ours.astype(np.float16)
    found = run_reference(function, held)
    assert found.dtype == ours.dtype
    assert np.array_equal(words(found), words(ours))
    if case.form in REFERENCE_ONLY:
        with pytest.raises(Unsupported):
            run_onnxruntime(function, held)
    else:
        assert np.array_equal(words(run_onnxruntime(function, held)), words(ours))


@pytest.mark.parametrize(
    "case", [case for case in literals() if BY_NAME[case.form].encode], ids=lambda case: case.form
)
def test_what_was_decoded_is_encoded_to_the_same_numbers(case: Literal) -> None:
    form = BY_NAME[case.form]
    values = run.decode(form, {"payload": case.payload}, case.shape, case.params)
    params = dict(case.params)
    if (
        case.form == "spqr_literal"
    ):  # the seed's threshold is for weights of another size than the stored ones
        params |= {"threshold": 0.05, "outliers": int((np.abs(values) > np.float32(0.05)).sum())}
        assert params["outliers"]
    values = np.where(np.isfinite(values), values, np.float32(0))
    parts = run.encode(form, values, params)
    again = run.decode(form, parts, case.shape, params)
    if case.form == "nvfp4_literal" or case.form in ROTATED:
        # A scale for the largest code is not that of a block without one; a rotation rounds.
        assert float(np.abs(again - values).max()) <= 2e-4 * float(np.abs(values).max())
    else:
        assert np.array_equal(again, values)
    assert run.check(form, parts, case.shape, params) == []


@EACH
def test_the_payload_says_the_shape_where_it_can(case: Literal) -> None:
    form = BY_NAME[case.form]
    if form.infer is None:
        assert len(case.shape) == 2 or case.form == "spqr_literal"
        return
    implied = run.implied_shape(form, {"payload": case.payload}, case.params)
    assert int(np.prod(implied)) == int(np.prod(case.shape))
    if case.payload.size % 2 == 0 and case.form.startswith(("tq", "iq", "mx", "nvfp4", "q", "stq")):
        with pytest.raises(run.SchemeRefused, match=re.escape(f"shape [{case.payload.size - 1}]")):
            run.implied_shape(form, {"payload": case.payload[:-1]}, case.params)


NEAREST = (
    "q2_k_literal", "q3_k_literal", "q5_k_literal", "exl3_literal", "awq_block128_declared_int4", "int8_symmetric",
    "fp8_e4m3_per_tensor", "nf4_literal", "ternary_1_58", "binary_literal", "fp6_llm_literal",
    "float6_e3m2_declared_order_ieee", "float6_e3m2_tensor_1000",
)  # fmt: skip


@pytest.mark.parametrize("name", NEAREST)
def test_no_other_code_is_nearer(name: str) -> None:
    form = BY_NAME[name]
    case = next(case for case in literals() if case.form == name)
    random = np.random.default_rng(2026)
    payload = random.integers(0, 256, case.payload.size * 8, dtype=np.uint8)
    shape = run.implied_shape(form, {"payload": payload}, case.params)
    levels = run.decode(form, {"payload": payload}, shape, case.params)
    levels = np.unique(levels[np.isfinite(levels)].astype(np.float64))
    values = (random.normal(0, float(np.abs(levels).max()) / 2, 768)).astype(np.float32)
    coded = run.decode(form, run.encode(form, values, case.params), values.shape, case.params)
    best = np.abs(levels - values.astype(np.float64)[:, None]).min(axis=1)
    # Codes are rounded from values over the scale in binary32: a tie may fall on either side by that much.
    slack = 1e-6 * float(np.abs(levels).max())
    assert (np.abs(coded.astype(np.float64) - values) <= best + slack).all()


@pytest.mark.parametrize("shape", [(0,), (), (1,), (7,), (257,), (3, 5), (5, 0)])
def test_any_shape_is_laid_out_or_refused(shape: tuple[int, ...]) -> None:
    held = 0
    for case in literals():
        form = BY_NAME[case.form]
        params = case.params | ({"outliers": 0} if case.form == "spqr_literal" else {})
        try:
            size = form.stored(shape, run.complete(form, params))["payload"]
        except run.SchemeRefused:
            continue
        held += 1
        payload = np.zeros(size, np.uint8)
        if case.form != CUSTOM:
            assert run.decode(form, {"payload": payload}, shape, params).shape == shape
        assert run.check(form, {"payload": payload}, shape, params) == []
        if form.encode:
            assert run.encode(form, np.zeros(shape, np.float32), params)["payload"].shape == size
    assert held >= 30
