"""What a comparison must say, one element at a time in exact fractions, out of the layouts' formulas alone."""

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import Shape
from ninfer_core.layouts.block_scale import scale_offset
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_nvfp4, reconstruct_row
from ninfer_core.words import BFLOAT16, BINARY32, finite_value
from tests.kernels.oracles import code_at

Payload = NDArray[np.uint8]


@dataclass(frozen=True)
class Words:
    """Logical words of a tensor in C order: codes, the scales that go with them, and the divisor."""

    codes: list[int]
    scales: list[int]
    divisor: int
    scale_of: list[int]  # index of the scale of each code


def words(fmt: NumericFormat, shape: Shape, payload: Payload) -> Words:
    """Of a payload."""
    planes = [
        payload[plane.span.offset : plane.span.offset + plane.span.length].copy().view(plane.word)
        for plane in canonical_layout(fmt).planes(fmt, shape)
    ]
    if isinstance(fmt, DirectFormat):
        return Words([int(word) for word in planes[0]], [], 0, [])
    n, k = shape
    places = [(row, column) for row in range(n) for column in range(k)]
    match fmt:
        case GroupedFormat():
            whole = GroupedPlanes(
                planes[0], planes[1] if len(planes) == 3 else np.empty(0, np.uint8), planes[-1]
            )
            per_row, groups = groups_per_row(fmt, k), -(-k // fmt.group)
            codes = [
                code_at(fmt, whole, row * per_row + column // fmt.group, column % fmt.group)
                for row, column in places
            ]
            scales = [int(planes[-1][row * per_row + group]) for row in range(n) for group in range(groups)]
            return Words(codes, scales, 0, [row * groups + column // fmt.group for row, column in places])
        case BlockFormat():
            codes = [
                int(planes[0][(row * k + column) // 2]) >> 4 * (column % 2) & 15 for row, column in places
            ]
            scales = [
                int(planes[1][scale_offset(row, group, k)]) for row in range(n) for group in range(k // 16)
            ]
            of = [row * (k // 16) + column // 16 for row, column in places]
            return Words(codes, scales, int(planes[2][0]), of)
        case RowFormat():
            codes = [int(word) for word in planes[0]]
            return Words(codes, [int(word) for word in planes[1]], 0, [row for row, _ in places])


def values(fmt: NumericFormat, shape: Shape, payload: Payload) -> list[Fraction]:
    """What every element stands for; the words must be legal and finite."""
    found = words(fmt, shape, payload)
    if isinstance(fmt, DirectFormat):
        kind = BFLOAT16 if fmt.name == "BF16" else BINARY32
        return [finite_value(kind, word) for word in found.codes]
    pairs = zip(found.codes, (found.scales[index] for index in found.scale_of), strict=True)
    match fmt:
        case GroupedFormat():
            binary32 = [reconstruct_grouped(code, scale) for code, scale in pairs]
        case BlockFormat():
            binary32 = [reconstruct_nvfp4(code, scale, found.divisor) for code, scale in pairs]
        case RowFormat():
            binary32 = [reconstruct_row(code, scale) for code, scale in pairs]
    return [finite_value(BINARY32, word) for word in binary32]


def changed(fmt: NumericFormat, shape: Shape, a: Payload, b: Payload) -> dict[str, Any]:
    """The members of the metrics that count words."""
    left, right = words(fmt, shape, a), words(fmt, shape, b)
    codes = [i for i, pair in enumerate(zip(left.codes, right.codes, strict=True)) if pair[0] != pair[1]]
    scales = sum(x != y for x, y in zip(left.scales, right.scales, strict=True))
    first = None
    if codes:
        first = [int(at) for at in np.unravel_index(codes[0], shape)] if shape else []
    return {
        "words": prod(shape),
        "changed_words": len(codes),
        "changed_share": len(codes) / prod(shape),
        "scales": len(left.scales),
        "changed_scales": scales,
        "divisor_changed": left.divisor != right.divisor,
        "first_change": first,
    }


def errors(a: list[Fraction], b: list[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """Sum of squared errors, sum of A's squares, largest error."""
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return (
        sum((d * d for d in differences), Fraction(0)),
        sum((x * x for x in a), Fraction(0)),
        max(map(abs, differences), default=Fraction(0)),
    )
