"""What a kernel is asked, what it must answer, and where an answer first differs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Some numbers of an answer; `axes` name the coordinates, `hexadecimal` says that they are stored bits."""

    name: str
    numbers: Numbers
    axes: tuple[str, ...] = ()
    hexadecimal: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out: a sentence about how it went, and numbers; numbers only count where the sentences agree."""

    went: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an answer first is another than the one expected."""

    where: str
    expected: str
    found: str
    row: int = 0  # of what is there for more than one reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many numbers of an answer were compared, how many are wrong, and the first of them."""

    values: int
    mismatches: int
    first: Difference | None


@dataclass(frozen=True, slots=True)
class Question:
    """One case: `ask` puts it to a processor, `judge` says what is wrong with its answer.

    `name` is stable, `bytes` what the kernel reads or writes, whichever its profile counts, for the throughput. `work`
    is the kernel alone, into memory that is there already; None where `ask` is that. `why` says what a row of a known
    answer is there for.
    """

    name: str
    ask: Callable[[Any], Answer]
    judge: Callable[[Answer], Verdict]
    bytes: int
    work: Callable[[Any], object] | None = None
    why: Callable[[int], str] | None = None


@dataclass(frozen=True, slots=True)
class Depth:
    """How much is asked: about how many drawn weights a kernel, whether every word of the small types, and how often
    the largest question is repeated."""

    weights: int
    every_word: bool
    runs: int


def asked(
    name: str,
    expected: Answer,
    ask: Callable[[Any], Answer],
    size: int = 0,
    work: Callable[[Any], object] | None = None,
) -> Question:
    """A question with exactly one right answer."""
    return Question(name, ask, lambda found: compare(expected, found), size, work)


def compare(expected: Answer, found: Answer) -> Verdict:
    """Hold an answer to the only right one."""
    values = max(1, sum(part.numbers.size for part in expected.parts))
    if expected.went != found.went:
        return Verdict(values, 1, Difference("the outcome", expected.went, found.went))
    mismatches, first = 0, None
    for right, given in zip(expected.parts, found.parts, strict=True):
        if right.numbers.shape != given.numbers.shape:
            shapes = [str(list(part.numbers.shape)) for part in (right, given)]
            difference = Difference(f"the shape of {right.name}", shapes[0], shapes[1])
            return Verdict(values, mismatches + 1, first or difference)
        wrong = np.asarray(right.numbers != given.numbers)
        count = int(np.count_nonzero(wrong))
        if count and first is None:
            place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            numbers = [_shown(right, part.numbers[place]) for part in (right, given)]
            row = int(place[right.axes.index("row")]) if "row" in right.axes else 0
            first = Difference(_where(right, place), numbers[0], numbers[1], row)
        mismatches += count
    return Verdict(values, mismatches, first)


def _where(part: Part, place: Sequence[Any]) -> str:
    coordinates = ", ".join(f"{axis} {int(i)}" for axis, i in zip(part.axes, place, strict=True))
    return f"{part.name} at {coordinates}" if coordinates else part.name


def _shown(part: Part, number: Any) -> str:
    if part.hexadecimal:
        digits = part.numbers.dtype.itemsize * 2
        return f"0x{int(number):0{digits}x}"
    return str(number.item())


def same(a: Answer, b: Answer) -> bool:
    """Whether two answers are equal to the last bit."""
    return (
        a.went == b.went
        and len(a.parts) == len(b.parts)
        and all(_bits(one) == _bits(other) for one, other in zip(a.parts, b.parts, strict=True))
    )


def _bits(part: Part) -> tuple[tuple[int, ...], bytes]:
    return part.numbers.shape, np.ascontiguousarray(part.numbers).tobytes()


ODD_SHAPES: Final = (
    *((1, 1), (2, 31), (3, 65), (1, 127), (2, 129), (5, 191), (1, 257), (3, 320)),
    *((1, 128), (2, 2_176)),  # rows without padding are one long row: here one of more than a tile of 4,096
)
"""Around a strip of 32, a group and the alignment of 128."""
WIDE_SHAPE: Final = (2, 4_230)
"""Rows of more than a tile, with a tail."""
MANY_SHAPES: Final = ((66_000, 1), (1, 70_000))
"""More rows, more columns than 16 bits count."""
TILE_SHAPES: Final = ((128, 64), (128, 192), (256, 64), (256, 320))
"""Of NVFP4: one tile of scales, a stripe of tiles, and more than one stripe."""
