"""The FP8 row encoder's oracle: worked rows, every BF16 word alone, refusals."""

import struct

import pytest

from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 as PROFILE
from ninfer_core.encoders.maxabs_bf16s import ScaleUnderflow, encode_row, encode_rows, scale_of
from ninfer_core.encoders.maxabs_f16 import SourceNotFinite
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S
from ninfer_core.words import BFLOAT16, BINARY16, finite_value, is_finite


def words(*values: float) -> list[int]:
    return [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]


def test_it_makes_one_format_of_three_kinds_of_words():
    assert PROFILE.formats == (FP8_E4M3FN_ROW_BF16S,)
    assert PROFILE.dtypes == ("BF16", "F16", "F32")


@pytest.mark.parametrize(
    ("row", "codes", "scale"),
    [
        ([0.0, -0.0], [0x00, 0x00], 0x0000),
        ([448.0, -448.0, 1.0, -0.0], [0x7E, 0xFE, 0x38, 0x80], 0x3F80),  # only a zero row loses its signs
        ([448.0, 17.0, 19.0], [0x7E, 0x58, 0x5A], 0x3F80),  # 16 and 18 are neighbours: both ties go to even
        ([448.0, 2.0**-10, 3 * 2.0**-10, 1.1 * 2.0**-10], [0x7E, 0x00, 0x02, 0x01], 0x3F80),
        ([448.8, 448.0], [0x7E, 0x7E], 0x3F80),  # amax / 448 is rounded down to 1, 448.8 is clamped
        ([1.0], [0x7E], 0x3B12),  # 1 / 448 is rounded down: its reciprocal is 448.877
    ],
)
def test_worked_rows(row, codes, scale):
    result = encode_row(words(*row))
    assert (list(result.codes), result.scale) == (codes, scale)


def test_lanes_beyond_448_before_the_clamp_are_counted():
    assert encode_row(words(448.8, 448.0, -448.8)).clamped == 2
    assert encode_row(words(448.0)).clamped == 0


def test_every_bf16_word_alone_takes_the_largest_code_or_is_refused():
    for word in range(1 << 16):
        row = [word << 16]
        if not is_finite(BFLOAT16, word):
            with pytest.raises(SourceNotFinite):
                encode_row(row)
            continue
        magnitude = finite_value(BFLOAT16, word & 0x7FFF)
        exact = magnitude / 448 * 2**133  # the scale in steps of the smallest BF16 subnormal
        if 0 < exact <= 32.5:  # the tie between 32 and 33 steps goes to the even 32
            with pytest.raises(ScaleUnderflow):
                encode_row(row)
        else:
            (code,) = encode_row(row).codes
            assert code == (0 if magnitude == 0 else 0x7E | word >> 8 & 0x80)


def test_the_rescue_word_never_leads_to_a_result():
    with pytest.raises(ScaleUnderflow) as refused:
        encode_row([0x0000_0001, 0x8000_0000])
    assert (refused.value.raw_scale_word, refused.value.code) == (0, "scale_underflow")
    accepted = next(amax for amax in range(0x0380_0000, 0x0480_0000, 0x1000) if _scale(amax))
    assert scale_of(accepted) == 0x0021


def _scale(amax: int) -> int | None:
    try:
        return scale_of(amax)
    except ScaleUnderflow:
        return None


def test_places_of_refused_words():
    with pytest.raises(SourceNotFinite) as infinite:
        encode_rows([[0, 0], [0x3C00, 0x7C00]], BINARY16)
    assert (infinite.value.row, infinite.value.lane, infinite.value.word) == (1, 1, 0x7C00)
    with pytest.raises(ScaleUnderflow) as tiny:
        encode_rows([[0x3F80], [0x0001]], BFLOAT16)
    assert tiny.value.row == 1
