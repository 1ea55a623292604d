"""Decoders of the IQ types: entries of published codebooks with signs, scaled by sub-blocks.

An index has as many bits as its codebook has entries, so none can point outside.
"""

import numpy as np

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml.block import Blocks
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
