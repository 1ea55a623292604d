"""Values of a block of quantized words as binary32 words, for comparisons of values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.derive import read_share
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.kernels.processor import Processor
from ninfer_core.layouts.base import Block
from ninfer_core.layouts.block_scale import unswizzle
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.verify.words import Planes, grouped_planes
from ninfer_core.words import Words32, is_divisor

Words = NDArray[Any]


def reconstructed(fmt: NumericFormat, block: Block, planes: Planes, processor: Processor) -> Words32 | None:
    """Binary32 words [rows, columns] of a stored block; an invalid code or scale gives NaN, an invalid divisor None."""
    out = np.empty((block.rows, block.columns), np.uint32)
    match fmt:
        case GroupedFormat():
            processor.reconstruct_grouped(fmt, block.columns, grouped_planes(fmt, planes), out)
        case RowFormat():
            processor.reconstruct_row(planes[0].reshape(block.rows, block.columns), planes[1], out)
        case BlockFormat():
            scales = unswizzle(planes[1], block.rows, block.columns)
            return _nvfp4(planes[0], scales, int(planes[2][0]), out, processor)
        case DirectFormat():
            raise ValueError(f"{fmt.name} words are values already")
    return out


def of_bundle(bundle: Bundle, block: Block, processor: Processor) -> Words32 | None:
    """The same of a block of a quantized source. Raises: CutShort, CannotRead."""
    out = np.empty((block.rows, block.columns), np.uint32)
    codes = np.ascontiguousarray(read_share(bundle.codes, bundle.shape[1], block))
    if bundle.divisor is None:
        scales = bundle.scales.read(block.row, block.row + block.rows)
        processor.reconstruct_row(codes, scales.reshape(-1), out)
        return out
    scales = np.ascontiguousarray(read_share(bundle.scales, bundle.shape[1], block))
    return _nvfp4(codes, scales, int(bundle.divisor.read(0, 1)[0]), out, processor)


def _nvfp4(codes: Words, scales: Words, divisor: int, out: Words32, processor: Processor) -> Words32 | None:
    if not is_divisor(divisor):
        return None
    processor.reconstruct_nvfp4(codes.reshape(-1), scales.reshape(-1), divisor, out)
    return out
