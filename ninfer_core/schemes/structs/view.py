"""The view of a payload: its leaves as arrays, without a copy where the bytes allow it, unpacked on demand elsewhere.

Arrays hold numpy's own types, or those of ml_dtypes for BFLOAT16 and the floats of one byte. What is narrower than a
byte becomes one element each: INT2 and INT4 int8, UINT2 and UINT4 uint8, FLOAT4 and FLOAT6 the uint8 codes. A packed
component becomes the smallest unsigned type that holds it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.structs.bits import read_words
from ninfer_core.schemes.structs.faults import fault
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Constant, Declared
from ninfer_core.schemes.structs.numbers import as_elements
from ninfer_core.schemes.structs.plans import LeafPlan, unroll
from ninfer_core.schemes.structs.sizes import laid_out

Payload = bytes | bytearray | memoryview | NDArray[np.uint8]  # C-contiguous


@dataclass(frozen=True)
class LeafArray:
    """A leaf and the bytes that it lies in: those of the payload, or a constant's own."""

    plan: LeafPlan
    source: memoryview
    limits: Limits = LIMITS

    @cached_property
    def words(self) -> NDArray[Any]:
        """The stored bits of each element in the smallest unsigned type. Raises: StructFault `limit_values`."""
        return read_words(self.plan, self.source, self.limits)

    @cached_property
    def array(self) -> NDArray[Any]:
        """The elements in the type that the module's text names. Raises: StructFault `limit_values`."""
        return as_elements(self.words, self.plan.element)


def leaf_array(plan: LeafPlan, payload: memoryview | None, limits: Limits = LIMITS) -> LeafArray | None:
    """A leaf over a payload of its type's size; without one only a constant is a leaf."""
    if plan.constant is not None:
        return LeafArray(plan, memoryview(plan.constant.data), limits)
    return None if payload is None else LeafArray(plan, payload, limits)


def constant_array(constant: Constant) -> NDArray[Any]:
    """The elements of a legal constant in its shape. Raises: StructFault `limit_values`."""
    element = LEAVES[constant.dtype]
    plan = LeafPlan("", element, element.bits, constant.dims, constant=constant)
    return LeafArray(plan, memoryview(constant.data)).array


def leaves(declared: Declared, limits: Limits = LIMITS) -> tuple[LeafPlan, ...]:
    """The leaves of a type with its counts, in canonical order. Raises: StructFault."""
    return unroll(laid_out(declared, limits))


def view(declared: Declared, payload: Payload, limits: Limits = LIMITS) -> tuple[LeafArray, ...]:
    """The leaves over a payload of exactly the declared size. Raises: StructFault."""
    laid = laid_out(declared, limits)
    source = np.frombuffer(payload, np.uint8).data.toreadonly()
    if source.nbytes * 8 != laid.bits:
        code = "payload_size_mismatch" if laid.bits % 8 == 0 else "size_not_byte_multiple"
        message = f"{source.nbytes:,} bytes for {laid.bits:,} bits."
        raise fault(code, "value", message, f"{laid.bits} bits", f"{source.nbytes * 8} bits")
    arrays = (leaf_array(plan, source, limits) for plan in unroll(laid))
    return tuple(array for array in arrays if array is not None)
