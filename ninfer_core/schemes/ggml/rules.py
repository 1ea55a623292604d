"""What words may stand in blocks: finite scales, bytes that a base-3 packing gives, codes that have a meaning."""

from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import Mask, report
from ninfer_core.schemes.ggml.block import Block, Blocks
from ninfer_core.schemes.ggml.pieces import Words, half, pairs, split_half
from ninfer_core.words import BFLOAT16, BINARY16

# The byte of every five digits, the first one most significant, and of those whose last digit is zero.
_FIVE_DIGITS: Final = -(-256 * np.arange(243) // 243)
_FOUR_DIGITS: Final = _FIVE_DIGITS[::3]


def check_blocks(block: Block, blocks: Blocks, findings: Findings) -> None:
    """The findings about the scales of a block type and about what else it has rules for."""
    if not len(blocks):
        return
    for name in block.scales:
        words = blocks[name]
        _add(
            findings,
            "scale_not_finite",
            ~np.isfinite(half(words)),
            words,
            name,
            "holds NaN or infinity",
            "a number",
        )
    for name in block.positive:
        words = blocks[name]
        _add(
            findings,
            "scale_sign_ignored",
            words >> 15 == 1,
            words,
            name,
            "holds negative scales, which the encoders of this type never make",
            "a sign of zero",
        )
    for rule in block.rules:
        rule(blocks, findings)


def finite_values(blocks: Blocks, findings: Findings) -> None:
    """BF16: every value is a number."""
    words = blocks["value"]
    at_fault = words & BFLOAT16.exponent_mask == BFLOAT16.exponent_mask
    report(findings, "value_not_finite", "payload", at_fault, words, "holds NaN or infinity", "a number")


def split_scale(blocks: Blocks, findings: Findings) -> None:
    """IQ1_M: the scale that four words make is a number."""
    words = split_half(blocks["scales"])
    at_fault = words & BINARY16.exponent_mask == BINARY16.exponent_mask
    _add(
        findings, "scale_not_finite", at_fault, words, "scales", "makes scales of NaN or infinity", "a number"
    )


def power_of_two(blocks: Blocks, findings: Findings) -> None:
    """MXFP4: 255 is the NaN of E8M0; decoders of this type read it as 2**128 and go on."""
    words = blocks["e"]
    _add(findings, "scale_not_finite", words == 255, words, "e", "holds the NaN of E8M0", "0 to 254")


def unsigned_scales(blocks: Blocks, findings: Findings) -> None:
    """NVFP4: scales are numbers of E4M3 without a sign; decoders read 0x7f and 0x80 as zero, other signs not at all."""
    words = blocks["scale"]
    _add(
        findings,
        "scale_not_finite",
        words & 127 == 127,
        words,
        "scale",
        "holds the NaN of E4M3",
        "0x00 to 0x7e",
    )
    _add(
        findings,
        "scale_sign_ignored",
        words >> 7 == 1,
        words,
        "scale",
        "holds scales with a sign, which decoders leave out",
        "0x00 to 0x7e",
    )


def base_three(blocks: Blocks, findings: Findings) -> None:
    """TQ1_0: bytes are those of five digits, and of four with a zero behind them in the last four bytes."""
    legal = np.isin(np.arange(256), _FIVE_DIGITS)
    padded = np.isin(np.arange(256), _FOUR_DIGITS)
    for name in ("qs", "qh"):
        words = blocks[name]
        _add(
            findings,
            "byte_illegal",
            ~legal[words],
            words,
            name,
            "holds bytes that no five digits make",
            "a packing",
        )
    words = blocks["qh"]
    at_fault = legal[words] & ~padded[words]
    _add(
        findings,
        "padding_nonzero",
        at_fault,
        words,
        "qh",
        "holds a fifth digit, which has no element",
        "zero",
    )


def ternary_codes(blocks: Blocks, findings: Findings) -> None:
    """TQ2_0: a code is 0, 1 or 2."""
    codes = pairs(blocks["qs"])
    _add(
        findings,
        "code_illegal",
        codes == 3,
        codes,
        "qs",
        "holds codes that mean no ternary digit",
        "0, 1 or 2",
    )


def _add(
    findings: Findings, slug: str, at_fault: Mask, words: Words, field: str, message: str, expected: str
) -> None:
    """One finding at the first block that has the fault; `index` goes on to the place in the field."""
    block = int(np.argmax(at_fault.reshape(len(at_fault), -1).any(axis=1)))
    said = f"{message} in {field}"
    report(findings, slug, "payload", at_fault, words, said, expected, field=field, block=block)
