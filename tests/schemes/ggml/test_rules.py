"""What the rules of block types say about words: the place of the first, and how many."""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.ggml import FORMS
from ninfer_core.schemes.ggml.types import BLOCKS
from tests.schemes.ggml.vectors import BLOCK, FORM, cases, of, random_blocks

HALVES = [(name, field) for name, block in BLOCK.items() for field in block.scales]
POSITIVE = [(name, field) for name, block in BLOCK.items() for field in block.positive]


def clean(name, count=5):
    """Blocks without a fault: zeros, which every type allows."""
    return np.zeros(count, BLOCK[name].record)


def found(name, records):
    payload = records.view(np.uint8)
    return run.check(FORM[name], {"payload": payload}, (len(records) * BLOCK[name].values,), {})


def only(name, records):
    (finding,) = found(name, records)
    return finding


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_what_the_tools_write_has_no_fault(form):
    case = cases(form.name)[0]
    assert run.check(form, {"payload": case.payload}, case.expected.shape, {}) == []
    assert run.check(form, {"payload": case.payload[:0]}, (0, of(form).values), {}) == []
    assert found(form.name, clean(form.name)) == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_rules_are_total_over_bytes(form):
    block = of(form)
    codes = {finding.code for finding in found(form.name, block.records(random_blocks(block, 2000)))}
    assert all(code.startswith("scheme.") for code in codes)
    assert codes


@pytest.mark.parametrize(("name", "field"), HALVES)
def test_scales_are_numbers(name, field):
    records = clean(name)
    records[field][2], records[field][4] = 0x7C00, 0x7E01
    finding = only(name, records)
    assert finding.code == "scheme.scale_not_finite"
    assert (finding.where["part"], finding.where["field"], finding.where["block"]) == ("payload", field, 2)
    assert (finding.where["word"], finding.count) == (0x7C00, 2)
    records[field] = 0x7BFF
    assert found(name, records) == []


@pytest.mark.parametrize(("name", "field"), POSITIVE)
def test_a_sign_that_no_encoder_sets_is_told(name, field):
    records = clean(name)
    records[field][3] = 0xBC00
    finding = only(name, records)
    assert (finding.code, finding.severity) == ("scheme.scale_sign_ignored", "advisory")
    assert (finding.where["block"], finding.where["word"], finding.count) == (3, 0xBC00, 1)


def test_every_type_has_a_rule():
    assert all(block.scales or block.rules for block in BLOCKS)


def test_bf16_values_are_numbers():
    records = clean("ggml_bf16")
    records["value"][1:4] = 0x7F80, 0xFFC0, 0x7F7F
    finding = only("ggml_bf16", records)
    assert (finding.code, finding.where["index"], finding.count) == ("scheme.value_not_finite", 1, 2)


def test_the_scale_in_four_words_of_iq1_m():
    records = clean("ggml_iq1_m")
    records["scales"][1] = 0x0000, 0x0000, 0xC000, 0x7FFF  # 0x7c00, lowest nibble first
    finding = only("ggml_iq1_m", records)
    assert (finding.code, finding.where["word"], finding.where["block"]) == (
        "scheme.scale_not_finite",
        0x7C00,
        1,
    )


def test_the_exponent_of_mxfp4():
    records = clean("ggml_mxfp4")
    records["e"] = 254, 255, 0, 255, 255
    finding = only("ggml_mxfp4", records)
    assert (finding.code, finding.where["block"], finding.count) == ("scheme.scale_not_finite", 1, 3)


def test_the_scales_of_nvfp4():
    records = clean("ggml_nvfp4")
    records["scale"][1] = 0x7E, 0x7F, 0x80, 0xFF
    not_finite, signed = found("ggml_nvfp4", records)
    assert (not_finite.code, not_finite.where["index"], not_finite.count) == (
        "scheme.scale_not_finite",
        [1, 1],
        2,
    )
    assert (signed.code, signed.where["index"], signed.count) == ("scheme.scale_sign_ignored", [1, 2], 2)


def test_bytes_of_base_three():
    legal = {-(-256 * value // 243) for value in range(243)}
    four = {-(-256 * value // 243) for value in range(0, 243, 3)}
    assert len(legal) == 243
    for byte in range(256):
        records = clean("ggml_tq1_0")
        records["qs"][2, 40] = byte
        assert [f.code for f in found("ggml_tq1_0", records)] == (
            [] if byte in legal else ["scheme.byte_illegal"]
        )
        records = clean("ggml_tq1_0")
        records["qh"][1, 3] = byte
        codes = [] if byte in four else ["scheme.padding_nonzero" if byte in legal else "scheme.byte_illegal"]
        findings = found("ggml_tq1_0", records)
        assert [finding.code for finding in findings] == codes
        assert all((f.where["index"], f.where["word"], f.count) == ([1, 3], byte, 1) for f in findings)


def test_two_bit_codes_that_are_no_digit():
    records = clean("ggml_tq2_0")
    records["qs"][3, 33] = 0b11_10_01_11
    finding = only("ggml_tq2_0", records)
    assert (finding.code, finding.where["block"], finding.where["index"], finding.count) == (
        "scheme.code_illegal",
        3,
        [3, 129],  # the element: byte 33 is the second of the upper half
        2,
    )
