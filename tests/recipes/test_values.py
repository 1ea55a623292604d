"""Values against numpy on whole arrays: every operation, any range, and how far a read may reach."""

from fractions import Fraction
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.recipes import boxes
from ninfer_core.recipes.nodes import Cast, ConcatRows, Node, Reshape, Rows, Tensor, Transpose, Widen
from ninfer_core.recipes.values import (
    CastRefused,
    Joined,
    Permuted,
    Value,
    Window,
    cast_f16,
    cast_f32,
    cast_i64,
    evaluate,
)
from ninfer_core.words import BFLOAT16, BINARY16, BINARY32, finite_value, is_finite, round_to


class Whole:
    """A value that is an array in memory, and keeps the ranges it was asked for."""

    def __init__(self, words: NDArray[Any], dtype: str = "F32") -> None:
        self.words, self.shape, self.dtype = words, words.shape, dtype
        self.asked: list[tuple[int, int]] = []

    def read(self, begin: int, end: int) -> NDArray[Any]:
        assert 0 <= begin <= end <= self.words.size
        self.asked.append((begin, end))
        return self.words.reshape(-1)[begin:end].copy()


def numbered(*shape: int) -> NDArray[Any]:
    return np.arange(prod(shape), dtype=np.uint32).reshape(shape)


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple)


@st.composite
def permuted(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = draw(shapes)
    return shape, tuple(draw(st.permutations(range(len(shape)))))


@st.composite
def ranges(draw: st.DrawFn, size: int) -> tuple[int, int]:
    return tuple(sorted((draw(st.integers(0, size)), draw(st.integers(0, size)))))  # type: ignore[return-value]


@settings(deadline=None, max_examples=400)
@given(permuted(), st.data(), st.sampled_from([1, 3, 16, 1 << 20]), st.sampled_from([1, 4, 1024]))
def test_transpose_is_that_of_numpy(
    case: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject, piece: int, run: int
) -> None:
    shape, axes = case
    whole = Whole(numbered(*shape))
    expected = whole.words.transpose(axes)
    begin, end = data.draw(ranges(expected.size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "PIECE_WORDS", piece)
        patch.setattr(boxes, "RUN_WORDS", run)
        found = Permuted(whole, axes, expected.shape).read(begin, end)
    assert np.array_equal(found, expected.reshape(-1)[begin:end])
    assert all(stop - start <= piece for start, stop in whole.asked)


@settings(deadline=None, max_examples=200)
@given(shapes, st.data())
def test_boxes_are_the_range(shape: tuple[int, ...], data: st.DataObject) -> None:
    begin, end = data.draw(ranges(prod(shape)))
    found = list(boxes.boxes(shape, begin, end))
    assert len(found) < 2 * len(shape) + 1
    flat = [
        numbered(*shape)[tuple(slice(low, high) for low, high in zip(*box, strict=True))].reshape(-1)
        for box in found
    ]
    assert np.concatenate([*flat, np.empty(0, np.uint32)]).tolist() == list(range(begin, end))


def test_transpose_of_a_scalar() -> None:
    assert Permuted(Whole(numbered().reshape(())), (), ()).read(0, 1).tolist() == [0]


def test_long_runs_are_read_alone() -> None:
    whole = Whole(numbered(64, 8, 2048))
    Permuted(whole, (1, 0, 2), (8, 64, 2048)).read(0, 64 * 2048)  # one of eight runs in every 16,384
    assert len(whole.asked) == 64
    assert sum(end - begin for begin, end in whole.asked) == 64 * 2048


def test_short_runs_are_read_in_covering_pieces() -> None:
    whole = Whole(numbered(512, 4096))
    found = Permuted(whole, (1, 0), (4096, 512)).read(0, 512 * 8)
    assert np.array_equal(found, whole.words[:, :8].T.reshape(-1))
    assert len(whole.asked) <= 4
    assert all(end - begin <= boxes.PIECE_WORDS for begin, end in whole.asked)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> tuple[Node, NDArray[Any], dict[str, Whole]]:
    """A tree, what numpy makes of it, and its leaves; words are distinct over all leaves."""
    leaves: dict[str, Whole] = {}

    def leaf(shape: tuple[int, ...]) -> tuple[Node, NDArray[Any]]:
        name = str(len(leaves))
        leaves[name] = Whole(numbered(*shape) + np.uint32(1000 * len(leaves)))
        return Tensor("base", name, shape, "F32"), leaves[name].words

    def grow(level: int) -> tuple[Node, NDArray[Any]]:
        kind = (
            draw(st.sampled_from(["tensor", "rows", "concat", "reshape", "transpose"])) if level else "tensor"
        )
        if kind == "tensor":
            return leaf(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)))
        node, words = grow(level - 1)
        if kind == "rows" and words.shape:
            begin = draw(st.integers(0, words.shape[0] - 1))
            end = draw(st.integers(begin + 1, words.shape[0]))
            return Rows(begin, node, (end - begin, *words.shape[1:]), "F32"), words[begin:end]
        if kind == "concat" and words.shape:
            other, more = leaf((draw(st.integers(1, 3)), *words.shape[1:]))
            pair = [(node, words), (other, more)][:: draw(st.sampled_from([1, -1]))]
            joined = np.concatenate([part for _, part in pair])
            return ConcatRows(tuple(part for part, _ in pair), joined.shape, "F32"), joined
        if kind == "reshape":
            shape = draw(st.sampled_from([(words.size,), (1, words.size), (words.size, 1, 1)]))
            return Reshape(node, shape, "F32"), words.reshape(shape)
        axes = tuple(draw(st.permutations(range(words.ndim))))
        return Transpose(axes, node, words.transpose(axes).shape, "F32"), words.transpose(axes)

    node, words = grow(draw(st.integers(0, depth)))
    return node, words, leaves


@settings(deadline=None, max_examples=300)
@given(trees(), st.data())
def test_trees_are_those_of_numpy(
    tree: tuple[Node, NDArray[Any], dict[str, Whole]], data: st.DataObject
) -> None:
    node, words, leaves = tree
    value = evaluate(node, lambda leaf: leaves[leaf.name])
    assert value.shape == words.shape
    begin, end = data.draw(ranges(words.size))
    assert np.array_equal(value.read(begin, end), words.reshape(-1)[begin:end])


def test_widen_keeps_every_word() -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    node = Widen(Tensor("base", "w", words.shape, "BF16"), words.shape, "F32")
    value = evaluate(node, lambda leaf: Whole(words, "BF16"))
    assert value.dtype == "F32"
    found = value.read(3, 1 << 16)
    assert found.dtype == np.uint32
    assert np.array_equal(found, words[3:].astype(np.uint32) << 16)


binary32 = st.integers(0, 2**32 - 1) | st.integers(0x7F7F0000, 0x7F800001) | st.integers(0, 0x10000)


@settings(deadline=None, max_examples=600)
@given(binary32)
def test_cast_f32_rounds_or_refuses(word: int) -> None:
    words = np.array([word], np.uint32)
    sign, magnitude = word >> 31, word & 0x7FFFFFFF
    if magnitude == 0x7F800000:
        assert int(cast_f32(words, 0)[0]) == word >> 16
    elif not is_finite(BINARY32, word):
        with pytest.raises(CastRefused, match="NaN"):
            cast_f32(words, 0)
    else:
        expected = round_to(BFLOAT16, abs(finite_value(BINARY32, word)), sign)
        if expected & 0x7FFF == 0x7F80:
            with pytest.raises(CastRefused, match="infinite"):
                cast_f32(words, 0)
        else:
            assert int(cast_f32(words, 0)[0]) == expected
            assert int(words.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)[0]) == expected


def test_cast_f16_every_word() -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    numbers = words[words & 0x7FFF <= 0x7C00]
    for word, found in zip(numbers.tolist(), cast_f16(numbers, 0).tolist(), strict=True):
        sign = word >> 15
        if not is_finite(BINARY16, word):
            assert found == sign << 15 | 0x7F80
        else:
            assert found == round_to(BFLOAT16, abs(finite_value(BINARY16, word)), sign)
    with pytest.raises(CastRefused) as refusal:
        cast_f16(np.array([0x3C00, 0xFE01], np.uint16), 10)
    assert (refusal.value.element, refusal.value.word) == (11, 0xFE01)


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_cast_i64_keeps(number: int) -> None:
    found = cast_i64(np.array([number], np.int64).view(np.uint64), 0)
    assert found.view(np.int32).tolist() == [number]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_cast_i64_refuses(number: int) -> None:
    with pytest.raises(CastRefused, match="32 bits") as refusal:
        cast_i64(np.array([5, number, number], np.int64).view(np.uint64), 7)
    assert refusal.value.element == 8
    assert refusal.value.word == number & (2**64 - 1)


@pytest.mark.parametrize("cast", [cast_f32, cast_f16, cast_i64])
def test_casts_of_nothing(cast: Any) -> None:
    assert cast(np.empty(0, np.uint32), 0).size == 0


@settings(deadline=None, max_examples=100)
@given(permuted(), st.data())
def test_a_refusal_names_the_element_of_the_value_that_was_read(
    case: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    shape, axes = case
    words = np.full(shape, 0x3F800000, np.uint32)
    bad = data.draw(st.integers(0, words.size - 1))
    words.reshape(-1)[bad] = 0x7FC00000
    cast: Value = evaluate(Cast(Tensor("base", "w", shape, "F32"), shape, "BF16"), lambda leaf: Whole(words))
    moved = Permuted(cast, axes, words.transpose(axes).shape)
    first = np.full((2, *moved.shape[1:]), 0x3F80, np.uint16)
    joined = Joined((Whole(first, "BF16"), moved), (2 + moved.shape[0], *moved.shape[1:]))
    below = Window(joined, first.size // 2, (joined.shape[0] - 1, *joined.shape[1:]))
    isnan = np.concatenate([first[1:] == 0, words.transpose(axes) == 0x7FC00000]).reshape(-1)
    with pytest.raises(CastRefused) as refusal:
        below.read(0, isnan.size)
    assert refusal.value.element == int(isnan.argmax())
    assert refusal.value.word == 0x7FC00000
    assert Fraction(refusal.value.element) >= first.size // 2
