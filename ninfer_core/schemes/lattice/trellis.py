"""The trellis code of EXL3: overlapping states of sixteen bits, and the numbers that they stand for (5.21)."""

from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Codebook = Literal["3inst", "mcg", "mul1"]

SYMBOLS: Final = 256  # of one tile of 16 x 16
_MASK: Final = 0x8FFF8FFF
_FLIP: Final = 0x3B603B60
_MULTIPLIERS: Final[dict[Codebook, tuple[int, int]]] = {
    "3inst": (89226354, 64248484),
    "mcg": (0xCBAC1FED, 0),
    "mul1": (0x83DCD12D, 0),
}
_MUL1_SCALE: Final = 0x1EEE  # binary16 words: about 0.00677 and -10.39
_MUL1_OFFSET: Final = 0xC931
MARKERS: Final[dict[Codebook, int]] = {"mcg": 0xCBAC1FED, "mul1": 0x83DCD12D}


def _half(words: NDArray[Any] | int) -> NDArray[np.float32]:
    """The numbers of the binary16 words in the low halves of `words`."""
    return np.asarray(words).astype(np.uint16).view(np.float16).astype(np.float32)


@cache
def values(codebook: Codebook) -> NDArray[np.float32]:
    """The number of each of the 65,536 states; exact in binary32, which holds every sum and product here."""
    multiplier, addend = _MULTIPLIERS[codebook]
    states = np.arange(1 << 16, dtype=np.uint32)
    mixed = states * np.uint32(multiplier) + np.uint32(addend)
    if codebook == "mul1":
        total = np.uint32(0x6400) + (mixed & 255) + (mixed >> 8 & 255) + (mixed >> 16 & 255) + (mixed >> 24)
        found: NDArray[np.float32] = _half(total) * _half(_MUL1_SCALE) + _half(_MUL1_OFFSET)
    else:
        mixed = (mixed & np.uint32(_MASK)) ^ np.uint32(_FLIP)
        found = _half(mixed & 0xFFFF) + _half(mixed >> 16)
    found.flags.writeable = False
    return found


def states(tiles: NDArray[np.int16], bits: int) -> NDArray[np.uint16]:
    """The state of each symbol, uint16[..., 256], of tiles int16[..., 16 * bits].

    Symbol i's state is the sixteen bits that end at bit (i + 1) * bits of the tile, which wraps around.
    """
    words = tiles.view(np.uint16).reshape(*tiles.shape[:-1], 8 * bits, 2)[..., ::-1].reshape(tiles.shape)
    ends = (np.arange(SYMBOLS) + 1) * bits
    first, shift = np.divmod((ends - 16) % (SYMBOLS * bits), 16)
    high = words[..., first].astype(np.uint32) << np.uint32(16)
    pairs = high | words[..., (first + 1) % (16 * bits)]
    return (pairs >> (16 - shift).astype(np.uint32)).astype(np.uint16)


@cache
def places() -> NDArray[np.intp]:
    """Where each symbol lies in its tile of 16 x 16, row by row."""
    symbol = np.arange(SYMBOLS)
    thread, part = symbol >> 3, symbol & 7
    row = 2 * (thread & 3) + (part & 1) + 8 * (part >> 1 & 1)
    column = (thread >> 2) + 8 * (part >> 2)
    return np.asarray(row * 16 + column, dtype=np.intp)
