"""Words of leaves into the bytes of a payload: the inverse of the view."""

from collections.abc import Mapping

import numpy as np

from ninfer_core.schemes.form import Array
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.plans import LeafPlan
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import leaves


def payload_of(declared: Declared, words: Mapping[str, Array]) -> np.ndarray:
    """The payload whose leaves hold `words` by path; leaves without words are zero. Raises: StructFault.

    Words are unsigned or signed integers of the leaf's shape; bits above the leaf's width are left out.
    """
    size = size_bytes(declared)
    payload = np.zeros(size, np.uint8)
    odd: list[tuple[LeafPlan, Array]] = []
    for plan in leaves(declared):
        if plan.constant is not None or plan.path not in words:
            continue
        held = words[plan.path]
        if held.shape != plan.shape:
            raise ValueError(f"words of {plan.path!r} are {held.shape}, not {plan.shape}")
        whole = plan.bits in (8, 16, 32, 64)
        if not held.size:  # the axes beside one of no length may say any number
            continue
        if whole and all(stride % 8 == 0 for stride in (plan.offset_bits, *plan.strides_bits)):
            strides = tuple(stride // 8 for stride in plan.strides_bits)
            dtype = np.dtype(f"<u{plan.bits // 8}")
            np.ndarray(plan.shape, dtype, payload.data, plan.offset_bits // 8, strides)[...] = held
        else:
            odd.append((plan, held))
    if odd:
        bits = np.unpackbits(payload, bitorder="little")
        for plan, held in odd:
            places = np.full(plan.shape, plan.offset_bits, np.int64)
            for axis, stride in enumerate(plan.strides_bits):
                along = np.arange(plan.shape[axis], dtype=np.int64) * stride
                places += along.reshape([-1 if axis == at else 1 for at in range(len(plan.shape))])
            for bit in range(plan.bits):
                bits[places + bit] = held >> held.dtype.type(bit) & held.dtype.type(1)
        payload = np.packbits(bits, bitorder="little")
    return payload
