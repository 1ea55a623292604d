"""Where the stored words of a block differ from the derived ones; runs on blocks that do differ, so it may be plain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.layouts import row_split
from ninfer_core.layouts.base import Block, Shape, elements
from ninfer_core.layouts.block_scale import unpack_codes, unswizzle
from ninfer_core.verify.faults import MAX_SAMPLES, Fault
from ninfer_core.verify.rowmaps import RowMap, row_map
from ninfer_core.verify.words import Planes, grouped_planes

Words = NDArray[Any]


def direct(shape: Shape, block: Block, stored: Words, derived: Words, ids: bool) -> list[Fault]:
    """Differing words of a run of elements; `ids` when they are ranked ids."""
    differs = stored != derived
    places = np.flatnonzero(differs)
    first = int(places[0])
    index = block.column + first
    samples = {"elements": tuple((places[:MAX_SAMPLES] + block.column).tolist())}
    if ids:
        have, want = (str(int(words[first : first + 1].view(np.int32)[0])) for words in (stored, derived))
        message = f"element {index}: stored id {have}, the ranking gives {want}"
        code = "parity.id_mismatch"
    else:
        digits = stored.dtype.itemsize * 2
        have, want = f"0x{stored[first]:0{digits}x}", f"0x{derived[first]:0{digits}x}"
        rows = _rows_of_elements(shape, block, differs, stored, derived)
        samples |= rows.samples
        message = f"element {index}: stored word {have}, the source gives {want}{rows.note}"
        code = "parity.word_mismatch"
    where = {"index": index, "stored": have, "derived": want}
    return [Fault(code, places.size, where, want, have, message, samples)]


def _rows_of_elements(
    shape: Shape, block: Block, differs: NDArray[np.bool_], stored: Words, derived: Words
) -> RowMap:
    """Whole rows of the leading axis within a run of elements."""
    if len(shape) < 2:
        return RowMap()
    width = elements(shape[1:])
    first = -(-block.column // width)
    rows = (block.column + block.columns) // width - first
    if rows < 2:
        return RowMap()
    begin = first * width - block.column
    part = slice(begin, begin + rows * width)
    counts = differs[part].reshape(rows, width).sum(axis=1)
    return row_map(counts, width, first, shape[0], _bytes(stored[part], rows), _bytes(derived[part], rows))


def _bytes(words: Words, rows: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(words).reshape(rows, -1).view(np.uint8)


def grouped(fmt: GroupedFormat, shape: Shape, block: Block, stored: Planes, derived: Planes) -> list[Fault]:
    """Codes, scales and padding of a grouped block."""
    have, want = _unpacked(fmt, block, stored), _unpacked(fmt, block, derived)
    groups = -(-block.columns // fmt.group)
    codes = have.codes[:, : block.columns] != want.codes[:, : block.columns]
    scales = have.scales[:, :groups] != want.scales[:, :groups]
    faults = []
    if scales.any():
        row, group = _first(scales)
        faults.append(
            _scale("parity.scale_mismatch", block, scales, (row, group), fmt.group, have.scales, want.scales)
        )
    if codes.any():
        row, column = _first(codes)
        group, lane = divmod(block.column + column, fmt.group)
        place = {"row": block.row + row, "group": group, "lane": lane, "column": block.column + column}
        pair = int(have.codes[row, column]), int(want.codes[row, column])
        whole = np.concatenate([_rows(plane, block) for plane in stored], axis=1)
        fresh = np.concatenate([_rows(plane, block) for plane in derived], axis=1)
        rows = row_map(codes.sum(axis=1), block.columns, block.row, shape[0], whole, fresh)
        message = f"row {place['row']}, group {group}, lane {lane}: stored code {pair[0]}, the profile gives {pair[1]}"
        where = {**place, "stored": pair[0], "derived": pair[1]}
        samples = {**_sample(codes, block), **rows.samples}
        faults.append(
            Fault(
                "parity.code_mismatch",
                int(codes.sum()),
                where,
                str(pair[1]),
                str(pair[0]),
                message + rows.note,
                samples,
            )
        )
    return [*faults, *_padding(fmt, block, have)]


def _unpacked(fmt: GroupedFormat, block: Block, planes: Planes) -> row_split.GroupedWords:
    whole = grouped_planes(fmt, planes)
    return row_split.unpack(fmt, block.columns, whole.base, whole.high, whole.scales)


def _padding(fmt: GroupedFormat, block: Block, have: row_split.GroupedWords) -> list[Fault]:
    """Padding that is not zero; the derived payload has zeros there."""
    lanes = have.codes[:, block.columns :] != 0
    groups = -(-block.columns // fmt.group)
    scales = have.scales[:, groups:] != 0
    count = int(lanes.sum()) + int(scales.sum())
    if count == 0:
        return []
    if lanes.any():
        row, beyond = _first(lanes)
        column = block.column + block.columns + beyond
        group, lane = divmod(column, fmt.group)
        found = str(int(have.codes[row, block.columns + beyond]))
        where: dict[str, Any] = {"row": block.row + row, "group": group, "lane": lane, "column": column}
        message = f"padding lane at row {where['row']}, column {column} holds code {found}"
    else:
        row, beyond = _first(scales)
        group = block.column // fmt.group + groups + beyond
        found = f"0x{have.scales[row, groups + beyond]:04x}"
        where = {"row": block.row + row, "group": group}
        message = f"group {group} of row {where['row']} is padding and has scale word {found}"
    where["stored"] = found
    return [Fault("parity.padding_mismatch", count, where, "zero", found, message)]


def fp8_rows(shape: Shape, block: Block, stored: Planes, derived: Planes, copied: bool) -> list[Fault]:
    """Codes and scales of FP8 rows."""
    faults = []
    scales = (stored[1] != derived[1])[:, None]
    if scales.any() and block.column == 0:
        place = (int(scales.argmax()), 0)
        code = "parity.copied_scale_mismatch" if copied else "parity.scale_mismatch"
        faults.append(_scale(code, block, scales, place, None, stored[1][:, None], derived[1][:, None]))
    have, want = (planes[0].reshape(block.rows, block.columns) for planes in (stored, derived))
    rows = [np.concatenate([_rows(plane, block) for plane in planes], axis=1) for planes in (stored, derived)]
    return [*faults, *_codes(shape, block, have, want, copied, None, rows)]


def nvfp4(shape: Shape, block: Block, stored: Planes, derived: Planes) -> list[Fault]:
    """Codes and scales of a copied NVFP4 block; the divisor is compared elsewhere."""
    faults = []
    have, want = (unswizzle(planes[1], block.rows, block.columns) for planes in (stored, derived))
    scales = have != want
    if scales.any():
        faults.append(_scale("parity.copied_scale_mismatch", block, scales, _first(scales), 16, have, want))
    rows = [
        np.concatenate([_rows(planes[0], block), unswizzle(planes[1], block.rows, block.columns)], axis=1)
        for planes in (stored, derived)
    ]
    codes = [unpack_codes(planes[0], block.columns) for planes in (stored, derived)]
    return [*faults, *_codes(shape, block, codes[0], codes[1], True, 16, rows)]


def _codes(
    shape: Shape,
    block: Block,
    have: Words,
    want: Words,
    copied: bool,
    group: int | None,
    rows: Sequence[NDArray[np.uint8]],
) -> list[Fault]:
    differs = have != want
    if not differs.any():
        return []
    row, column = _first(differs)
    digits = 2 if group is None else 1
    stored, derived = (f"0x{words[row, column]:0{digits}x}" for words in (have, want))
    place: dict[str, Any] = {"row": block.row + row, "column": block.column + column}
    if group is not None:
        place["group"], place["lane"] = divmod(place["column"], group)
    found = row_map(differs.sum(axis=1), block.columns, block.row, shape[0], rows[0], rows[1])
    maker = "source" if copied else "profile"
    message = f"row {place['row']}, column {place['column']}: stored code word {stored}, the {maker} gives {derived}"
    return [
        Fault(
            "parity.copied_code_mismatch" if copied else "parity.code_mismatch",
            int(differs.sum()),
            {**place, "stored": stored, "derived": derived},
            derived,
            stored,
            message + found.note,
            {**_sample(differs, block), **found.samples},
        )
    ]


def _scale(
    code: str,
    block: Block,
    differs: NDArray[np.bool_],
    place: tuple[int, int],
    group: int | None,
    have: Words,
    want: Words,
) -> Fault:
    digits = have.dtype.itemsize * 2
    stored, derived = f"0x{have[place]:0{digits}x}", f"0x{want[place]:0{digits}x}"
    where: dict[str, Any] = {"row": block.row + place[0]}
    named = f"row {where['row']}"
    if group is not None:
        where["group"] = block.column // group + place[1]
        named += f", group {where['group']}"
    maker = "source" if code == "parity.copied_scale_mismatch" else "profile"
    message = f"{named}: stored scale word {stored}, the {maker} gives {derived}"
    where |= {"stored": stored, "derived": derived}
    return Fault(code, int(differs.sum()), where, derived, stored, message, _sample(differs, block))


def _rows(plane: Words, block: Block) -> NDArray[np.uint8]:
    return _bytes(plane, block.rows)


def _sample(mask: NDArray[np.bool_], block: Block) -> dict[str, tuple[int, ...]]:
    rows = np.flatnonzero(mask.any(axis=1))[:MAX_SAMPLES] + block.row
    return {"rows": tuple(rows.tolist())}


def _first(mask: NDArray[np.bool_]) -> tuple[int, int]:
    row, column = divmod(int(mask.argmax()), mask.shape[1])
    return row, column
