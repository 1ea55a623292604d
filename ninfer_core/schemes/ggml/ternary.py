"""Decoders of the ternary types: base-3 digits in bytes, two-bit codes, and lanes of four of which one is zero."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml import encoders, rules
from ninfer_core.schemes.ggml.block import C_AND_GGUF, P2, Block, Blocks, D, field
from ninfer_core.schemes.ggml.pieces import Codes, bits, half, nibbles_in_turn, pairs, real
from ninfer_core.schemes.ggml.tables import stq1_0_lanes

_POWERS: Final = np.array([1, 3, 9, 27, 81], np.uint16)[:, None]


def digits(packed: Codes, count: int) -> Codes:
    """The first `count` base-3 digits of bytes [n, m], [n, count, m]: a byte is a fraction of 256, read from its top."""
    rest: NDArray[Any] = packed[:, None, :] * _POWERS[:count] & 255
    return (rest * 3 >> 8).astype(np.uint8)


def tq1_0(blocks: Blocks) -> Values:
    """d (digit - 1), five digits in a byte, in the last four bytes four."""
    n = len(blocks)
    qs = blocks["qs"]
    places = [digits(qs[:, :32], 5), digits(qs[:, 32:], 5), digits(blocks["qh"], 4)]
    codes = np.concatenate([place.reshape(n, -1) for place in places], axis=1)
    return half(blocks["d"])[:, None] * (real(codes) - 1)


def tq2_0(blocks: Blocks) -> Values:
    """d (q - 1)."""
    return half(blocks["d"])[:, None] * (real(pairs(blocks["qs"])) - 1)


def stq1_0(blocks: Blocks) -> Values:
    """d times the lanes of a code and a sign: lane p of group g is element 64 (g / 16) + g mod 16 + 16 p (section 5.8)."""
    index = nibbles_in_turn(blocks["codes"]) | bits(blocks["signs"]) << 4
    lanes = stq1_0_lanes()[index].reshape(-1, 4, 16, 4)
    return half(blocks["d"])[:, None] * real(lanes.transpose(0, 1, 3, 2).reshape(-1, 256))


TERNARY: Final = (
    Block(
        "TQ1_0",
        34,
        256,
        (
            field("qs", "UINT8", 48, doc="five digits in a byte, of 32 bytes and then of sixteen"),
            field("qh", "UINT8", 4, doc="four digits in a byte"),
            D,
        ),
        "d (digit - 1), digits of base 3",
        tq1_0,
        C_AND_GGUF,
        ("d",),
        ("d",),
        rules=(rules.base_three,),
        encode=encoders.tq1_0,
    ),
    Block(
        "TQ2_0",
        35,
        256,
        (P2, D),
        "d (q - 1), q of two bits",
        tq2_0,
        C_AND_GGUF,
        ("d",),
        ("d",),
        rules=(rules.ternary_codes,),
        encode=encoders.tq2_0,
    ),
    Block(
        "STQ1_0",
        None,
        256,
        (
            field("codes", "UINT8", 32, doc="64 codes of four bits, low first"),
            field("signs", "UINT8", 8, doc="bit g negates group g"),
            D,
        ),
        "d times four lanes, one of them zero",
        stq1_0,
        "two independent decoders, table checked against five public implementations",
        ("d",),
        ("d",),
        encode=encoders.stq1_0,
        notes="Files carry type 42 or 43; mainline ggml gave 42 to Q2_0. One converter writes the scale as int16 / 32768.",
    ),
)
