"""Check `restrictions`: what a recipe demands of stored words, block by block; C4, C7, C8 and C9 of the catalogue.

A compiled scan says whether a block breaks a demand, numpy then says where. What no single block can tell is in `whole.py`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import ResourceObject, TensorObject
from ninfer_core.formats import DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels import cpu
from ninfer_core.kernels.shapes import HOLDS_LARGEST, HOLDS_MAGNITUDE, HOLDS_NEGATIVE_ZERO
from ninfer_core.layouts import row_split
from ninfer_core.layouts.base import Block
from ninfer_core.verify.faults import MAX_SAMPLES, Fault
from ninfer_core.verify.words import Planes, grouped_planes
from ninfer_core.words import BFLOAT16, BINARY32, LARGEST_ROW_SCALE, i32_value

if TYPE_CHECKING:
    from ninfer_core.recipes.inputs import Pin
    from ninfer_core.recipes.restrictions import Restriction

GROUP_SHAPE: Final = "canonical_group_shape"
ROW_SHAPE: Final = "canonical_fp8_row_shape"
UNIQUE: Final = "unique"
WORD_RULES: Final = ("stored_finite", "fp32_low16_zero", "finite_positive", "int_range")
RULES: Final = frozenset((GROUP_SHAPE, ROW_SHAPE, UNIQUE, *WORD_RULES))
"""The rules judged here; the others of a recipe are about its sources, or about two objects."""

_SMALLEST_NORMAL_ROW_SCALE: Final = 1 << BFLOAT16.fraction_bits
_LARGEST_ROW_CODE: Final = "some code of magnitude word 0x7e"
_FLOATS: Final = {"BF16": BFLOAT16, "FP32": BINARY32}


def judged(claims: "Iterable[Restriction]") -> "tuple[Restriction, ...]":
    """The claims that are about stored words, each demand once and at its strictest."""
    strictest: dict[tuple[str, int | None, int | None], Restriction] = {}
    for claim in claims:
        key = (claim.rule, claim.minimum, claim.maximum)
        if claim.rule in RULES and (key not in strictest or claim.severity == "error"):
            strictest[key] = claim
    return tuple(strictest.values())


def check_block(
    item: TensorObject, block: Block, planes: Planes, claims: "Iterable[Restriction]"
) -> list[Fault]:
    """Every demand that the words of one block break. Rows cut by the block are left to `whole.object_tasks`."""
    faults = []
    for claim in judged(claims):
        fault = None
        match item.format:
            case GroupedFormat() if claim.rule == GROUP_SHAPE:
                fault = _group_shape(item, item.format, block, planes, claim)
            case RowFormat() if claim.rule == ROW_SHAPE and block.columns == item.shape[1]:
                codes = planes[0].reshape(block.rows, block.columns)
                fault = _row_shape(item, block.row, codes, planes[1], claim)
            case DirectFormat() if claim.rule in WORD_RULES:
                fault = _words(item.format, block, planes[0], claim)
        if fault is not None:
            faults.append(fault)
    return faults


def check_pin(item: ResourceObject, sha256: str, pin: "Pin") -> Fault | None:
    """A resource against the length and the digest, in bare hex, of those that the recipe pins."""
    if pin.bytes is not None and item.bytes != pin.bytes:
        expected, found = f"{pin.bytes:,} bytes", f"{item.bytes:,} bytes"
    elif pin.sha256 is not None and sha256 != pin.sha256:
        expected, found = f"sha256 {pin.sha256}", f"sha256 {sha256}"
    else:
        return None
    message = f"the resource has {found}, the recipe pins {expected}"
    return Fault("restrictions.resource_pin", 1, {}, expected, found, message)


def _group_shape(
    item: TensorObject, fmt: GroupedFormat, block: Block, planes: Planes, claim: "Restriction"
) -> Fault | None:
    words = grouped_planes(fmt, planes)
    count, first = cpu.odd_groups(fmt, block.columns, words)
    if not count:
        return None
    row, group = divmod(first, row_split.groups_per_row(fmt, block.columns))
    per_line = row_split.K_ALIGNMENT // fmt.group
    line, place = divmod(first, per_line)
    part = words.part(fmt, line * per_line, (line + 1) * per_line)
    unpacked = row_split.unpack(fmt, row_split.K_ALIGNMENT, part.base, part.high, part.scales)
    codes = unpacked.codes[0, place * fmt.group :][: min(fmt.group, block.columns - group * fmt.group)]
    largest = int(np.abs(codes.astype(np.int16)).max())
    word = f"0x{int(words.scales[first]):04x}"
    row, group = block.row + row, block.column // fmt.group + group
    at = row * row_split.groups_per_row(fmt, item.shape[1]) + group
    scales = item.layout.planes(fmt, item.shape)[-1].span.offset
    where = {"row": row, "group": group, "byte": scales + 2 * at, "word": word, "largest": largest}
    if largest == 0:
        expected, found = "scale word 0x0000 or 0x0001 over zero codes", f"scale word {word}"
        message = f"row {row}, group {group}: every code is zero under scale word {word}"
    else:
        expected, found = f"largest code magnitude {fmt.qmax}", f"{largest}"
        message = f"row {row}, group {group}: under scale word {word} the largest code magnitude is {largest}"
    return fault(claim, count, where, expected, found, message)


def _row_shape(
    item: TensorObject,
    first_row: int,
    codes: NDArray[np.uint8],
    scales: NDArray[np.uint16],
    claim: "Restriction",
) -> Fault | None:
    masks = np.zeros(codes.shape[0], np.uint8)
    cpu.row_masks(codes, masks)
    unnatural, unsigned = odd_rows(masks, scales)
    rows = np.flatnonzero(unnatural | unsigned)
    if not rows.size:
        return None
    row = int(rows[0])
    column = int((codes[row] == 0x80).argmax()) if unsigned[row] else None
    return odd_row(item, claim, rows.size, first_row + row, int(scales[row]), column, rows + first_row)


def odd_rows(
    masks: NDArray[np.uint8], scales: NDArray[np.uint16]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows of a normal scale without the largest code, and zero rows with a sign; others are C6's or may be so."""
    normal = (scales >= _SMALLEST_NORMAL_ROW_SCALE) & (scales <= LARGEST_ROW_SCALE)
    signed = (scales == 0) & (masks & (HOLDS_NEGATIVE_ZERO | HOLDS_MAGNITUDE) == HOLDS_NEGATIVE_ZERO)
    return normal & (masks & HOLDS_LARGEST == 0), signed


def odd_row(
    item: TensorObject,
    claim: "Restriction",
    count: int,
    row: int,
    scale: int,
    column: int | None,
    rows: NDArray[np.intp],
) -> Fault:
    """The fault of `count` rows, the first of them `row`, with a negative zero in `column` or without 0x7e."""
    word = f"0x{scale:04x}"
    where: dict[str, Any] = {"row": row, "word": word}
    if column is None:
        where["byte"] = item.layout.planes(item.format, item.shape)[1].span.offset + 2 * row
        expected, found = _LARGEST_ROW_CODE, "no such code"
        message = f"row {row}: under scale word {word} no code has magnitude word 0x7e"
    else:
        where |= {"column": column, "byte": row * item.shape[1] + column, "code": "0x80"}
        expected, found = "code word 0x00", "code word 0x80"
        message = f"row {row}: the scale is zero, but column {column} stores a negative zero"
    return fault(claim, count, where, expected, found, message, {"rows": tuple(rows[:MAX_SAMPLES].tolist())})


def _words(fmt: DirectFormat, block: Block, words: NDArray[Any], claim: "Restriction") -> Fault | None:
    found = _broken(fmt, words, claim)
    if found is None:
        return None
    bad, expected = found
    places = np.flatnonzero(bad)
    if not places.size:
        return None
    index = block.column + int(places[0])
    stored = int(words[places[0]])
    word = f"0x{stored:0{fmt.word_bits // 4}x}"
    where: dict[str, Any] = {"index": index, "byte": index * (fmt.word_bits // 8)}
    where |= {"value": i32_value(stored)} if fmt.name == "I32" else {"word": word}
    shown = str(i32_value(stored)) if fmt.name == "I32" else word
    message = f"element {index} is {shown}, the recipe asks for {expected}"
    few = tuple((places[:MAX_SAMPLES] + block.column).tolist())
    return fault(claim, places.size, where, expected, shown, message, {"elements": few})


def _broken(
    fmt: DirectFormat, words: NDArray[Any], claim: "Restriction"
) -> tuple[NDArray[np.bool_], str] | None:
    """Which words break a rule and what it asks for; None when none does, or the rule says nothing of the format."""
    if claim.rule == "int_range" and fmt.name == "I32":
        values = words.view(np.int32)
        low = -(1 << 31) if claim.minimum is None else claim.minimum
        high = (1 << 31) - 1 if claim.maximum is None else claim.maximum
        return (values < low) | (values > high), f"{low} to {high}"
    if fmt.name not in _FLOATS:
        return None
    largest = _FLOATS[fmt.name].largest_finite
    match claim.rule:
        case "stored_finite" if cpu.largest_magnitude(words) > largest:
            return words & (_FLOATS[fmt.name].sign_bit - 1) > largest, "a finite word"
        case "fp32_low16_zero" if fmt.word_bits == 32 and cpu.used_bits(words) & 0xFFFF:
            return words & 0xFFFF != 0, "sixteen low bits of zero"
        case "finite_positive":
            return (words == 0) | (words > largest), "a finite word above zero"
    return None


def fault(
    claim: "Restriction",
    count: int,
    where: dict[str, Any],
    expected: str,
    found: str,
    message: str,
    samples: dict[str, tuple[int, ...]] | None = None,
) -> Fault:
    """A fault under the code of the claim's rule, as severe as the claim."""
    code = f"restrictions.{claim.rule}"
    return Fault(code, count, where, expected, found, message, samples or {}, claim.severity)
