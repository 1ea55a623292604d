"""Check `statistics`: of one block, and of a whole tensor merged from its blocks."""

from collections.abc import Sequence
from itertools import groupby

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.kernels.processor import Processor
from ninfer_core.kernels.values import CodeStatistics, WordStatistics
from ninfer_core.layouts.base import Block
from ninfer_core.layouts.block_scale import unswizzle
from ninfer_core.verify.outcomes import Statistics
from ninfer_core.verify.words import Planes, grouped_planes


def block_statistics(fmt: NumericFormat, block: Block, planes: Planes, processor: Processor) -> Statistics:
    """The statistics of one block; logical lanes and groups only."""
    match fmt:
        case DirectFormat():
            return processor.statistics_direct(planes[0], fmt.name)
        case GroupedFormat():
            codes = CodeStatistics.empty(fmt)
            processor.statistics_grouped(fmt, block.columns, grouped_planes(fmt, planes), codes)
        case BlockFormat():
            codes = CodeStatistics.empty(fmt)
            processor.statistics_nvfp4(planes[0], unswizzle(planes[1], block.rows, block.columns), codes)
        case RowFormat():
            codes = CodeStatistics.empty(fmt)
            processor.statistics_row(planes[0].reshape(block.rows, block.columns), planes[1], codes)
    return codes


def merge_statistics(item: TensorObject, parts: Sequence[tuple[Block, Statistics]]) -> Statistics | None:
    """The statistics of a whole tensor; blocks in order."""
    merged: Statistics | None = None
    for _, row in groupby(parts, key=lambda part: part[0].row):
        one: Statistics | None = None
        for block, statistics in row:
            if one is not None and isinstance(item.format, RowFormat):
                one = _same_row(one, statistics)
            else:
                one = statistics if one is None else _merge(one, statistics)
            del block
        if one is not None:
            merged = one if merged is None else _merge(merged, one)
    return merged


def _merge(left: Statistics, right: Statistics) -> Statistics:
    if isinstance(left, CodeStatistics) and isinstance(right, CodeStatistics):
        return left.merge(right)
    if isinstance(left, WordStatistics) and isinstance(right, WordStatistics):
        return left.merge(right)
    raise TypeError("statistics of two kinds belong to two tensors")


def _same_row(left: Statistics, right: Statistics) -> Statistics:
    # A row of the FP8 format is one group, however many column runs it was read in.
    if not (isinstance(left, CodeStatistics) and isinstance(right, CodeStatistics)):
        raise TypeError("a row of codes has code statistics")
    merged = left.merge(right)
    merged.tallies[0] = left.tallies[0]
    merged.tallies[1] = left.tallies[1]
    merged.tallies[2] = min(left.tallies[2], right.tallies[2])
    return merged
