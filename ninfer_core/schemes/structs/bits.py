"""Reading elements of any width at any bit: strided views where bytes allow, shifted bytes elsewhere.

Elements whose bits begin at the same place within a byte are read together: along a dimension whose stride is no whole
number of bytes, those are every eighth element or closer.
"""

import math
from collections.abc import Iterator
from itertools import islice, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.structs.faults import fault
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.numbers import word_type
from ninfer_core.schemes.structs.plans import LeafPlan

_MAX_PHASES: Final = 512
_MAX_RANK: Final = 64  # of a numpy array
_MAX_BYTES: Final = 2**63 - 1  # that a numpy array may address, its zeros left out


def read_words(plan: LeafPlan, source: memoryview, limits: Limits) -> NDArray[Any]:
    """The words of a leaf, unsigned, in its shape; `source` is the whole payload or the constant's data.

    Raises: StructFault `limit_values`.
    """
    dtype = word_type(plan.bits)
    strides = plan.strides_bits if plan.constant is None else _packed_strides(plan)
    _check_shape(plan, dtype.itemsize)
    if 0 in plan.shape:
        return np.empty(plan.shape, dtype)
    aligned = all(stride % 8 == 0 for stride in (plan.offset_bits, *strides))
    if aligned and plan.bits == dtype.itemsize * 8:
        return np.ndarray(
            plan.shape, dtype, source, plan.offset_bits // 8, tuple(stride // 8 for stride in strides)
        )
    values = math.prod(plan.shape)
    if values > limits.values:
        message = f"{values:,} values of {plan.path!r} would be unpacked."
        raise fault("limit_values", plan.path, message, limits.values, values)
    words = np.empty(plan.shape, dtype)
    few = math.prod(_periods(plan, strides)) <= _MAX_PHASES
    (_by_phase if few else _by_place)(plan, source, strides, words)
    words.setflags(write=False)
    return words


def _packed_strides(plan: LeafPlan) -> tuple[int, ...]:
    # A constant is stored as ONNX packs it: row-major, low bits first, which is this page's convention.
    return tuple(plan.bits * math.prod(plan.shape[axis + 1 :]) for axis in range(len(plan.shape)))


def _check_shape(plan: LeafPlan, itemsize: int) -> None:
    size = math.prod(dim for dim in plan.shape if dim) * itemsize
    if len(plan.shape) > _MAX_RANK or size > _MAX_BYTES:
        message = f"no array here has the shape {list(plan.shape)}."
        expected = f"at most {_MAX_RANK} dimensions and {_MAX_BYTES} bytes"
        raise fault("limit_values", plan.path, message, expected, list(plan.shape))


def _periods(plan: LeafPlan, strides: tuple[int, ...]) -> list[int]:
    """How far apart elements of one bit phase are, along each dimension."""
    return [min(size, 8 // math.gcd(stride, 8)) for size, stride in zip(plan.shape, strides, strict=True)]


def _by_phase(plan: LeafPlan, source: memoryview, strides: tuple[int, ...], words: NDArray[Any]) -> None:
    periods = _periods(plan, strides)
    steps = tuple(period * stride // 8 for period, stride in zip(periods, strides, strict=True))
    for start in product(*map(range, periods)):
        offset = plan.offset_bits + sum(at * stride for at, stride in zip(start, strides, strict=True))
        selected = tuple(slice(at, None, period) for at, period in zip(start, periods, strict=True))
        shape = words[selected].shape
        first, shift = divmod(offset, 8)
        touched = (shift + plan.bits + 7) // 8
        pieces = (np.ndarray(shape, np.uint8, source, first + at, steps) for at in range(touched))
        words[selected] = _joined(pieces, plan.bits, np.uint8(shift), touched)


def _by_place(plan: LeafPlan, source: memoryview, strides: tuple[int, ...], words: NDArray[Any]) -> None:
    # Many odd strides make as many phases as elements: then the place of each is computed instead.
    places = np.full(plan.shape, plan.offset_bits, np.int64)
    for axis, stride in enumerate(strides):
        along = np.arange(plan.shape[axis], dtype=np.int64) * stride
        places += along.reshape([-1 if axis == at else 1 for at in range(len(strides))])
    payload = np.frombuffer(source, np.uint8)
    first, shift = places >> 3, (places & 7).astype(np.uint8)
    touched = (int(shift.max()) + plan.bits + 7) // 8
    # A byte past the end holds no bit of the last elements, whatever is read for it.
    pieces = (payload[np.minimum(first + at, payload.size - 1)] for at in range(touched))
    words[...] = _joined(pieces, plan.bits, shift, touched)


def _joined(
    pieces: Iterator[NDArray[Any]], bits: int, shift: NDArray[np.uint8] | np.uint8, touched: int
) -> NDArray[Any]:
    """Words of `bits` bits that begin `shift` bits into their first byte, of the bytes that they touch: up to nine."""
    work = word_type(min(8, touched) * 8).type
    words: NDArray[Any] = next(pieces).astype(work)
    for at, piece in enumerate(islice(pieces, 7), start=1):
        words |= piece.astype(work) << work(8 * at)
    words >>= shift
    for ninth in pieces:
        # In two steps: at shift 0 the word ends before this byte, and a shift by 64 at once is undefined.
        words |= ninth.astype(work) << (work(63) - shift) << work(1)
    words &= work((1 << bits) - 1)
    return words
