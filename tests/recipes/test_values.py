"""Values against numpy on whole arrays: every operation, any range, and how far a read may reach."""

from dataclasses import replace
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
from ninfer_core.recipes.conversions import cast_f16, cast_f32, cast_i64
from ninfer_core.recipes.evaluate import evaluate
from ninfer_core.recipes.nodes import (
    Cast,
    ConcatRows,
    GatherRows,
    Node,
    RankedTokenIds,
    Reshape,
    RowBlocks,
    Rows,
    Tensor,
    Transpose,
    Widen,
    hoist,
)
from ninfer_core.recipes.rows import Blocked, Gathered
from ninfer_core.recipes.values import CastRefused, Joined, Permuted, Value, Window
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


class Sources:
    """What trees stand on, in memory."""

    def __init__(self, leaves: dict[str, Whole], ids: dict[str, NDArray[np.int64]] | None = None) -> None:
        self.leaves, self.lists = leaves, ids or {}

    def stored(self, leaf: Tensor) -> Value:
        return self.leaves[leaf.name]

    def ids(self, name: str) -> NDArray[np.int64]:
        return self.lists[name]

    def ranked(self, node: RankedTokenIds) -> Value:
        raise AssertionError("no tree of these tests ranks")


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


Tree = tuple[Node, NDArray[Any]]


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> tuple[Node, NDArray[Any], Sources]:
    """A tree, what numpy makes of it, and its leaves; words are distinct over all leaves."""
    leaves: dict[str, Whole] = {}
    ids: dict[str, NDArray[np.int64]] = {}

    def leaf(shape: tuple[int, ...]) -> Tree:
        name = str(len(leaves))
        leaves[name] = Whole(numbered(*shape) + np.uint32(1000 * len(leaves)))
        return Tensor("base", name, shape, "F32"), leaves[name].words

    def rows(node: Node, words: NDArray[Any]) -> Tree:
        begin = draw(st.integers(0, words.shape[0] - 1))
        end = draw(st.integers(begin + 1, words.shape[0]))
        return Rows(begin, node, (end - begin, *words.shape[1:]), "F32"), words[begin:end]

    def row_blocks(node: Node, words: NDArray[Any]) -> Tree:
        blocks = draw(st.sampled_from([d for d in range(1, words.shape[0] + 1) if words.shape[0] % d == 0]))
        stride = words.shape[0] // blocks
        begin = draw(st.integers(0, stride - 1))
        end = draw(st.integers(begin + 1, stride))
        kept = [words[block * stride + begin : block * stride + end] for block in range(blocks)]
        made = np.concatenate(kept)
        return RowBlocks(stride, begin, end - begin, node, made.shape, "F32"), made

    def gather(node: Node, words: NDArray[Any]) -> Tree:
        name = f"ids{len(ids)}"
        chosen = st.lists(st.integers(0, words.shape[0] - 1), min_size=1, max_size=6)
        ids[name] = np.array(draw(chosen), np.int64)
        made = np.stack([words[row] for row in ids[name].tolist()])
        return GatherRows(name, node, made.shape, "F32"), made

    def concat(node: Node, words: NDArray[Any]) -> Tree:
        other, more = leaf((draw(st.integers(1, 3)), *words.shape[1:]))
        pair = [(node, words), (other, more)][:: draw(st.sampled_from([1, -1]))]
        joined = np.concatenate([part for _, part in pair])
        return ConcatRows(tuple(part for part, _ in pair), joined.shape, "F32"), joined

    def reshape(node: Node, words: NDArray[Any]) -> Tree:
        shape = draw(st.sampled_from([(words.size,), (1, words.size), (words.size, 1, 1)]))
        return Reshape(node, shape, "F32"), words.reshape(shape)

    def transpose(node: Node, words: NDArray[Any]) -> Tree:
        axes = tuple(draw(st.permutations(range(words.ndim))))
        return Transpose(axes, node, words.transpose(axes).shape, "F32"), words.transpose(axes)

    def grow(level: int) -> Tree:
        if not level:
            return leaf(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)))
        moves = [rows, row_blocks, gather, concat, reshape, transpose]
        return draw(st.sampled_from(moves))(*grow(level - 1))

    node, words = grow(draw(st.integers(0, depth)))
    return node, words, Sources(leaves, ids)


@settings(deadline=None, max_examples=400)
@given(trees(), st.data(), st.sampled_from([1, 7, 1 << 20]), st.sampled_from([1, 4, 1024]))
def test_trees_are_those_of_numpy(
    tree: tuple[Node, NDArray[Any], Sources], data: st.DataObject, piece: int, run: int
) -> None:
    node, words, sources = tree
    value = evaluate(node, sources)
    assert value.shape == words.shape
    begin, end = data.draw(ranges(words.size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "PIECE_WORDS", piece)
        patch.setattr(boxes, "RUN_WORDS", run)
        assert np.array_equal(value.read(begin, end), words.reshape(-1)[begin:end])


@settings(deadline=None, max_examples=200)
@given(trees())
def test_a_conversion_inside_moves_is_the_same_outside(tree: tuple[Node, NDArray[Any], Sources]) -> None:
    node, words, sources = tree
    words = words.astype(np.uint16)
    for whole in sources.leaves.values():
        whole.words, whole.dtype = whole.words.astype(np.uint16), "BF16"
    inside = evaluate(hoist(_widened(node)), sources)
    assert isinstance(hoist(_widened(node)), Widen)
    assert inside.dtype == "F32"
    assert np.array_equal(inside.read(0, words.size), words.reshape(-1).astype(np.uint32) << 16)


def _widened(node: Node) -> Node:
    """The tree with every leaf widened where it stands."""
    match node:
        case Tensor():
            return Widen(replace(node, dtype="BF16"), node.shape, "F32")
        case ConcatRows(parts):
            return replace(node, of=tuple(map(_widened, parts)))
        case Rows() | RowBlocks() | GatherRows() | Reshape() | Transpose():
            return replace(node, of=_widened(node.of))
        case _:
            raise AssertionError("no such node is drawn")


def test_dense_blocks_are_read_in_covering_pieces() -> None:
    whole = Whole(numbered(1 << 14, 4))
    found = Blocked(whole, 2, 1, 1, (1 << 13, 4)).read(0, 1 << 15)
    assert np.array_equal(found, whole.words[1::2].reshape(-1))
    assert len(whole.asked) == 1


def test_sparse_blocks_are_read_alone() -> None:
    whole = Whole(numbered(64, 2048))
    found = Blocked(whole, 16, 3, 1, (4, 2048)).read(0, 4 * 2048)
    assert np.array_equal(found, whole.words[3::16].reshape(-1))
    assert len(whole.asked) == 4
    assert sum(end - begin for begin, end in whole.asked) == 4 * 2048


def test_following_rows_are_gathered_at_once() -> None:
    whole = Whole(numbered(4096, 64))
    ids = np.array([7, 8, 9, 4000, 3, 4], np.int64)
    found = Gathered(whole, ids, (6, 64)).read(32, 6 * 64)
    assert np.array_equal(found, whole.words[ids].reshape(-1)[32:])
    assert whole.asked == [(7 * 64 + 32, 10 * 64), (4000 * 64, 4001 * 64), (3 * 64, 5 * 64)]


def test_near_rows_are_gathered_from_one_piece() -> None:
    whole = Whole(numbered(4096, 2))
    ids = np.array([12, 10, 11, 13, 12], np.int64)
    found = Gathered(whole, ids, (5, 2)).read(0, 10)
    assert np.array_equal(found, whole.words[ids].reshape(-1))
    assert whole.asked == [(20, 28)]


def test_widen_keeps_every_word() -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    node = Widen(Tensor("base", "w", words.shape, "BF16"), words.shape, "F32")
    value = evaluate(node, Sources({"w": Whole(words, "BF16")}))
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
    cast: Value = evaluate(
        Cast(Tensor("base", "w", shape, "F32"), shape, "BF16"), Sources({"w": Whole(words)})
    )
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


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_a_refusal_in_moved_rows_is_about_a_wanted_row(
    blocks: int, stride: int, width: int, data: st.DataObject
) -> None:
    shape = (blocks * stride, width)
    words = np.full(shape, 0x3F800000, np.uint32)
    bad = data.draw(st.integers(0, words.size - 1))
    words.reshape(-1)[bad] = 0x7FC00000
    cast = evaluate(Cast(Tensor("base", "w", shape, "F32"), shape, "BF16"), Sources({"w": Whole(words)}))
    begin = data.draw(st.integers(0, stride - 1))
    ids = np.array(data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=1, max_size=5)), np.int64)
    kept = np.concatenate([words[block * stride + begin :][:1] for block in range(blocks)])
    for value, expected in (
        (Blocked(cast, stride, begin, 1, kept.shape), kept),
        (Gathered(cast, ids, (ids.size, width)), words[ids]),
    ):
        refused = expected.reshape(-1) == 0x7FC00000
        if refused.any():
            with pytest.raises(CastRefused) as refusal:
                value.read(0, expected.size)
            assert refusal.value.element == int(refused.argmax())
        else:
            assert (value.read(0, expected.size) == 0x3F80).all()
