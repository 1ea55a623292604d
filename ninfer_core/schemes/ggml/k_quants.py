"""Decoders of the K types: 256 weights with scales of sub-blocks, themselves in units of binary16 numbers."""

from typing import Final

import numpy as np

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml.block import C_AND_GGUF, DMIN, P2, Block, Blocks, D, field
from ninfer_core.schemes.ggml.pieces import Codes, half, nibbles, pairs, real, six_bit_scales
from ninfer_core.schemes.ggml.tables import Table

S6: Final = field("scales", "UINT8", 12, doc="eight scales and eight mins of six bits")


def q2_k(blocks: Blocks) -> Values:
    """(d L) q - (dmin M), with L and M in the nibbles of one byte for each sixteen."""
    scales = blocks["scales"]
    steps = half(blocks["d"])[:, None] * real(scales & 15)
    mins = half(blocks["dmin"])[:, None] * real(scales >> 4)
    return _affine(steps, real(pairs(blocks["qs"])), mins)


def q3_k(blocks: Blocks) -> Values:
    """(d sc) (q - 4 + 4 h), h from the mask of high bits."""
    eighths = np.arange(8, dtype=np.uint8)[:, None]
    high = (blocks["hmask"][:, None, :] >> eighths & 1).reshape(-1, 256)
    codes = (pairs(blocks["qs"]) | high << 2).astype(np.int8) - 4
    return _scaled(half(blocks["d"])[:, None] * real(q3_k_scales(blocks["scales"])), real(codes))


def q3_k_scales(packed: Codes) -> Table:
    """Bytes [n, 12] to sixteen signed six-bit scales [n, 16]."""
    low = nibbles(packed[:, :8])
    high = packed[:, None, 8:] >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
    scales: Table = (low | high.reshape(-1, 16) << 4).astype(np.int8) - 32
    return scales


def q4_k(blocks: Blocks) -> Values:
    """(d sc) q - (dmin mn), by 32."""
    return _six_bit_affine(blocks, _k_nibbles(blocks["qs"]))


def q5_k(blocks: Blocks) -> Values:
    """As Q4_K with a fifth bit of every code in `qh`."""
    eighths = np.arange(8, dtype=np.uint8)[:, None]
    high = (blocks["qh"][:, None, :] >> eighths & 1).reshape(-1, 256)
    return _six_bit_affine(blocks, _k_nibbles(blocks["qs"]) | high << 4)


def q6_k(blocks: Blocks) -> Values:
    """(d sc) (q - 32), by sixteen."""
    low = nibbles(blocks["ql"].reshape(-1, 2, 64)).reshape(-1, 256)
    high = pairs(blocks["qh"])
    codes = (low | high << 4).astype(np.int8) - 32
    return _scaled(half(blocks["d"])[:, None] * real(blocks["scales"]), real(codes))


def _k_nibbles(packed: Codes) -> Codes:
    """Bytes [n, 128] to codes [n, 256]: of each 32 bytes the low nibbles, then the high ones."""
    return nibbles(packed.reshape(-1, 4, 32)).reshape(-1, 256)


def _six_bit_affine(blocks: Blocks, codes: Codes) -> Values:
    scales, mins = six_bit_scales(blocks["scales"])
    steps = half(blocks["d"])[:, None] * real(scales)
    return _affine(steps, real(codes), half(blocks["dmin"])[:, None] * real(mins))


def _scaled(steps: Values, codes: Values) -> Values:
    """Codes [n, 256] times the steps [n, m] of equal sub-blocks."""
    count = steps.shape[1]
    return (steps[:, :, None] * codes.reshape(-1, count, 256 // count)).reshape(-1, 256)


def _affine(steps: Values, codes: Values, mins: Values) -> Values:
    """Codes times steps, rounded, minus the mins [n, m]."""
    count = steps.shape[1]
    products = _scaled(steps, codes).reshape(-1, count, 256 // count)
    return (products - mins[:, :, None]).reshape(-1, 256)


K_QUANTS: Final = (
    Block(
        "Q2_K",
        10,
        256,
        (field("scales", "UINT8", 16, doc="scale low, min high, of each sixteen"), P2, D, DMIN),
        "(d L) q - (dmin M), q of two bits, L and M of four by sixteen",
        q2_k,
        C_AND_GGUF,
        ("d", "dmin"),
    ),
    Block(
        "Q3_K",
        11,
        256,
        (
            field("hmask", "UINT8", 32, doc="bit i / 32 of byte i mod 32 is the high bit of code i"),
            P2,
            field("scales", "UINT8", 12, doc="sixteen scales of six bits: low nibbles, then high pairs"),
            D,
        ),
        "(d sc) (q - 4), q of three bits, sc signed of six by sixteen",
        q3_k,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "Q4_K",
        12,
        256,
        (D, DMIN, S6, field("qs", "UINT8", 128, doc="of each 32 bytes 32 codes low, then 32 high")),
        "(d sc) q - (dmin mn), q of four bits, sc and mn of six by 32",
        q4_k,
        C_AND_GGUF,
        ("d", "dmin"),
    ),
    Block(
        "Q5_K",
        13,
        256,
        (
            D,
            DMIN,
            S6,
            field("qh", "UINT8", 32, doc="bit i / 32 of byte i mod 32 is bit 4 of code i"),
            field("qs", "UINT8", 128, doc="of each 32 bytes 32 codes low, then 32 high"),
        ),
        "(d sc) q - (dmin mn), q of five bits, sc and mn of six by 32",
        q5_k,
        C_AND_GGUF,
        ("d", "dmin"),
    ),
    Block(
        "Q6_K",
        14,
        256,
        (
            field("ql", "UINT8", 128, doc="of each 64 bytes 64 low nibbles low, then 64 high"),
            field(
                "qh", "UINT8", 64, doc="code 128 h + 32 s + m has bits 2 s, 2 s + 1 of byte 32 h + m on top"
            ),
            field("scales", "INT8", 16),
            D,
        ),
        "(d sc) (q - 32), q of six bits, sc of eight by sixteen",
        q6_k,
        C_AND_GGUF,
        ("d",),
    ),
)
