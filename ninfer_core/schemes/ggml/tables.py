"""Tables that block types decode with, exact and computed where they have a closed form."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.data import tables
from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml.pieces import even_signs, signs
from ninfer_core.words import narrow_binary32

Table = NDArray[np.int8]

DOUBLED_E2M1: Final[Table] = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the values of E2M1 as integers: minus zero is zero here."""


def grid(name: str) -> Table:
    """A codebook of the IQ types by its name in the data file: [entries, 8] or [entries, 4]; `iq4nl` is T, [16]."""
    return tables("ggml_iq_grids")[name]


def mxfp4_table() -> Values:
    """The value of every code under every exponent byte, [256, 16]; 255 is an exponent like others."""
    exact = np.ldexp(DOUBLED_E2M1.astype(np.float64), np.arange(256)[:, None] - 128)
    return narrow_binary32(exact.view(np.uint64)).view(np.float32)


def nvfp4_scales() -> Values:
    """Half the scale of every byte: E4M3 without its sign, where 0x7f is zero and 0xff, seen as 0x7f, a number."""
    byte = np.arange(256)
    exponent, fraction = byte >> 3 & 15, byte & 7
    magnitude = np.ldexp(fraction + np.where(exponent > 0, 8, 0), np.maximum(exponent, 1) - 10)
    zero = np.isin(byte, (0x00, 0x7F, 0x80))
    return np.where(zero, 0, magnitude / 2).astype(np.float32)


def stq1_0_lanes() -> Table:
    """The four lanes of every code + 16 sign, [32, 4].

    Lane code / 4 is zero; of the others in order the first is +1, the second and third follow bits 0 and 1, set for -1.
    """
    table = np.zeros((32, 4), np.int8)
    for index in range(32):
        code, sign = index & 15, index >> 4
        others = [lane for lane in range(4) if lane != code >> 2]
        for lane, negative in zip(others, (0, code & 1, code >> 1 & 1), strict=True):
            table[index, lane] = -1 if negative != sign else 1
    return table


_EVEN_SIGNS: Final = ("IQ2_XXS", "IQ2_XS", "IQ3_XXS")  # seven bits, see `pieces.even_signs`
_PLAIN_SIGNS: Final = ("IQ2_S", "IQ3_S")


def looked_up(name: str) -> Values:
    """What the compiled decoder of a block type looks up; empty for those that compute."""
    if name in ("IQ4_NL", "IQ4_XS"):
        return grid("iq4nl").astype(np.float32)
    if name in ("IQ1_S", "IQ1_M"):
        return grid("iq1_s").astype(np.float32).ravel()
    if name in _EVEN_SIGNS or name in _PLAIN_SIGNS:
        codes = np.arange(128 if name in _EVEN_SIGNS else 256, dtype=np.uint8)
        rows = even_signs(codes) if name in _EVEN_SIGNS else signs(codes)
        return np.concatenate([grid(name.lower()).astype(np.float32).ravel(), rows.ravel()])
    if name == "STQ1_0":
        return stq1_0_lanes().astype(np.float32).ravel()
    if name == "MXFP4":
        return mxfp4_table()
    if name == "NVFP4":
        return nvfp4_scales()[:, None] * DOUBLED_E2M1.astype(np.float32)
    return np.empty(0, np.float32)
