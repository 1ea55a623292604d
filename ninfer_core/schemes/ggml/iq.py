"""Decoders of the IQ types: entries of published codebooks with signs, scaled by sub-blocks.

An index has as many bits as its codebook has entries, so none can point outside.
"""

from typing import Final

import numpy as np

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml import rules
from ninfer_core.schemes.ggml.block import C_AND_GGUF, N32, Block, Blocks, D, field, fields_of
from ninfer_core.schemes.ggml.pieces import (
    Codes,
    Words,
    even_signs,
    half,
    nibbles,
    nibbles_in_turn,
    real,
    signs,
    split_half,
)
from ninfer_core.schemes.ggml.tables import grid


def iq4_nl(blocks: Blocks) -> Values:
    """d T[q]."""
    return half(blocks["d"])[:, None] * real(grid("iq4nl")[nibbles(blocks["qs"])])


def iq4_xs(blocks: Blocks) -> Values:
    """(d ls) T[q] by 32, with ls of six bits in two places."""
    low = nibbles_in_turn(blocks["scales_l"])
    high = _spread(blocks["scales_h"][:, None], 2, 8, 3)
    steps = half(blocks["d"])[:, None] * real((low | high << 4).astype(np.int8) - 32)
    levels = real(grid("iq4nl")[nibbles(blocks["qs"])])  # [n, 8, 32]
    return (steps[:, :, None] * levels).reshape(-1, 256)


def iq2_xxs(blocks: Blocks) -> Values:
    """d (0.5 + s) / 4 times an entry of eight, with signs of seven bits, four times under one word."""
    groups = blocks["groups"]
    word = groups["signs_scale"]  # [n, 8]
    steps = _steps(half(blocks["d"])[:, None], word >> 28, 0.25)
    entries = real(grid("iq2_xxs")[groups["indices"]])  # [n, 8, 4, 8]
    return _signed(steps, entries, even_signs(_spread(word[:, :, None], 7, 4, 127)))


def iq2_xs(blocks: Blocks) -> Values:
    """As IQ2_XXS with nine bits of index beside the signs, and a scale for each sixteen."""
    words = blocks["qs"]
    steps = _steps(half(blocks["d"])[:, None], nibbles_in_turn(blocks["scales"]), 0.25)
    return _signed(steps, real(grid("iq2_xs")[words & 511]), even_signs(words >> 9))


def iq2_s(blocks: Blocks) -> Values:
    """As IQ2_XS with ten bits of index and eight plain signs."""
    indices = _with_high_bits(blocks["qs"], _spread(blocks["qh"][:, :, None], 2, 4, 3))
    steps = _steps(half(blocks["d"])[:, None], nibbles_in_turn(blocks["scales"]), 0.25)
    return _signed(steps, real(grid("iq2_s")[indices]), signs(blocks["signs"]))


def iq3_xxs(blocks: Blocks) -> Values:
    """d (0.5 + s) / 2 times entries of four, with signs of seven bits for each eight."""
    word = blocks["signs_scales"]  # [n, 8]
    steps = _steps(half(blocks["d"])[:, None], word >> 28, 0.5)
    entries = real(grid("iq3_xxs")[blocks["qs"]])
    return _signed(steps, entries, even_signs(_spread(word[:, :, None], 7, 4, 127)))


def iq3_s(blocks: Blocks) -> Values:
    """d (1 + 2 s) times entries of four, with a ninth bit of index and plain signs."""
    indices = _with_high_bits(blocks["qs"], _spread(blocks["qh"][:, :, None], 1, 8, 1))
    odd = 1 + 2 * nibbles_in_turn(blocks["scales"])
    return _signed(
        half(blocks["d"])[:, None] * real(odd), real(grid("iq3_s")[indices]), signs(blocks["signs"])
    )


def iq1_s(blocks: Blocks) -> Values:
    """d (2 s + 1) (entry + delta), delta an eighth with one sign for each 32."""
    word = blocks["qh"]  # [n, 8]
    steps = half(blocks["d"])[:, None] * real(2 * (word >> 12 & 7) + 1)
    indices = _with_high_bits(blocks["qs"], _spread(word[:, :, None], 3, 4, 7))
    delta = _delta(word >> 15)  # [n, 8]
    return _shifted(steps, indices, np.repeat(delta, 4, axis=1))


def iq1_m(blocks: Blocks) -> Values:
    """As IQ1_S with a scale for each sixteen and a sign of delta for each eight; d lies in four words of scales."""
    nibble = nibbles_in_turn(blocks["qh"])  # [n, 32]
    scales = _spread(blocks["scales"][:, :, None], 3, 4, 7)  # [n, 16]
    steps = half(split_half(blocks["scales"]))[:, None] * real(2 * scales + 1)
    return _shifted(steps, _with_high_bits(blocks["qs"], nibble & 7), _delta(nibble >> 3))


def _spread(words: Words, bits: int, count: int, mask: int) -> Words:
    """`count` codes out of each word, low first: [n, m, 1] or [n, 1] to [n, m count] or [n, count]."""
    shifts = np.arange(0, bits * count, bits, dtype=words.dtype)
    codes: Words = words >> shifts & mask
    return codes.reshape(len(words), -1)


def _with_high_bits(low: Codes, high: Words) -> Words:
    """Indices of more than eight bits."""
    return low.astype(np.uint16) | high.astype(np.uint16) << 8


def _steps(d: Values, scales: Words, part: float) -> Values:
    """d (0.5 + scale) times a power of two."""
    return d * (np.float32(0.5) + real(scales)) * np.float32(part)


def _delta(negative: Words) -> Values:
    return np.where(negative == 1, np.float32(-0.125), np.float32(0.125))


def _signed(steps: Values, entries: Values, sign: Values) -> Values:
    """Steps [n, m] of equal sub-blocks times entries times signs, both 256 for each block in their own shapes."""
    n, count = steps.shape
    magnitudes = steps[:, :, None] * entries.reshape(n, count, -1)
    return magnitudes.reshape(n, 256) * sign.reshape(n, 256)


def _shifted(steps: Values, indices: Words, delta: Values) -> Values:
    """Steps [n, m] times entries of eight, each plus its delta [n, 32]."""
    n, count = steps.shape
    entries = real(grid("iq1_s")[indices]) + delta[:, :, None]
    return (steps[:, :, None] * entries.reshape(n, count, -1)).reshape(n, 256)


IQ: Final = (
    Block("IQ4_NL", 20, 32, (D, N32), "d T[q], T sixteen fixed levels", iq4_nl, C_AND_GGUF, ("d",)),
    Block(
        "IQ4_XS",
        23,
        256,
        (
            D,
            field("scales_h", "UINT16", doc="bits 2 g, 2 g + 1 are the high bits of scale g"),
            field("scales_l", "UINT8", 4, doc="low nibbles of the scales, low first"),
            field(
                "qs",
                "UINT8",
                8,
                16,
                doc="of each sixteen bytes, byte j holds code j low and code j + 16 high",
            ),
        ),
        "(d ls) T[q], ls signed of six bits by 32",
        iq4_xs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_XXS",
        16,
        256,
        (
            D,
            fields_of(
                8,
                "groups",
                field("indices", "UINT8", 4),
                field(
                    "signs_scale",
                    "UINT32",
                    doc="four codes of seven signs, low first, and a scale of four bits",
                ),
            ),
        ),
        "d (0.5 + s) / 4 times one of 256 entries of eight with signs",
        iq2_xxs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_XS",
        17,
        256,
        (
            D,
            field("qs", "UINT16", 32, doc="nine bits of index, seven of signs"),
            field("scales", "UINT8", 8, doc="sixteen of four bits, low first"),
        ),
        "d (0.5 + s) / 4 times one of 512 entries of eight with signs",
        iq2_xs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_S",
        22,
        256,
        (
            D,
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field("signs", "UINT8", 32, doc="bit k negates value k of the entry"),
            field("qh", "UINT8", 8, doc="two high bits of each index, low first"),
            field("scales", "UINT8", 8, doc="sixteen of four bits, low first"),
        ),
        "d (0.5 + s) / 4 times one of 1024 entries of eight with signs",
        iq2_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ3_XXS",
        18,
        256,
        (
            D,
            field("qs", "UINT8", 64, doc="indices"),
            field(
                "signs_scales",
                "UINT32",
                8,
                doc="four codes of seven signs, low first, and a scale of four bits",
            ),
        ),
        "d (0.5 + s) / 2 times one of 256 entries of four with signs",
        iq3_xxs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ3_S",
        21,
        256,
        (
            D,
            field("qs", "UINT8", 64, doc="low bits of the indices"),
            field("qh", "UINT8", 8, doc="the high bit of each index, low first"),
            field("signs", "UINT8", 32, doc="bit k negates value k of each eight"),
            field("scales", "UINT8", 4, doc="eight of four bits, low first"),
        ),
        "d (1 + 2 s) times one of 512 entries of four with signs",
        iq3_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ1_S",
        19,
        256,
        (
            D,
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field(
                "qh",
                "UINT16",
                8,
                doc="three high bits of four indices, low first, a scale of three bits, the sign of delta",
            ),
        ),
        "d (2 s + 1) times (one of 2048 entries of eight, plus or minus an eighth)",
        iq1_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ1_M",
        29,
        256,
        (
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field(
                "qh",
                "UINT8",
                16,
                doc="nibbles, low first: three high bits of an index and the sign of its delta",
            ),
            field(
                "scales", "UINT16", 4, doc="four scales of three bits, and on top a nibble of d, lowest first"
            ),
        ),
        "d (2 s + 1) times (one of 2048 entries of eight, plus or minus an eighth)",
        iq1_m,
        C_AND_GGUF,
        rules=(rules.split_scale,),
    ),
)
