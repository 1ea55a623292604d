"""Values of operation trees, read range by range: words of flat elements in C order, memory bounded by the range.

Nothing is computed ahead and nothing is kept, so that threads may read one value at the same time.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import NinferError
from ninfer_core.layouts.base import Shape
from ninfer_core.recipes import boxes
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.safetensors import SourceTensor

Words = NDArray[np.unsignedinteger[Any]]


class CastRefused(NinferError):
    """A source word that a cast may not turn into the narrower type.

    `element` is the flat element of the value that was read, `word` the word before the cast.
    """

    code = "cast_refused"

    def __init__(self, element: int, word: int, dtype: str, reason: str) -> None:
        digits = DTYPES[dtype].bits // 4
        super().__init__(f"element {element}: {dtype} word {word:#0{digits + 2}x} {reason}")
        self.element = element
        self.word = word
        self.dtype = dtype
        self.reason = reason

    def at(self, element: int) -> "CastRefused":
        """The same refusal, seen from a value in which the word is another element."""
        return CastRefused(element, self.word, self.dtype, self.reason)


class Value(Protocol):
    """A tensor that can be read in ranges; `dtype` is a safetensors dtype and says which words come out."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> str: ...

    def read(self, begin: int, end: int) -> Words:
        """Words of the flat elements [begin, end). Raises: CutShort, CannotRead, CastRefused."""
        ...


class Stored:
    """Words as a checkpoint stores them."""

    def __init__(self, checkpoint: Checkpoint, tensor: SourceTensor) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self._checkpoint, self._tensor = checkpoint, tensor

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        return self._checkpoint.read_words(self._tensor, begin, end)


class Window:
    """Consecutive elements of another value under a shape: leading rows, or the whole value reshaped."""

    def __init__(self, of: Value, first: int, shape: Shape) -> None:
        self.shape, self.dtype = shape, of.dtype
        self._of, self._first = of, first

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        try:
            return self._of.read(self._first + begin, self._first + end)
        except CastRefused as refused:
            raise refused.at(refused.element - self._first) from None


class Joined:
    """Values one after the other: in C order that is what joining leading axes means."""

    def __init__(self, of: tuple[Value, ...], shape: Shape) -> None:
        self.shape, self.dtype = shape, of[0].dtype
        self._of = of
        self._starts = [0, *accumulate(prod(part.shape) for part in of)]

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        words = np.empty(end - begin, DTYPES[self.dtype].word)
        at = begin
        while at < end:
            part = bisect_right(self._starts, at) - 1
            first, stop = self._starts[part], min(end, self._starts[part + 1])
            try:
                words[at - begin : stop - begin] = self._of[part].read(at - first, stop - first)
            except CastRefused as refused:
                raise refused.at(refused.element + first) from None
            at = stop
        return words


class Permuted:
    """Another value with its axes permuted."""

    def __init__(self, of: Value, axes: tuple[int, ...], shape: Shape) -> None:
        self.shape, self.dtype = shape, of.dtype
        self._of, self._axes = of, axes

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        words: Words = np.empty(end - begin, DTYPES[self.dtype].word)
        try:
            try:
                boxes.read_transposed(self._of.read, self._of.shape, self._axes, begin, end, words)
            except CastRefused:
                # The refused word may be a neighbour that only came along: read again without neighbours.
                boxes.read_transposed(
                    self._of.read, self._of.shape, self._axes, begin, end, words, exact=True
                )
        except CastRefused as refused:
            index = boxes.index_of(self._of.shape, refused.element)
            raise refused.at(boxes.flat_index(self.shape, [index[axis] for axis in self._axes])) from None
        return words


class Mapped:
    """Another value, word by word through `convert(words, first flat element)`."""

    def __init__(self, of: Value, dtype: str, convert: Callable[[Words, int], Words]) -> None:
        self.shape, self.dtype = of.shape, dtype
        self._of, self._convert = of, convert

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        return self._convert(self._of.read(begin, end), begin)


class Held:
    """Words in memory; only for vectors whose size a limit bounds."""

    def __init__(self, words: Words, dtype: str) -> None:
        self.shape, self.dtype = words.shape, dtype
        self._words = words

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        return self._words[begin:end]
