"""Tables of sixteen levels, two codes a byte: NF4 and FP4 as bitsandbytes publishes them (scheme page 5.4)."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Array, Values
from ninfer_core.schemes.run import CannotEncode

NF4_TABLE: Final = np.array(
    [
        *(-1.0, -0.69619280, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.091050036, 0.0),
        *(0.079580300, 0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1.0),
    ],
    np.float32,
)
_FP4_HALF: Final = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32)
FP4_TABLE: Final = np.concatenate([_FP4_HALF, [np.float32(0)], -_FP4_HALF[1:]])


def zero_code(table: Values) -> int:
    """The first code of 0, which the tool also writes where a byte has no second value."""
    return int(np.argmax(table == 0))


def codes_of(payload: NDArray[np.uint8], count: int, first: str) -> NDArray[np.uint8]:
    """The codes in the order of the values; `first` is the half of a byte, "high" or "low", that comes first."""
    high, low = payload >> np.uint8(4), payload & np.uint8(15)
    pair = (high, low) if first == "high" else (low, high)
    return np.stack(pair, axis=-1).reshape(-1)[:count]


def halves(payload: NDArray[np.uint8], first: str) -> tuple[int, int]:
    """The two codes of the last byte, in their order."""
    one, other = codes_of(payload[-1:], 2, first)
    return int(one), int(other)


def encode(values: Values, table: Values, block_size: int, first: str) -> dict[str, Array]:
    """The nearest level of each value over the largest magnitude of its block; a tie goes to the lower level.

    Raises: CannotEncode.
    """
    if not np.isfinite(values).all():
        raise CannotEncode("NaN and infinity have no place in the table")
    count, size = values.size, min(block_size, max(values.size, 1))
    blocks, zero = -(-count // size), zero_code(table)
    padded = np.zeros(blocks * size, np.float32)
    padded[:count] = values.reshape(-1)
    grouped = padded.reshape(blocks, size)
    absmax = np.abs(grouped).max(axis=1, initial=0)
    unit = grouped / np.where(absmax == 0, np.float32(1), absmax)[:, None]
    order = np.argsort(table, kind="stable")
    levels = table[order].astype(np.float64)
    # In binary64 the middles are exact.
    place = np.searchsorted((levels[1:] + levels[:-1]) / 2, unit.astype(np.float64), side="left")
    codes = order[place].astype(np.uint8)
    codes[unit == 0] = zero
    pairs = np.append(codes.reshape(-1)[:count], np.full(count % 2, zero, np.uint8)).reshape(-1, 2)
    high, low = (pairs[:, 0], pairs[:, 1]) if first == "high" else (pairs[:, 1], pairs[:, 0])
    return {"payload": high << np.uint8(4) | low, "absmax": absmax, "code": table.copy()}
