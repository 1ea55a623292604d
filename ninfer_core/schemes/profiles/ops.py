"""The steps that decoders are made of, once as a protocol: run on arrays here, written down as ONNX nodes elsewhere.

One walk over a profile gives both, so that a portable decoder cannot drift from the one that runs. Names of element
types are ONNX's. Floating point is binary32 unless a step says otherwise (R14).
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, digits_of
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.hadamard import transform
from ninfer_core.schemes.profiles.leaf_values import numbers_of
from ninfer_core.schemes.run import SchemeRefused
from ninfer_core.schemes.structs.view import LeafArray

T = TypeVar("T")
Array = NDArray[Any]


class Ops(Protocol[T]):
    """What a decoder may do with tensors."""

    def has(self, path: str) -> bool:
        """Whether there is such a leaf."""
        ...

    def number(self, path: str) -> T:
        """A leaf as FLOAT, cast exactly where its type is narrower."""
        ...

    def stored(self, path: str) -> T:
        """A leaf of integers as it is stored."""
        ...

    def constant(self, values: object, element: str) -> T: ...
    def cast(self, x: T, element: str) -> T: ...
    def reshape(self, x: T, *shape: int) -> T: ...
    def transpose(self, x: T, *perm: int) -> T: ...
    def concat(self, parts: Sequence[T], axis: int) -> T: ...
    def cut(self, x: T, axis: int, start: int, stop: int) -> T: ...
    def add(self, x: T, y: T) -> T: ...
    def subtract(self, x: T, y: T) -> T: ...
    def multiply(self, x: T, y: T) -> T: ...
    def divide(self, x: T, y: T) -> T: ...

    def power(self, x: T, y: T) -> T:
        """x ** y of FLOAT in binary64, rounded once to FLOAT: exact for powers of two."""
        ...

    def equal(self, x: T, y: T) -> T: ...
    def where(self, condition: T, yes: T, no: T) -> T: ...
    def matmul(self, x: T, y: T) -> T: ...

    def field(self, x: T, low: int, width: int) -> T:
        """Bits of unsigned integers."""
        ...

    def codes(self, x: T, bits: int, count: int, outer: Shape, words: int) -> T:
        """Codes of a low-bits-first stream (R1): [*outer, count] from unsigned [*outer, words]."""
        ...

    def digits(self, x: T, base: int, count: int, outer: Shape, size: int) -> T:
        """Digits of little-endian integers of `size` bytes (R2): [*outer, count] from UINT8 [*outer, size]."""
        ...

    def look_up(self, table: T, indices: T, entries: int, path: str, signed: bool = False) -> T:
        """Entries along the first axis; an index that is none is refused, never wrapped."""
        ...

    def replace(self, flat: T, indices: T, values: T, count: int, path: str) -> T:
        """Values at INT64 indices of one dimension exchanged."""
        ...

    def hadamard(self, x: T, size: int, axis: int, shape: Shape) -> T:
        """R11's transform along an axis (-1 or -2) of a tensor of that shape."""
        ...


_NATIVE: Final[dict[str, Any]] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT32": np.uint32,
    "INT32": np.int32,
    "INT64": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


class ArrayOps:
    """The steps on numpy arrays."""

    def __init__(self, name: str, leaves: Sequence[LeafArray]) -> None:
        self._name = name
        self._leaves = {leaf.plan.path: leaf for leaf in leaves}

    def has(self, path: str) -> bool:
        """Whether there is such a leaf."""
        return path in self._leaves

    def number(self, path: str) -> Array:
        """A leaf as binary32."""
        return numbers_of(self._leaves[path])

    def stored(self, path: str) -> Array:
        """A leaf of integers."""
        return self._leaves[path].array

    def constant(self, values: object, element: str) -> Array:
        """Numbers of the decoder itself."""
        return np.asarray(values, _NATIVE[element])

    def cast(self, x: Array, element: str) -> Array:
        """Another type; floats of fewer bits were read as binary32 already."""
        return x.astype(_NATIVE[element], copy=False)

    def reshape(self, x: Array, *shape: int) -> Array:
        """The same elements."""
        return x.reshape(shape)

    def transpose(self, x: Array, *perm: int) -> Array:
        """Axes in another order."""
        return x.transpose(perm)

    def concat(self, parts: Sequence[Array], axis: int) -> Array:
        """One after another."""
        return np.concatenate(list(parts), axis)

    def cut(self, x: Array, axis: int, start: int, stop: int) -> Array:
        """Indices `start` to `stop` - 1."""
        return x[(slice(None),) * axis + (slice(start, stop),)]

    def add(self, x: Array, y: Array) -> Array:
        """x + y."""
        return np.asarray(np.add(x, y))

    def subtract(self, x: Array, y: Array) -> Array:
        """x - y."""
        return np.asarray(np.subtract(x, y))

    def multiply(self, x: Array, y: Array) -> Array:
        """x * y."""
        return np.asarray(np.multiply(x, y))

    def divide(self, x: Array, y: Array) -> Array:
        """x / y."""
        return np.asarray(np.divide(x, y))

    def power(self, x: Array, y: Array) -> Array:
        """x ** y."""
        return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64)), np.float32)

    def equal(self, x: Array, y: Array) -> Array:
        """Where both are one number."""
        return np.asarray(np.equal(x, y))

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """One or the other."""
        return np.where(condition, yes, no)

    def matmul(self, x: Array, y: Array) -> Array:
        """The matrix product."""
        return np.asarray(np.matmul(x, y))

    def field(self, x: Array, low: int, width: int) -> Array:
        """Bits of unsigned integers."""
        return np.asarray(x >> x.dtype.type(low) & x.dtype.type((1 << width) - 1))

    def codes(self, x: Array, bits: int, count: int, outer: Shape, words: int) -> Array:
        """Codes of streams; those of sub-byte carriers come one element each."""
        if x.size and bits == 8 * x.dtype.itemsize:
            return x[..., :count]
        return codes_of(x, bits, count)

    def digits(self, x: Array, base: int, count: int, outer: Shape, size: int) -> Array:
        """Digits of units."""
        return digits_of(x, base, count)[0]

    def look_up(self, table: Array, indices: Array, entries: int, path: str, signed: bool = False) -> Array:
        """Entries by index. Raises: SchemeRefused for the first index that is none."""
        beyond = (indices < 0) | (indices >= entries)
        self._refuse(beyond, indices, entries, path)
        return np.asarray(table[indices])

    def replace(self, flat: Array, indices: Array, values: Array, count: int, path: str) -> Array:
        """Values at indices. Raises: SchemeRefused for an index that is none."""
        self._refuse((indices < 0) | (indices >= count), indices, count, path)
        changed = flat.copy()
        changed[indices] = values
        return changed

    def hadamard(self, x: Array, size: int, axis: int, shape: Shape) -> Array:
        """Sums and differences."""
        return transform(x, size, axis)

    def _refuse(self, beyond: NDArray[np.bool_], indices: Array, limit: int, path: str) -> None:
        if beyond.any():
            findings = Findings()
            report(
                findings,
                "index_out_of_range",
                path,
                beyond,
                indices,
                "points outside",
                f"0 to {limit - 1}",
                limit=limit,
            )
            raise SchemeRefused(self._name, findings)
