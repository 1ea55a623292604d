"""Check `parity` on one block: what the recipe makes of the source against what is stored, word for word.

Direct words are compared by their bits; grouped codes and scales with a full re-encode. Only logical lanes and
groups count: padding is the business of check `layout`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import EncodeFault, ErrorSums, GroupedPlanes
from ninfer_core.layouts import row_split
from ninfer_core.layouts.base import Block
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.values import CastRefused
from ninfer_core.verify.faults import MAX_SAMPLES, Fault
from ninfer_core.verify.words import Planes, grouped_planes


@dataclass(frozen=True, slots=True)
class Comparison:
    """Faults of a block, error sums where they could be formed, and whether every word was compared."""

    faults: Sequence[Fault]
    sums: ErrorSums | None
    complete: bool = True


def compare_block(item: TensorObject, block: Block, planes: Planes, plan: TensorPlan) -> Comparison:
    """Compare one block with its source. Raises: CutShort, CannotRead when the source cannot be read."""
    k = item.layout.matrix(item.format, item.shape)[1]
    begin = block.row * k + block.column
    try:
        words = plan.value.read(begin, begin + block.rows * block.columns)
    except CastRefused as refusal:
        where = {"index": refusal.element, "word": f"0x{refusal.word:x}"}
        message = f"element {refusal.element}: the recipe's cast refuses the source word: {refusal.reason}"
        return Comparison(
            [Fault("parity.cast_refused", 1, where, "a source that can be cast", refusal.reason, message)],
            None,
            False,
        )
    if isinstance(item.format, GroupedFormat):
        return _grouped(item.format, block, grouped_planes(item.format, planes), words, plan.value.dtype)
    return _direct(block, planes[0], words, plan.value.dtype)


def _direct(block: Block, stored: NDArray[Any], derived: NDArray[Any], dtype: str) -> Comparison:
    faults = []
    if not cpu.same_bytes(stored, derived):
        places = np.flatnonzero(stored != derived)
        first = int(places[0])
        digits = stored.dtype.itemsize * 2
        have, want = f"0x{stored[first]:0{digits}x}", f"0x{derived[first]:0{digits}x}"
        index = block.column + first
        faults.append(
            Fault(
                "parity.word_mismatch",
                places.size,
                {"index": index, "stored": have, "derived": want},
                want,
                have,
                f"element {index}: stored word {have}, the source gives {want}",
                {"elements": tuple((places[:MAX_SAMPLES] + block.column).tolist())},
            )
        )
    sums = None if dtype == "I32" else cpu.error_sums_words(derived, stored, dtype)
    return Comparison(faults, sums)


def _grouped(
    fmt: GroupedFormat, block: Block, stored: GroupedPlanes, words: NDArray[Any], dtype: str
) -> Comparison:
    source = words.reshape(block.rows, block.columns)
    fresh = GroupedPlanes.empty(fmt, block.rows, block.columns)
    outcome = cpu.encode(fmt, source, dtype, fresh)
    if isinstance(outcome, EncodeFault):
        row, group = block.row + outcome.row, block.column // fmt.group + outcome.group
        what = (
            "a source value is not finite"
            if outcome.kind == "source_not_finite"
            else "the scale does not fit binary16"
        )
        where = {"row": row, "group": group, "word": f"0x{outcome.word:x}"}
        message = f"row {row}, group {group}: the encoder profile refuses the source, {what}"
        return Comparison(
            [Fault("parity.source_refused", 1, where, "a source the profile takes", what, message)],
            None,
            False,
        )
    sums = cpu.error_sums_grouped(fmt, block.columns, stored, source, dtype)
    if cpu.same_planes(stored, fresh):
        return Comparison([], sums)
    return Comparison(_differences(fmt, block, _words(fmt, block, stored), _words(fmt, block, fresh)), sums)


def _words(fmt: GroupedFormat, block: Block, planes: GroupedPlanes) -> row_split.GroupedWords:
    words = row_split.unpack(fmt, block.columns, planes.base, planes.high, planes.scales)
    groups = -(-block.columns // fmt.group)
    return row_split.GroupedWords(words.codes[:, : block.columns], words.scales[:, :groups])


def _differences(
    fmt: GroupedFormat, block: Block, stored: row_split.GroupedWords, derived: row_split.GroupedWords
) -> list[Fault]:
    faults = []
    scales = stored.scales != derived.scales
    if scales.any():
        row, group = divmod(int(scales.argmax()), scales.shape[1])
        have, want = f"0x{stored.scales[row, group]:04x}", f"0x{derived.scales[row, group]:04x}"
        place = {"row": block.row + row, "group": block.column // fmt.group + group}
        message = (
            f"row {place['row']}, group {place['group']}: stored scale word {have}, the profile gives {want}"
        )
        where = {**place, "stored": have, "derived": want}
        faults.append(
            Fault(
                "parity.scale_mismatch", int(scales.sum()), where, want, have, message, _rows(scales, block)
            )
        )
    codes = stored.codes != derived.codes
    if codes.any():
        row, column = divmod(int(codes.argmax()), codes.shape[1])
        code_have, code_want = int(stored.codes[row, column]), int(derived.codes[row, column])
        group, lane = divmod(block.column + column, fmt.group)
        place = {"row": block.row + row, "group": group, "lane": lane, "column": block.column + column}
        message = f"row {place['row']}, group {group}, lane {lane}: stored code {code_have}, the profile gives {code_want}"
        where = {**place, "stored": code_have, "derived": code_want}
        faults.append(
            Fault(
                "parity.code_mismatch",
                int(codes.sum()),
                where,
                str(code_want),
                str(code_have),
                message,
                _rows(codes, block),
            )
        )
    return faults


def _rows(mask: NDArray[np.bool_], block: Block) -> dict[str, tuple[int, ...]]:
    rows = np.flatnonzero(mask.any(axis=1))[:MAX_SAMPLES] + block.row
    return {"rows": tuple(rows.tolist())}
