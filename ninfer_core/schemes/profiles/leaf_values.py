"""Leaves as binary32 numbers, exact wherever binary32 holds them (R9, R14)."""

from typing import Final

import numpy as np

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.small_floats import (
    E2M1,
    E2M3,
    E3M2,
    E4M3FN,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    SmallFloat,
    decode,
    expand_e8m0,
)
from ninfer_core.schemes.structs.view import LeafArray
from ninfer_core.words import expand_bf16, expand_binary16

SMALL: Final[dict[str, SmallFloat]] = {
    "FLOAT4E2M1": E2M1,
    "FLOAT6E2M3": E2M3,
    "FLOAT6E3M2": E3M2,
    "FLOAT8E4M3FN": E4M3FN,
    "FLOAT8E4M3FNUZ": E4M3FNUZ,
    "FLOAT8E5M2": E5M2,
    "FLOAT8E5M2FNUZ": E5M2FNUZ,
}


def numbers_of(leaf: LeafArray) -> Values:
    """The leaf's elements; integers and DOUBLE are rounded to the nearest where binary32 does not hold them."""
    name = leaf.plan.element.name
    if name in SMALL:
        return decode(SMALL[name], leaf.words)
    if name == "FLOAT8E8M0":
        return expand_e8m0(leaf.words)
    if name == "FLOAT16":
        return expand_binary16(leaf.words).view(np.float32)
    if name == "BFLOAT16":
        return expand_bf16(leaf.words).view(np.float32)
    return leaf.array.astype(np.float32, copy=False)
