"""The canonical profile at scheme level: tensors of any rank, logical codes and scales, no bytes (tensor-formats 4).

The last axis is the quantization axis; every coordinate of the leading axes is a row of its own, and no group
crosses a row. Layouts, which add padding and planes, take rank two only.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import IllegalShape, NinferError
from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import EncodeFault, GroupedPlanes
from ninfer_core.layouts.base import Shape
from ninfer_core.layouts.row_split import GroupedWords, pack, unpack


class SourceRefused(NinferError):
    """The profile refuses a group; `fault` says which row (of the flattened leading axes), group, lane and word."""

    code = "source_refused"

    def __init__(self, fault: EncodeFault) -> None:
        super().__init__(
            f"row {fault.row}, group {fault.group}: {fault.kind.replace('_', ' ')}, word 0x{fault.word:x}"
        )
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Quantized:
    """Codes int8 of the tensor's shape and binary16 scale words uint16 [..., ceil(K / group)]."""

    format: GroupedFormat
    codes: NDArray[np.int8]
    scales: NDArray[np.uint16]


def scale_shape(fmt: GroupedFormat, shape: Shape) -> Shape:
    """Shape of the scale tensor. Raises: IllegalShape for rank 0 or a dimension below 1."""
    if not shape or min(shape) < 1:
        raise IllegalShape(shape, "rank at least one and positive dimensions")
    return (*shape[:-1], -(-shape[-1] // fmt.group))


def quantize(fmt: GroupedFormat, source: NDArray[Any], dtype: str) -> Quantized:
    """Encode source words (`dtype` BF16, F16, F32 or F64) of any rank from one on. Raises: SourceRefused, IllegalShape."""
    from ninfer_core.kernels import cpu

    scales = scale_shape(fmt, source.shape)
    rows, k = prod(source.shape[:-1]), source.shape[-1]
    planes = GroupedPlanes.empty(fmt, rows, k)
    outcome = cpu.encode(fmt, source.reshape(rows, k), dtype, planes)
    if isinstance(outcome, EncodeFault):
        raise SourceRefused(outcome)
    words = unpack(fmt, k, planes.base, planes.high, planes.scales)
    return Quantized(
        fmt, words.codes[:, :k].reshape(source.shape), words.scales[:, : scales[-1]].reshape(scales)
    )


def reconstruct(quantized: Quantized) -> NDArray[np.uint32]:
    """Binary32 words of the represented values, in the tensor's shape (tensor-formats 6.2)."""
    from ninfer_core.kernels import cpu

    shape = quantized.codes.shape
    rows, k = prod(shape[:-1]), shape[-1]
    words = GroupedWords(quantized.codes.reshape(rows, k), quantized.scales.reshape(rows, -1))
    base, high, scales = pack(quantized.format, words)
    out = np.empty((rows, k), np.uint32)
    cpu.reconstruct_grouped(quantized.format, k, GroupedPlanes(base, high, scales), out)
    return out.reshape(shape)
