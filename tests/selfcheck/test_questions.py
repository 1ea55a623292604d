"""Answers are compared part by part, and the first difference says where it is."""

import numpy as np
import pytest

from ninfer_core.formats import QUANTIZED, NumericFormat
from ninfer_core.oracles.checks import ILLEGAL_CODE, INVALID_SCALE, PADDING, ZERO_SCALE_OVER_CODE
from ninfer_core.selfcheck.checking import expected_mask
from ninfer_core.selfcheck.payloads import block_of
from ninfer_core.selfcheck.questions import Answer, Part, compare, same
from ninfer_core.selfcheck.vectors import check_cases

RIGHT = Answer(
    "done",
    (
        Part("code", np.arange(6).reshape(2, 3), ("row", "lane")),
        Part("scale", np.array([7], np.uint16), ("row",), True),
    ),
)


def other(code: int | None = None, scale: int = 7, went: str = "done") -> Answer:
    codes = np.arange(6).reshape(2, 3)
    if code is not None:
        codes[1, 2] = code
    return Answer(went, (Part("code", codes), Part("scale", np.array([scale], np.uint16))))


def test_an_equal_answer_has_no_difference() -> None:
    verdict = compare(RIGHT, other())
    assert (verdict.values, verdict.mismatches, verdict.first) == (7, 0, None)


def test_the_first_difference_is_named_and_all_are_counted() -> None:
    verdict = compare(RIGHT, other(code=-1, scale=0x1F))
    assert verdict.mismatches == 2
    assert verdict.first is not None
    assert (verdict.first.where, verdict.first.expected, verdict.first.found) == (
        "code at row 1, lane 2",
        "5",
        "-1",
    )
    verdict = compare(RIGHT, other(scale=0x1F))
    assert verdict.first is not None
    assert (verdict.first.where, verdict.first.expected, verdict.first.found) == (
        "scale at row 0",
        "0x0007",
        "0x001f",
    )


def test_how_it_went_and_the_shape_count_before_numbers() -> None:
    verdict = compare(RIGHT, other(went="refused"))
    assert verdict.first is not None
    assert (verdict.first.where, verdict.first.found) == ("the outcome", "refused")
    short = Answer("done", (Part("code", np.arange(5)), RIGHT.parts[1]))
    verdict = compare(RIGHT, short)
    assert verdict.first is not None
    assert (verdict.first.where, verdict.first.expected, verdict.first.found) == (
        "the shape of code",
        "[2, 3]",
        "[5]",
    )


def test_the_same_bits_are_the_same_answer() -> None:
    assert same(RIGHT, other())
    assert not same(RIGHT, other(scale=8))
    zeros = (Answer("done", (Part("sum", np.array(zero)),)) for zero in (0.0, -0.0))
    assert not same(*zeros)


FAULTS = {
    "values.scale_invalid": INVALID_SCALE,
    "values.block_scale_invalid": INVALID_SCALE,
    "values.row_scale_invalid": INVALID_SCALE,
    "values.zero_scale_nonzero_code": ZERO_SCALE_OVER_CODE,
    "values.zero_row_scale_nonzero_code": ZERO_SCALE_OVER_CODE,
    "values.code_out_of_range": ILLEGAL_CODE,
    "values.fp8_code_invalid": ILLEGAL_CODE,
    "layout.padding_nonzero": PADDING,
    "layout.gap_nonzero": 0,  # between planes: not the business of a kernel
    "values.divisor_invalid": 0,
}


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda fmt: fmt.name)
def test_the_oracle_of_checks_sees_in_known_payloads_what_is_wrong_with_them(fmt: NumericFormat) -> None:
    for case in check_cases(fmt):
        mask = expected_mask(block_of(fmt, case.shape, case.payload))
        wanted = FAULTS[case.fault] if case.fault else 0
        assert mask & wanted == wanted, case.id
        assert mask == 0 or wanted, case.id
