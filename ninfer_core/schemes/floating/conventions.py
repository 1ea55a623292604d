"""Which way the second scale of NVFP4 goes: a divisor to one tool, a factor to the other, under one name of a format."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from ninfer_core.schemes.dialects import Dialect, Likely
from ninfer_core.schemes.floating.nvfp4 import CT, MODELOPT, Nvfp4
from ninfer_core.schemes.form import Params, Parts, Shape, Values
from ninfer_core.schemes.small_floats import E2M1

_DIVIDES: Final = "divides"
_MULTIPLIES: Final = "multiplies"
_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        _DIVIDES: "the scale of the tensor divides those of the blocks",
        _MULTIPLIES: "it multiplies them",
    }
)
# The readings lie a square apart, so that one of them soon leaves what trained weights reach.
_LARGEST_WEIGHT: Final = 2.0**10
_NO_WEIGHT: Final = 2.0**16


def _dialect(tool: Nvfp4) -> Dialect:
    own = _DIVIDES if tool.divides else _MULTIPLIES

    def stated(_form: str, _params: Params) -> str:
        return own

    def read(_form: str, convention: str, parts: Parts, shape: Shape, params: Params) -> Values:
        return _reading(convention).fast(parts, shape, params)

    def content(_stated: str, parts: Parts, _shape: Shape, _params: Params) -> Likely | None:
        other = _MULTIPLIES if tool.divides else _DIVIDES
        top, others = _largest(_reading(own), parts), _largest(_reading(other), parts)
        if not top > _LARGEST_WEIGHT >= others > 0:
            return None
        return Likely(
            other,
            "strong" if top > _NO_WEIGHT else "weak",
            f"weights reach {others:.4g} by it and {top:.4g} as stated, which trained weights do not",
        )

    def _reading(convention: str) -> Nvfp4:
        return replace(tool, divides=convention == _DIVIDES)

    name = f"second scale of NVFP4 ({tool.tensor_scale})"
    return Dialect(name, (tool.name,), tool.tensor_scale, _MEANINGS, stated, read, content)


def _largest(reading: Nvfp4, parts: Parts) -> float:
    """The largest magnitude that a block can hold by a reading; infinite scales count, NaN does not."""
    scales = np.abs(reading.scales(parts))
    top = np.max(scales, where=~np.isnan(scales), initial=np.float32(0))
    return float(top) * float(E2M1.largest)


NVFP4_DIVISOR: Final = _dialect(CT)
NVFP4_FACTOR: Final = _dialect(MODELOPT)
