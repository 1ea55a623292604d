"""What formats, layouts and compute profiles answer to fixed questions: their meaning as data, from the slow oracles."""

from fractions import Fraction
from typing import Any, Final

import numpy as np

from ninfer_core.compute import ComputeProfile
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.governance.operation_vectors import operation_vectors
from ninfer_core.layouts import BLOCK_SCALE, CONTIGUOUS_LE, ROW_SPLIT, Layout
from ninfer_core.layouts.block_scale import pack_codes, scale_offset
from ninfer_core.layouts.row_split import GroupedWords, pack
from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_nvfp4, reconstruct_row
from ninfer_core.words import (
    BFLOAT16,
    BINARY32,
    FloatFormat,
    code_of_word,
    finite_value,
    i32_value,
    is_block_scale,
    is_divisor,
    is_finite,
    is_group_scale,
    is_row_scale,
    round_to,
    sign_of,
    value,
    word_of_code,
)

_WORDS16: Final = (0, 1, 0x7F, 0x80, 0x3F80, 0x3DCD, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x8000, 0xBF80, 0xFFFF)
_WORDS32: Final = (*(word << 16 for word in _WORDS16), 1, 0x007F_FFFF, 0x3F80_0001, 0x7FFF_FFFF, 0x8000_0001)
_SCALES16: Final = (0, 1, 2, 0x3FF, 0x400, 0x2E66, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8000, 0xBC00)
_ROW_SCALES: Final = (0, 1, 0x21, 0x7F, 0x80, 0x3B12, 0x3F80, 0x7F7F, 0x7F80, 0x7FC0, 0x8000, 0xBF80)
_DIVISORS: Final = (0, 1, 0x0080_0000, 0x3F80_0000, 0x4049_0FDB, 0x7F7F_FFFF, 0x7F80_0000, 0x8000_0001)
_SHAPES: Final = ((1, 1), (2, 70), (3, 128), (5, 200), (1, 1000))
_BLOCK_SHAPES: Final = ((128, 64), (128, 192), (256, 128))


def format_vectors(fmt: NumericFormat) -> list[Any]:
    """Words of a format, whether they are valid, and what they stand for."""
    match fmt:
        case DirectFormat(name="I32"):
            return [[word, i32_value(word)] for word in _WORDS32]
        case DirectFormat():
            own, words = (BFLOAT16, _WORDS16) if fmt.word_bits == 16 else (BINARY32, _WORDS32)
            return [[word, _shown(own, word)] for word in words]
        case GroupedFormat():
            words = tuple(range(1 << fmt.code_bits))
            codes = [[word, code_of_word(word, fmt.code_bits) in fmt.codes] for word in words]
            return [[fmt.group, codes], [[word, is_group_scale(word)] for word in _SCALES16], *_values(fmt)]
        case BlockFormat():
            scales = [[word, is_block_scale(word)] for word in (0, 1, 0x38, 0x7E, 0x7F, 0x80, 0xFF)]
            return [[fmt.group, scales], [[word, is_divisor(word)] for word in _DIVISORS], *_values(fmt)]
        case RowFormat():
            return [[[word, is_row_scale(word)] for word in _ROW_SCALES], *_values(fmt)]


def compute_vectors(profile: ComputeProfile) -> list[Any]:
    """Questions and answers for every format of the profile; of a reconstruction, stored words and output words."""
    if profile.operation != "reconstruct":
        return operation_vectors(profile)
    narrow = profile.output == "BF16"
    answers = []
    for fmt in profile.formats:
        for *stored, word in _values(fmt):
            answers.append([fmt.name, *stored, _bf16(word) if narrow else word])
    return answers


def layout_vectors(layout: Layout) -> list[Any]:
    """Sizes and planes of some shapes in every format, and where single words lie."""
    answers: list[Any] = []
    shapes = _BLOCK_SHAPES if layout is BLOCK_SCALE else _SHAPES
    for fmt in layout.formats:
        for shape in shapes:
            planes = [
                [plane.name, plane.span.offset, plane.span.length, plane.word.str]
                for plane in layout.planes(fmt, shape)
            ]
            answers.append([fmt.name, list(shape), layout.encoded_size(fmt, shape), planes])
    if layout is CONTIGUOUS_LE:
        answers.append([[], [layout.encoded_size(fmt, ()) for fmt in layout.formats]])
    elif layout is ROW_SPLIT:
        answers += [[fmt.name, *_packed(fmt)] for fmt in layout.formats if isinstance(fmt, GroupedFormat)]
    elif layout is BLOCK_SCALE:
        codes = pack_codes(np.arange(64, dtype=np.uint8).reshape(1, 64) % 16)
        places = [(0, 0), (1, 0), (31, 3), (32, 0), (127, 5), (128, 7), (255, 11)]
        answers += [codes.tobytes().hex(), [[n, g, scale_offset(n, g, 192)] for n, g in places]]
    return answers


def _packed(fmt: GroupedFormat) -> list[str]:
    """The planes, as hex text, of one row of 70 codes."""
    span = len(fmt.codes)
    codes = np.array([[fmt.qmin + (7 * lane + 3) % span for lane in range(70)]], np.int8)
    scales = np.arange(1, 1 + -(-70 // fmt.group), dtype=np.uint16).reshape(1, -1)
    return [plane.tobytes().hex() for plane in pack(fmt, GroupedWords(codes, scales.astype("<u2")))]


def _values(fmt: NumericFormat) -> list[list[int]]:
    """Stored words and the binary32 word of the value, over every code and a few scales."""
    match fmt:
        case GroupedFormat():
            scales = [word for word in _SCALES16 if is_group_scale(word)]
            return [
                [word_of_code(code, fmt.code_bits), scale, reconstruct_grouped(code, scale)]
                for scale in scales
                for code in fmt.codes
            ]
        case BlockFormat():
            return [
                [code, scale, divisor, reconstruct_nvfp4(code, scale, divisor)]
                for divisor in _DIVISORS
                if is_divisor(divisor)
                for scale in (0, 1, 0x38, 0x7E)
                for code in range(16)
            ]
        case RowFormat():
            return [
                [code, scale, reconstruct_row(code, scale)]
                for scale in _ROW_SCALES
                if is_row_scale(scale)
                for code in range(256)
                if code & 0x7F != 0x7F
            ]
        case DirectFormat():
            return []


def _bf16(word: int) -> int:
    """The BF16 word nearest to a binary32 word that is a number or infinite."""
    if not is_finite(BINARY32, word):
        return word >> 16
    return round_to(BFLOAT16, abs(finite_value(BINARY32, word)), sign_of(BINARY32, word))


def _shown(fmt: FloatFormat, word: int) -> str:
    exact: Fraction | None = value(fmt, word)
    if exact is None:
        return "not a number" if word & (fmt.sign_bit - 1) != fmt.exponent_mask else "infinite"
    return f"{'-' if sign_of(fmt, word) else '+'}{abs(exact)}"
