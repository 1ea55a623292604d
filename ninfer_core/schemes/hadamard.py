"""Hadamard rotations: Sylvester's matrix over the square root of its size, its own inverse (scheme rule R11)."""

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]


def is_size(n: int) -> bool:
    """True for the sizes that Sylvester's construction gives: powers of two.

    Other sizes need a published base matrix, and none is among the rules.
    """
    return n >= 1 and n & (n - 1) == 0


def factor(n: int) -> np.float32:
    """1 / sqrt(n), rounded once to binary32."""
    return np.float32(1.0 / math.sqrt(n))


def transform(values: Values, size: int, axis: int = -1) -> Values:
    """`values` with each run of `size` along `axis` multiplied by the matrix: from either side, it is symmetric.

    Binary32 throughout: sums and differences of neighbours 1, 2, 4 .. apart, one product with `factor` last. Against
    the exact product a value is off by at most (log2(size) + 2) 2**-24 times the sum of its run's magnitudes over
    sqrt(size), to first order; other orders of summing give other words within that. Raises: ValueError for a size
    that is no power of two or does not divide the axis.
    """
    moved = np.moveaxis(values, axis, -1)
    length = moved.shape[-1]
    if not is_size(size) or length % size:
        raise ValueError(f"runs of {size} do not tile {length} values, or {size} is no power of two")
    work = np.array(moved, np.float32, order="C")
    half = 1
    while half < size:
        pairs = work.reshape(*work.shape[:-1], length // (2 * half), 2, half)
        low, high = pairs[..., 0, :].copy(), pairs[..., 1, :].copy()
        np.add(low, high, out=pairs[..., 0, :])
        np.subtract(low, high, out=pairs[..., 1, :])
        half *= 2
    work *= factor(size)
    return np.ascontiguousarray(np.moveaxis(work, -1, axis))
