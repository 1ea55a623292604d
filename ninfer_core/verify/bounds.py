"""Objects of a foreign producer: their words cannot be derived, but what is promised of their values can be tried.

Values are compared in binary64. What is not finite, or cannot be ordered, exceeds every bound.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.layouts.base import Block
from ninfer_core.layouts.block_scale import unswizzle
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.producers import is_evaluable
from ninfer_core.verify.faults import MAX_SAMPLES, Fault
from ninfer_core.verify.metrics import error_metrics
from ninfer_core.verify.words import Planes
from ninfer_core.words import expand_bf16, expand_binary16, expand_e4m3fn

Values = NDArray[np.float64]

_PIECE: Final = 1 << 16  # values at a time


@dataclass(frozen=True, slots=True)
class Pair:
    """Source and stored words of a block, flat, each with the name of its source type."""

    source: NDArray[Any]
    source_dtype: str
    stored: NDArray[Any]
    stored_dtype: str


@dataclass(frozen=True, slots=True)
class _Scales:
    """The scales of a block [rows, groups], each over so many columns."""

    values: Values
    group: int

    def of(self, index: NDArray[np.int64], block: Block) -> Values:
        """The scale of single values of the block, given by their flat places."""
        rows, columns = np.divmod(index, block.columns)
        scales: Values = self.values[rows, columns // self.group]
        return scales


def block_faults(
    item: TensorObject, block: Block, planes: Planes, plan: TensorPlan, pair: Pair
) -> list[Fault]:
    """Values of a block beyond the bound of single values, as at most one fault."""
    bound = None if plan.producer is None else plan.producer.bound
    if bound is None or (bound.max_abs_error is None and bound.max_scale_error is None):
        return []
    most = bound.max_scale_error
    scales = None if most is None else _scales(item, block, planes)
    count, first, rows = 0, -1, dict[int, None]()
    for begin in range(0, pair.source.size, _PIECE):
        index = np.arange(begin, min(begin + _PIECE, pair.source.size))
        x, y = _values(pair.source[index], pair.source_dtype), _values(pair.stored[index], pair.stored_dtype)
        with np.errstate(invalid="ignore"):
            error = np.abs(x - y)
        beyond = np.zeros(index.size, np.bool_)
        if bound.max_abs_error is not None:
            beyond |= ~(error <= bound.max_abs_error)
        if scales is not None and most is not None:
            with np.errstate(invalid="ignore"):
                beyond |= ~(error <= most * scales.of(index, block))
        places = index[beyond]
        if places.size:
            count += places.size
            first = int(places[0]) if first < 0 else first
            if len(rows) < MAX_SAMPLES:
                rows |= dict.fromkeys((np.unique(places // block.columns) + block.row).tolist())
    if count == 0:
        return []
    return [_fault(block, plan, pair, scales, first, count, tuple(rows)[:MAX_SAMPLES])]


def overall_faults(plan: TensorPlan, sums: ErrorSums | None) -> list[Fault]:
    """What the merged error sums of a whole object say of the bound's `nmse` and `min_sqnr_db`.

    `sums` is None where there are none: then nothing is proved, and a stated bound counts as exceeded.
    """
    bound = None if plan.producer is None else plan.producer.bound
    if bound is None or not is_evaluable(plan):
        return []
    faults = []
    metrics = error_metrics(sums, "no error sums could be formed")
    if bound.nmse is not None:
        nmse = _nmse(sums)
        if nmse is None or not nmse <= bound.nmse:
            faults.append(
                _overall("nmse", f"at most {bound.nmse:g}", "undefined" if nmse is None else f"{nmse:g}")
            )
    if bound.min_sqnr_db is not None:
        sqnr = metrics["sqnr_db"]
        exact = sums is not None and sums.count > 0 and sums.squared_error == 0
        if not exact and (sqnr is None or not sqnr >= bound.min_sqnr_db):
            found = "undefined" if sqnr is None else f"{sqnr:.4g} dB"
            faults.append(_overall("min_sqnr_db", f"at least {bound.min_sqnr_db:g} dB", found))
    # Both measures are one claim about the whole tensor: the first that fails is shown.
    return faults[:1]


def _nmse(sums: ErrorSums | None) -> float | None:
    """Squared error over squared source; None where neither a number nor zero error is at hand."""
    if sums is None or not np.isfinite(sums.squared_error) or not np.isfinite(sums.source_squares):
        return None
    if sums.squared_error == 0:
        return 0.0
    return sums.squared_error / sums.source_squares if sums.source_squares > 0 else None


def _overall(measure: str, expected: str, found: str) -> Fault:
    message = f"{measure} over the whole tensor is {found}, the producer states {expected}"
    return Fault("parity.bound_exceeded_overall", 1, {"measure": measure}, expected, found, message)


def _fault(
    block: Block,
    plan: TensorPlan,
    pair: Pair,
    scales: _Scales | None,
    first: int,
    count: int,
    rows: tuple[int, ...],
) -> Fault:
    bound = plan.producer.bound if plan.producer is not None else None
    index = np.array([first])
    x, y = (
        float(_values(words[index], dtype)[0])
        for words, dtype in ((pair.source, pair.source_dtype), (pair.stored, pair.stored_dtype))
    )
    error = abs(x - y)
    limit = None if bound is None else bound.max_abs_error
    measure, found = "max_abs_error", f"{error:g}"
    if scales is not None and bound is not None and (limit is None or error <= limit):
        scale = float(scales.of(index, block)[0])
        measure, limit = "max_scale_error", bound.max_scale_error
        found = f"{error / scale:g} scales" if scale else f"{error:g} under a zero scale"
    where: dict[str, Any] = {"measure": measure, "source": repr(x), "value": repr(y)}
    if isinstance(plan.fmt, DirectFormat):
        place = {"index": block.column + first}
        samples = {}
    else:
        row, column = divmod(first, block.columns)
        place = {"row": block.row + row, "column": block.column + column}
        samples = {"rows": rows}
    named = ", ".join(f"{key} {value}" for key, value in place.items())
    message = f"{named}: {y:g} for {x:g}, {measure} is {found}"
    return Fault("parity.bound_exceeded", count, place | where, f"at most {limit:g}", found, message, samples)


def _values(words: NDArray[Any], dtype: str) -> Values:
    match dtype:
        case "BF16":
            wide = expand_bf16(words)
        case "F16":
            wide = expand_binary16(words)
        case "F64":
            return words.astype(np.uint64, copy=False).view(np.float64)
        case _:
            wide = words.astype(np.uint32, copy=False)
    return wide.view(np.float32).astype(np.float64)


def _scales(item: TensorObject, block: Block, planes: Planes) -> _Scales:
    match item.format:
        case GroupedFormat():
            return _Scales(_values(planes[-1], "F16").reshape(block.rows, -1), item.format.group)
        case RowFormat():
            return _Scales(_values(planes[1], "BF16").reshape(block.rows, 1), block.columns)
        case BlockFormat():
            words = expand_e4m3fn(unswizzle(planes[1], block.rows, block.columns))
            with np.errstate(divide="ignore", invalid="ignore"):
                return _Scales(_values(words, "F32") / _values(planes[2][:1], "F32"), item.format.group)
        case DirectFormat():
            raise ValueError(f"{item.format.name} has no scales")
