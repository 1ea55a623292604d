"""Check `parity` on one block: what the recipe makes of the source against what is stored, word for word.

Direct words, codes, scales and divisors are compared by their bits, padding included: the derived payload has zeros
there. Words of a foreign producer cannot be derived; its bound is tried on the values instead (`bounds`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.derive import Derivation, Refused, Source, read_block
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.processor import Processor
from ninfer_core.kernels.values import SOURCE_DTYPES, CodeStatistics, ErrorSums
from ninfer_core.layouts.base import Block
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.producers import is_evaluable
from ninfer_core.recipes.values import CastRefused
from ninfer_core.verify import bounds, differences, global_scale
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.reconstructed import of_bundle, reconstructed
from ninfer_core.verify.words import Planes, check_block, grouped_planes
from ninfer_core.words import narrow_binary32

Words = NDArray[Any]

_STORED_DTYPES = {"BF16": "BF16", "FP32": "F32"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Faults of a block, error sums where they could be formed, and whether parity reached its end."""

    faults: Sequence[Fault]
    sums: ErrorSums | None
    complete: bool = True


def compare_block(
    item: TensorObject, block: Block, planes: Planes, derivation: Derivation, tried: Source | None = None
) -> Comparison:
    """Compare one block with its source; `tried` is one that a survey had no answer for.

    Raises: CutShort, CannotRead when the source cannot be read.
    """
    plan, processor = derivation.plan, derivation.processor
    if plan.encode is None:
        return _foreign(item, block, planes, plan, processor)
    source = tried or derivation.grouped_source(block)
    if source is not None and isinstance(item.format, GroupedFormat):
        if tried is None:
            stored = grouped_planes(item.format, planes)
            sums = processor.parity_grouped(item.format, block.columns, stored, source.words, source.dtype)
            if sums is not None:
                return Comparison([], sums)
        derived = derivation.grouped(item.format, block, source)
    else:
        derived = derivation.block(block)
    if isinstance(derived, Refused):
        return Comparison(_refusal(derived), None, complete=False)
    if isinstance(plan.value, Bundle):
        return _bundle(item, block, planes, derived.planes, plan.value, processor)
    faults: list[Fault] = []
    if not _same(planes, derived.planes, processor):
        match item.format:
            case GroupedFormat():
                faults = differences.grouped(item.format, item.shape, block, planes, derived.planes)
            case RowFormat():
                faults = differences.fp8_rows(item.shape, block, planes, derived.planes, copied=False)
            case DirectFormat():
                ranked = plan.template.get("op") == "ranked_token_ids"
                faults = differences.direct(item.shape, block, planes[0], derived.planes[0], ids=ranked)
            case BlockFormat():
                raise TypeError(f"no encoder makes {item.format.name}")
    return Comparison(faults, _sums(item, block, planes, derived.source, derived.dtype, processor))


def survey_block(
    item: TensorObject, block: Block, planes: Planes, source: Source, processor: Processor
) -> tuple[CodeStatistics, ErrorSums] | None:
    """Statistics and error sums of a grouped block that is what its source is encoded as, every word of it legal.

    None for any other block: what is wrong is found step by step.
    """
    if not isinstance(item.format, GroupedFormat):
        return None
    codes, stored = CodeStatistics.empty(item.format), grouped_planes(item.format, planes)
    sums = processor.survey_grouped(item.format, block.columns, stored, source.words, source.dtype, codes)
    return None if sums is None else (codes, sums)


def gap_faults(plan: TensorPlan, offset: int, content: NDArray[np.uint8]) -> list[Fault]:
    """Bytes between two planes of an object against the derived payload, which has zeros there.

    `offset` is that of the first byte of `content` inside the object.
    """
    count = int(np.count_nonzero(content))
    if count == 0 or plan.encode is None:
        return []
    place = int((content != 0).argmax())
    found = f"0x{content[place]:02x}"
    where = {"byte": offset + place, "stored": found}
    message = f"byte {offset + place:,} of the tensor lies between two planes and is {found}"
    copied = isinstance(plan.value, Bundle)
    code = "parity.copied_padding_mismatch" if copied else "parity.padding_mismatch"
    return [Fault(code, count, where, "0x00", found, message)]


def source_faults(faults: Sequence[Fault]) -> list[Fault]:
    """What `check_block` says of the words of a quantized source, as faults of that source."""
    return [
        replace(
            fault,
            code="source.bundle_word_invalid",
            where={key: value for key, value in fault.where.items() if key != "byte"},
            message=f"the quantized source holds a word that its format does not allow: {fault.message}",
        )
        for fault in faults
    ]


def _same(stored: Planes, derived: Sequence[Words], processor: Processor) -> bool:
    return all(processor.same_bytes(have, want) for have, want in zip(stored, derived, strict=True))


def _refusal(refused: Refused) -> list[Fault]:
    if not refused.here:
        return []
    where = refused.where
    if refused.kind == "cast_refused":
        message = f"element {where['index']}: the recipe's cast refuses the source word: {refused.reason}"
        expected, code = "a source that can be cast", "parity.cast_refused"
    else:
        place = ", ".join(f"{key} {where[key]}" for key in ("row", "group") if key in where)
        message = f"{place}: the encoder profile refuses the source, {refused.reason}"
        expected, code = "a source the profile takes", "parity.source_refused"
    return [Fault(code, 1, where, expected, refused.reason, message)]


def _bundle(
    item: TensorObject,
    block: Block,
    planes: Planes,
    derived: Sequence[Words],
    bundle: Bundle,
    processor: Processor,
) -> Comparison:
    faults = source_faults(check_block(item, block, derived, processor))
    if isinstance(item.format, BlockFormat):
        if block.row == block.column == 0:
            faults += global_scale.compare(int(planes[2][0]), int(derived[2][0]), bundle)
        if not _same(planes[:2], derived[:2], processor):
            faults += differences.nvfp4(item.shape, block, planes, derived)
    elif not _same(planes, derived, processor):
        faults += differences.fp8_rows(item.shape, block, planes, derived, copied=True)
    source = stored = reconstructed(item.format, block, derived, processor)
    if not _same(planes, derived, processor):
        stored = reconstructed(item.format, block, planes, processor)
    sums = None if source is None or stored is None else processor.error_sums_words(source, stored, "F32")
    return Comparison(faults, sums)


def _sums(
    item: TensorObject,
    block: Block,
    planes: Planes,
    source: Words | None,
    dtype: str | None,
    processor: Processor,
) -> ErrorSums | None:
    """Error sums of stored values against plain source words; None where either has no values that are compared."""
    if source is None or dtype is None or dtype not in SOURCE_DTYPES:
        return None
    if isinstance(item.format, GroupedFormat):
        stored = grouped_planes(item.format, planes)
        return processor.error_sums_grouped(item.format, block.columns, stored, source, dtype)
    direct = isinstance(item.format, DirectFormat)
    stored_dtype = _STORED_DTYPES.get(item.format.name) if direct else "F32"
    words = planes[0] if direct else reconstructed(item.format, block, planes, processor)
    if stored_dtype is None or words is None:
        return None
    if dtype == "F64":
        source, dtype = narrow_binary32(source), "F32"
    return processor.error_sums_words(source, words, dtype, stored_dtype)


def _foreign(
    item: TensorObject, block: Block, planes: Planes, plan: TensorPlan, processor: Processor
) -> Comparison:
    """Legality is check `values`; here is what the bound says of single values, and the sums for the rest."""
    words: Words | None
    if isinstance(plan.value, Bundle):
        words, dtype = of_bundle(plan.value, block, processor), "F32"
    else:
        width = item.layout.matrix(item.format, item.shape)[1]
        try:
            words, dtype = read_block(plan.value, width, block), plan.value.dtype
        except CastRefused as refused:
            where = {"index": refused.element, "word": f"0x{refused.word:x}"}
            return Comparison(_refusal(Refused("cast_refused", where, refused.reason)), None, complete=False)
    sums = _sums(item, block, planes, words, dtype, processor)
    if not is_evaluable(plan):
        return Comparison([], sums)
    stored = _STORED_DTYPES.get(item.format.name)
    values = planes[0] if stored is not None else reconstructed(item.format, block, planes, processor)
    if words is None or values is None:
        return Comparison([], None, complete=False)  # no divisor, no values: the check of words says so
    pair = bounds.Pair(words.reshape(-1), dtype, values.reshape(-1), stored or "F32")
    return Comparison(bounds.block_faults(item, block, planes, plan, pair), sums)
