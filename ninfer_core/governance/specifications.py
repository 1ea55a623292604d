"""What each format, layout and encoder profile means, in full: the text that its semantic digest covers.

A word changed here is a changed meaning: the entry then needs another name.
"""

from typing import Final

from ninfer_core.compute import ComputeProfile

_GROUPED: Final = (
    "Rank at least one; groups of {group} run along the last axis and cross no leading coordinate; the last group of a "
    "row may be partial. Codes are {bits}-bit two's complement integers, {low} to {high}. Each group has one binary16 "
    "scale word, +0 or positive and finite, subnormals included; a zero scale stands over zero codes only. The value is "
    "binary32(scale * code), one rounding to nearest even; there is no zero point."
)

FORMAT_TEXTS: Final[dict[str, str]] = {
    "BF16": "Sixteen-bit words: sign at bit 15, eight exponent bits with bias 127, seven fraction bits. Every word is "
    "valid; zeros of both signs, infinities and NaN payloads are kept. The exact expansion to binary32 appends sixteen "
    "zero bits.",
    "FP32": "IEEE 754 binary32 words. Every word is valid; zeros of both signs, infinities and NaN payloads are kept.",
    "I32": "Two's complement 32-bit integers. Every word is valid; no scale, no zero point, no sentinel.",
    "Q4G64_F16S": _GROUPED.format(group=64, bits=4, low=-8, high=7),
    "Q5G64_F16S": _GROUPED.format(group=64, bits=5, low=-16, high=15),
    "Q6G64_F16S": _GROUPED.format(group=64, bits=6, low=-32, high=31),
    "W8G32_F16S": _GROUPED.format(group=32, bits=8, low=-127, high=127) + " The byte 0x80 is no code.",
    "NVFP4": "A matrix [N, K]. Codes are E2M1 words, all sixteen valid. Sixteen columns of a row share one E4M3FN scale "
    "word, sign clear and not NaN. The matrix has one binary32 divisor, finite and positive. The value is "
    "code * scale / divisor, formed exactly and rounded once to binary32, nearest even; it may overflow to infinity.",
    "FP8_E4M3FN_ROW_BF16S": "A matrix [N, K]. Codes are E4M3FN words, all but the two NaN words valid. Each row has one "
    "BF16 multiplier, +0 or positive and finite, subnormals included; a zero multiplier stands over zeros of either sign "
    "only. The value is binary32(code * multiplier), one rounding to nearest even; it may overflow to infinity.",
}

LAYOUT_TEXTS: Final[dict[str, str]] = {
    "contiguous-le-v1": "Rank 0 to 16, positive dimensions. Words in C order, the last axis fastest, each "
    "little-endian; no header and no padding.",
    "row-split-k128-v1": "A matrix [N, K], K padded to a multiple of 128 with code 0; a group wholly past K has scale "
    "word 0x0000. Three planes: base codes, high bits (five and six bits only), binary16 scales; each begins at the next "
    "multiple of 256, zeros before it, nothing after the scales. In every plane row after row, group after group. Base, "
    "four to six bits: byte j of a group holds the low nibbles of lanes 2j (low) and 2j + 1 (high); eight bits: byte i "
    "is lane i. High: bits 4 and up of a lane's word, lane after lane, lowest first, from bit 0 of each byte. Scales "
    "little-endian.",
    "blockscale-k16-m128x4-v1": "A matrix [N, K], N a multiple of 128 and K of 64. Codes row-major, two a byte, the "
    "smaller column in the low nibble; zeros to a multiple of 256; the scale bytes; the divisor, little-endian. The "
    "scale of row n and group g lies at ((n//128)*(K//64) + g//4)*512 + (n%32)*16 + ((n%128)//32)*4 + g%4.",
    "row-scale-v1": "A matrix [N, K]. Codes row-major, a byte each; zeros to a multiple of 256; one little-endian BF16 "
    "multiplier a row.",
}

ENCODER_TEXTS: Final[dict[str, str]] = {
    "MAXABS_F16_RECIP_RNE_V1": "Sources in BF16, F16, F32 or F64, each value rounded to binary32; what is not finite "
    "there is refused. For each group of logical lanes: amax is the largest magnitude; when it is zero the scale is +0 "
    "and every code 0; else raw = binary32(amax / qmax), scale = binary16(raw), 0x0001 where that is zero, and a group "
    "whose scale is not finite is refused; inverse = binary32(1 / scale), code = clamp(round(binary32(x * inverse)), "
    "qmin, qmax). Every rounding is to nearest even and no subnormal is flushed. qmax is 7, 15, 31 or 127; qmin is "
    "-qmax - 1, and -127 for eight bits.",
    "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1": "Sources in BF16, F16 or F32, each value widened to binary32; what is not "
    "finite is refused. For each row: amax is the largest magnitude; when it is zero the scale is +0 and every code "
    "0x00, whatever the signs; else raw = binary32(amax / 448), scale = BF16(raw), 0x0001 where that is zero; inverse = "
    "binary32(1 / scale), code = E4M3FN(clamp(binary32(x * inverse), -448, 448)), zeros keeping their sign. Every "
    "rounding is to nearest even and no subnormal is flushed. A row whose scale is at most 2**-128, 0x0001 included, is "
    "refused: the reciprocal is not finite and no value can be normalised.",
}


def compute_text(profile: ComputeProfile) -> str:
    """What a compute profile means, in full."""
    parts = [profile.specification]
    if profile.operation != "reconstruct":  # whose inputs and outputs their names and answers tell
        parts.append(f"Inputs: {'; '.join(profile.inputs)}. Output: {profile.output}.")
    parts += [
        f"Casts: {'; '.join(profile.casts)}." if profile.casts else "Casts: none.",
        f"Determinism: {profile.determinism}.",
        f"Criterion {profile.criterion.name}: {profile.criterion.meaning}.",
    ]
    return " ".join(parts)
