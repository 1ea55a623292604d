"""Ternary levels of weights, where a scheme stores one magnitude for all of them."""

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.scales import divided, finite_source

Levels = NDArray[np.int8]


def ternary_of(form: str, values: Values) -> tuple[Levels, np.float32]:
    """The levels -1, 0, 1 of values, and the magnitude of one.

    Values of one magnitude beside zero keep it; others take their mean magnitude, half to even and clipped, as BitNet
    b1.58 trains. Raises: CannotEncode for values that are not finite.
    """
    magnitudes = np.abs(finite_source(form, values))
    top = np.max(magnitudes, initial=np.float32(0))
    if not top:
        return np.zeros(values.shape, np.int8), np.float32(1)
    ternary = bool(np.all((magnitudes == 0) | (magnitudes == top)))
    magnitude = top if ternary else np.float32(np.mean(magnitudes, dtype=np.float64))
    quotients = divided(values, np.broadcast_to(magnitude, values.shape))
    return np.clip(np.rint(quotients), -1, 1).astype(np.int8), np.float32(magnitude)
