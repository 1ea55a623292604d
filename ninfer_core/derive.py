"""What a recipe makes of its sources, block by block: the words that `convert` writes and parity compares with."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1
from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.processor import Processor, cpu_processor
from ninfer_core.kernels.values import EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts.base import BLOCK_WEIGHTS, Block
from ninfer_core.layouts.block_scale import swizzle
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.values import CastRefused, Value
from ninfer_core.words import BINARY32

Words = NDArray[Any]

# Wide rows whose largest magnitude is remembered: the threads of a pool work near each other.
_KEPT: Final = 4
_WHAT: Final = {
    "source_not_finite": "a source value is not finite",
    "scale_overflow": "the scale does not fit binary16",
    "scale_underflow": "the scale is at most 2^-128 and has no finite reciprocal",
}


@dataclass(frozen=True, slots=True)
class Derived:
    """One block as it must be stored, plane by plane, and the `source` words it was encoded from.

    `dtype` says what `source` holds; a copied bundle has none.
    """

    planes: Sequence[Words]
    source: Words | None
    dtype: str | None
    rescued: int = 0
    clamped: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Words [rows, columns] of a block, and what they are."""

    words: Words
    dtype: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A block that cannot be made: a cast or the encoder refuses the source at `where`.

    `here` is false where another block of the same row has the place and says so.
    """

    kind: Literal["cast_refused", "source_not_finite", "scale_overflow", "scale_underflow"]
    where: dict[str, Any]
    reason: str
    here: bool = True


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest binary32 magnitude word of a row; the column and source word of the first that is not finite."""

    magnitude: int
    column: int | None
    word: int


@dataclass(slots=True)
class _Row:
    lock: Lock = field(default_factory=Lock)
    largest: _Largest | None = None


class Derivation:
    """The blocks of one object, asked for in any order, by several threads at a time.

    Every block stands for itself. All that is kept is the largest magnitude of the last few rows that are wider than a
    block: their scale needs the whole row, which is then read once and not again for each of its blocks.
    """

    __slots__ = ("_lock", "_rows", "plan", "processor")

    def __init__(self, plan: TensorPlan, processor: Processor | None = None) -> None:
        """Blocks are encoded on `processor`, on this machine's own without one."""
        self.plan = plan
        self.processor = processor or cpu_processor()
        self._lock = Lock()
        self._rows: OrderedDict[int, _Row] = OrderedDict()

    def block(self, block: Block) -> Derived | Refused:
        """One block. Raises: CutShort, CannotRead when a source cannot be read."""
        plan = self.plan
        if isinstance(plan.value, Bundle):
            return Derived(bundle_planes(plan.value, block), None, None)
        words = self._words(plan.value, block)
        return words if isinstance(words, Refused) else self._made(plan.value, block, words)

    def grouped_source(self, block: Block) -> Source | None:
        """What a block of a grouped format is encoded from; None for another, and where a cast refuses it.

        Raises: CutShort, CannotRead.
        """
        plan = self.plan
        if plan.encode is None or isinstance(plan.value, Bundle) or not isinstance(plan.fmt, GroupedFormat):
            return None
        words = self._words(plan.value, block)
        return None if isinstance(words, Refused) else Source(words, plan.value.dtype)

    def grouped(self, fmt: GroupedFormat, block: Block, source: Source) -> Derived | Refused:
        """What `block` gives, for a source that is read already."""
        return _grouped(self.processor, fmt, block, source.words, source.dtype)

    def _words(self, value: Value, block: Block) -> Words | Refused:
        width = self.plan.layout.matrix(self.plan.fmt, self.plan.shape)[1]
        try:
            return read_block(value, width, block)
        except CastRefused as refused:
            return _cast_refused(refused, width, block)

    def _made(self, value: Value, block: Block, words: Words) -> Derived | Refused:
        plan = self.plan
        if plan.encode == MAXABS_BF16S_RECIP_E4M3FN_RNE_V1.name:
            width = plan.layout.matrix(plan.fmt, plan.shape)[1]
            try:
                return self._rows_of_fp8(value, width, block, words)
            except CastRefused as refused:  # of another part of the row
                return _cast_refused(refused, width, block)
        if isinstance(plan.fmt, GroupedFormat):
            return _grouped(self.processor, plan.fmt, block, words, value.dtype)
        return Derived((words.reshape(-1),), words, value.dtype)

    def _rows_of_fp8(self, value: Value, width: int, block: Block, words: Words) -> Derived | Refused:
        whole = block.columns == width
        wide = None if whole else self._largest(value, width, block.row)
        largest = (
            self.processor.largest_magnitudes(words, value.dtype)
            if wide is None
            else np.array([wide.magnitude], np.uint32)
        )
        codes, scales = np.empty(words.size, np.uint8), np.empty(block.rows, np.uint16)
        outcome = self.processor.encode_rows(words, value.dtype, largest, codes, scales)
        if isinstance(outcome, EncodeCounts):
            return Derived((codes, scales), words, value.dtype, clamped=outcome.clamped)
        where: dict[str, Any] = {"row": block.row + outcome.row}
        if outcome.lane is not None:
            where["column"] = block.column + outcome.lane
        where["word"] = f"0x{outcome.word:x}"
        here = outcome.lane is not None or block.column == 0
        if wide is not None and wide.column is not None:
            where |= {"column": wide.column, "word": f"0x{wide.word:x}"}
            here = block.column <= wide.column < block.column + block.columns
        return Refused(outcome.kind, where, _WHAT[outcome.kind], here)

    def _largest(self, value: Value, width: int, row: int) -> _Largest:
        with self._lock:
            entry = self._rows.setdefault(row, _Row())
            self._rows.move_to_end(row)
            while len(self._rows) > _KEPT:
                self._rows.popitem(last=False)
        with entry.lock:  # one thread reads the row, the others wait for what it finds
            if entry.largest is None:
                entry.largest = _largest_of_row(self.processor, value, row * width, width)
            return entry.largest


def _cast_refused(refused: CastRefused, width: int, block: Block) -> Refused:
    first = block.row * width + block.column
    here = first <= refused.element < first + (block.rows - 1) * width + block.columns
    where = {"index": refused.element, "word": f"0x{refused.word:x}"}
    return Refused("cast_refused", where, refused.reason, here)


def _largest_of_row(processor: Processor, value: Value, first: int, width: int) -> _Largest:
    magnitude, column, word = 0, None, 0
    for begin in range(0, width, BLOCK_WEIGHTS):
        words = value.read(first + begin, first + min(begin + BLOCK_WEIGHTS, width))
        top = int(processor.largest_magnitudes(words.reshape(1, -1), value.dtype)[0])
        if top >= BINARY32.exponent_mask and column is None:
            lanes = processor.largest_magnitudes(words.reshape(-1, 1), value.dtype)
            place = int((lanes >= BINARY32.exponent_mask).argmax())
            column, word = begin + place, int(words[place])
        magnitude = max(magnitude, top)
    return _Largest(magnitude, column, word)


def _grouped(
    processor: Processor, fmt: GroupedFormat, block: Block, words: Words, dtype: str
) -> Derived | Refused:
    planes = GroupedPlanes.empty(fmt, block.rows, block.columns)
    outcome = processor.encode(fmt, words, dtype, planes)
    if isinstance(outcome, EncodeFault):
        group = block.column // fmt.group + outcome.group
        where: dict[str, Any] = {"row": block.row + outcome.row, "group": group}
        if outcome.lane is not None:
            where |= {"lane": outcome.lane, "column": group * fmt.group + outcome.lane}
        where["word"] = f"0x{outcome.word:x}"
        return Refused(outcome.kind, where, _WHAT[outcome.kind])
    stored = (planes.base, planes.high, planes.scales) if planes.high.size else (planes.base, planes.scales)
    return Derived(stored, words, dtype, outcome.rescued, outcome.clamped)


def read_block(value: Value, width: int, block: Block) -> Words:
    """Words [rows, columns] of a block of a value whose matrix has `width` columns.

    Raises: CutShort, CannotRead, CastRefused.
    """
    first = block.row * width + block.column
    if block.columns == width or block.rows == 1:
        return value.read(first, first + block.rows * block.columns).reshape(block.rows, block.columns)
    rows = range(first, first + block.rows * width, width)
    return np.stack([value.read(begin, begin + block.columns) for begin in rows])


def bundle_planes(bundle: Bundle, block: Block) -> tuple[Words, ...]:
    """The words of a block of a quantized source, as the layout of its format stores them; legal or not.

    Raises: CutShort, CannotRead.
    """
    codes = read_share(bundle.codes, bundle.shape[1], block).reshape(-1)
    if bundle.divisor is None:
        return codes, bundle.scales.read(block.row, block.row + block.rows).reshape(-1)
    scales = read_share(bundle.scales, bundle.shape[1], block)
    return codes, swizzle(np.ascontiguousarray(scales)), bundle.divisor.read(0, 1).reshape(-1)


def read_share(component: Value, width: int, block: Block) -> Words:
    """What a component of a bundle, with one word for some columns, holds of a block of a matrix of `width` columns.

    Raises: CutShort, CannotRead.
    """
    words = component.shape[1]
    per_word = width // words
    own = Block(block.row, block.rows, block.column // per_word, block.columns // per_word)
    return read_block(component, words, own)
