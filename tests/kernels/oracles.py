"""Slow twins of scans, statistics and sums: one lane at a time, plain Python, for the tests to hold kernels to."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row, high_bytes
from ninfer_core.words import BINARY32, code_of_word, finite_value


@dataclass(frozen=True)
class Group:
    """One physical group: its codes, its scale word, and how many of its lanes are logical."""

    row: int
    index: int
    codes: tuple[int, ...]
    scale: int
    logical: int


def code_at(fmt: GroupedFormat, planes: GroupedPlanes, group: int, lane: int) -> int:
    """The signed code of one lane, bit by bit from the planes."""
    if fmt.code_bits == 8:
        return code_of_word(int(planes.base[group * 32 + lane]), 8)
    word = int(planes.base[group * 32 + lane // 2]) >> (4 * (lane % 2)) & 15
    extra = fmt.code_bits - 4
    for bit in range(extra):
        position = lane * extra + bit
        byte = int(planes.high[group * high_bytes(fmt) + position // 8])
        word |= (byte >> (position % 8) & 1) << (4 + bit)
    return code_of_word(word, fmt.code_bits)


def groups(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> Iterator[Group]:
    """Every physical group, row-major."""
    per_row = groups_per_row(fmt, columns)
    for flat in range(planes.scales.size):
        row, index = divmod(flat, per_row)
        codes = tuple(code_at(fmt, planes, flat, lane) for lane in range(fmt.group))
        yield Group(
            row, index, codes, int(planes.scales[flat]), min(max(columns - index * fmt.group, 0), fmt.group)
        )


def scan(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
    """The mask of `cpu.scan_grouped`."""
    found = 0
    for group in groups(fmt, columns, planes):
        logical, padding = group.codes[: group.logical], group.codes[group.logical :]
        if any(padding) or (group.logical == 0 and group.scale):
            found |= 8
        if group.logical:
            found |= group.scale > 0x7BFF
            found |= 2 * (group.scale == 0 and any(logical))
            found |= 4 * (fmt.code_bits == 8 and -128 in logical)
    return found


def error_sums(pairs: list[tuple[int, int]]) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction]:
    """Exact sums over pairs of binary32 words, in the order of the fields of `ErrorSums`."""
    values = [(finite_value(BINARY32, x), finite_value(BINARY32, y)) for x, y in pairs]
    return (
        sum(((x - y) ** 2 for x, y in values), Fraction(0)),
        sum((x * x for x, _ in values), Fraction(0)),
        sum((y * y for _, y in values), Fraction(0)),
        sum((x * y for x, y in values), Fraction(0)),
        max((abs(x - y) for x, y in values), default=Fraction(0)),
    )


def encoded(
    fmt: GroupedFormat, results: list[list], columns: int
) -> tuple[NDArray[np.int8], NDArray[np.uint16]]:  # type: ignore[type-arg]
    """Codes and scales of an encoder oracle's result with the padding of the layout: [groups, G] and [groups]."""
    per_row = groups_per_row(fmt, columns)
    codes = np.zeros((len(results), per_row, fmt.group), np.int8)
    scales = np.zeros((len(results), per_row), np.uint16)
    for row, line in enumerate(results):
        for index, group in enumerate(line):
            codes[row, index, : len(group.codes)] = group.codes
            scales[row, index] = group.scale
    return codes.reshape(-1, fmt.group), scales.reshape(-1)
