"""Binary16 numbers inside of kernels, with integers where a mode of the thread could alter a subnormal one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline


@inline
def half(low: int, high: int) -> float:
    """The value of a binary16 word by its bytes, exact; a NaN becomes the one NaN."""
    word = np.uint32(low) | np.uint32(high) << np.uint32(8)
    sign = np.uint32(word & np.uint32(0x8000)) << np.uint32(16)
    magnitude = np.uint32(word & np.uint32(0x7FFF))
    bits = np.uint32((magnitude << np.uint32(13)) + np.uint32(112 << 23))
    if np.uint32(magnitude - np.uint32(0x400)) >= np.uint32(0x7800):  # no normal number
        if magnitude < np.uint32(0x400):
            bits = np.float32(np.float32(np.int32(magnitude)) * np.float32(2.0**-24)).view(np.uint32)
        elif magnitude > np.uint32(0x7C00):
            bits, sign = np.uint32(0x7FC00000), np.uint32(0)
        else:
            bits = np.uint32(0x7F800000)
    return np.uint32(bits | sign).view(np.float32)  # type: ignore[return-value]


@inline
def settle(number: float, values: NDArray[Any]) -> None:
    """Every NaN among values of a scale that is no number becomes the one NaN: processors differ in its sign."""
    if not np.isfinite(number):
        for i in range(values.size):
            if np.isnan(values[i]):
                values[i] = np.float32(np.nan)
