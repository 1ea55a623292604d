"""Joints of fused values against the rows themselves: where two neighbours do not come from neighbouring rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.containers.directory import TensorObject
from ninfer_core.recipes import TensorPlan
from ninfer_core.recipes.joints import MOST_JOINTS, joints
from ninfer_core.verify.sample import Sample
from ninfer_core.verify.tensor import sampled_rows
from tests.recipes.build import bound, document, folder, tensor


def named(name: str, rows: int) -> dict[str, Any]:
    return tensor(name, [rows, 2], "BF16")


def origin(tree: dict[str, Any]) -> list[tuple[str, int]]:
    """(tensor, row) of every row of a value."""
    match tree["op"]:
        case "tensor":
            return [(tree["name"], row) for row in range(tree["shape"][0])]
        case "concat_rows":
            return [row for part in tree["of"] for row in origin(part)]
        case "rows":
            return origin(tree["of"])[tree["begin"] : tree["end"]]
        case "row_blocks":
            rows = origin(tree["of"])
            starts = range(0, tree["blocks"] * tree["stride"], tree["stride"])
            return [row for at in starts for row in rows[at + tree["begin"] : at + tree["end"]]]
    return origin(tree["of"])


def breaks(tree: dict[str, Any]) -> set[int]:
    """Places where a row does not follow the row before it."""
    rows = origin(tree)
    return {at for at in range(1, len(rows)) if rows[at] != (rows[at - 1][0], rows[at - 1][1] + 1)}


@st.composite
def fused(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Trees of tensors with names of their own, rows of them and joined ones."""
    kind = (
        draw(st.sampled_from(["tensor", "concat_rows", "rows", "row_blocks", "widen"])) if depth else "tensor"
    )
    if kind == "tensor":
        return named(draw(st.uuids()).hex, draw(st.integers(2, 9)))
    if kind == "concat_rows":
        return {"op": kind, "of": draw(st.lists(fused(depth - 1), min_size=2, max_size=3))}
    if kind == "row_blocks":
        blocks, stride = draw(st.integers(2, 4)), draw(st.integers(2, 5))
        begin = draw(st.integers(0, stride - 1))
        end = draw(st.integers(begin + 1, stride))
        cut = draw(st.integers(1, blocks * stride - 1))
        parts = [named(draw(st.uuids()).hex, rows) for rows in (cut, blocks * stride - cut)]
        whole = {"op": "concat_rows", "of": parts}
        return {"op": kind, "blocks": blocks, "stride": stride, "begin": begin, "end": end, "of": whole}
    inner = draw(fused(depth - 1))
    if kind == "widen":
        return {"op": kind, "to": "FP32", "of": inner}
    begin = draw(st.integers(0, len(origin(inner)) - 1))
    return {"op": kind, "begin": begin, "end": draw(st.integers(begin + 1, len(origin(inner)))), "of": inner}


@given(fused())
def test_every_break_is_a_joint(tree: dict[str, Any]):
    found = joints(tree)
    assert list(found) == sorted(set(found))
    assert breaks(tree) <= set(found)
    assert all(0 < joint < len(origin(tree)) for joint in found)


def test_a_joint_lies_where_two_parts_meet():
    parts = [named("q", 4), named("k", 2), named("v", 3)]
    assert joints({"op": "concat_rows", "of": parts}) == (4, 6)
    heads = {"op": "row_blocks", "blocks": 3, "stride": 4, "begin": 1, "end": 3, "of": named("q", 12)}
    assert joints(heads) == (2, 4)
    cut = {"op": "rows", "begin": 3, "end": 7, "of": {"op": "concat_rows", "of": parts}}
    assert joints(cut) == (1, 3)
    assert joints({"op": "concat_rows", "of": [heads, named("k", 2)]}) == (2, 4, 6)


@pytest.mark.parametrize("blocks", [MOST_JOINTS + 2, 1 << 60])
def test_joints_are_bounded_whatever_a_document_states(blocks: int):
    many = {"op": "row_blocks", "blocks": blocks, "stride": 2, "begin": 0, "end": 1, "of": named("q", 2)}
    assert joints(many) is None
    most = {**many, "blocks": MOST_JOINTS + 1}
    assert joints(most) == tuple(range(1, MOST_JOINTS + 1))
    assert joints({"op": "concat_rows", "of": [most, named("k", 2)]}) is None


def shaped(shape: list[int], *parts: int) -> dict[str, Any]:
    """A reshape of joined tensors of [rows, 4]."""
    joined = {"op": "concat_rows", "of": [tensor(f"t{n}", [rows, 4], "BF16") for n, rows in enumerate(parts)]}
    return {"op": "reshape", "shape": shape, "of": joined}


@pytest.mark.parametrize(
    ("shape", "parts", "found"),
    [
        ([6, 2, 2], (2, 4), (2,)),
        ([3, 8], (2, 4), (1,)),
        ([12, 2], (2, 4), (4,)),
        ([24], (2, 4), (8,)),
        ([3, 8], (1, 5), None),
        ([2, 12], (1, 2, 3), None),
        ([2, 12], (3, 3), (1,)),
        ([1, 24], (6,), ()),
    ],
)
def test_a_joint_keeps_its_place_through_a_reshape(
    shape: list[int], parts: tuple[int, ...], found: tuple[int, ...] | None
):
    whole = shaped(shape, *parts)
    assert joints(whole) == found
    # The oracle: which part each element is of, and where that changes.
    owners = np.repeat(np.arange(len(parts)), [4 * rows for rows in parts]).reshape(shape[0], -1)
    mixed = (owners != owners[:, :1]).any()
    assert (found is None) == mixed
    if found is not None:
        assert found == tuple((np.flatnonzero(np.diff(owners[:, 0])) + 1).tolist())


JOINED = {"op": "concat_rows", "of": [named("a", 3), named("b", 5)]}
TURNED = {"op": "transpose", "axes": [1, 0]}
PLACED = {"op": "index", "axis": 1, "at": 0}
GATHERED = {"op": "gather_rows", "ids": "ids"}


@pytest.mark.parametrize("move", [TURNED, PLACED, GATHERED])
def test_rows_that_cannot_be_followed(move: dict[str, Any]):
    assert joints({**move, "of": JOINED}) is None
    assert joints({"op": "widen", "to": "FP32", "of": {**move, "of": JOINED}}) is None
    assert joints({"op": "reshape", "shape": [16], "of": {**move, "of": JOINED}}) is None


def test_one_origin_has_no_joint_in_any_order():
    assert joints({**TURNED, "of": named("a", 3)}) == ()
    assert joints({**PLACED, "of": named("a", 3)}) == ()
    assert joints({**GATHERED, "of": named("a", 3)}) == ()


def test_rows_after_a_part_of_unknown_height():
    gathered = {**GATHERED, "of": named("a", 3)}
    assert joints({"op": "concat_rows", "of": [gathered, named("b", 5)]}) is None


def test_heights_through_every_move():
    tall = {"op": "index", "axis": 2, "at": 1, "of": tensor("x", [7, 2, 3], "BF16")}
    turned = {"op": "transpose", "axes": [1, 0], "of": tensor("y", [2, 9], "BF16")}
    folded = {"op": "reshape", "shape": [4, 2], "of": tensor("z", [8], "BF16")}
    cut = {"op": "rows", "begin": 1, "end": 3, "of": named("c", 5)}
    heads = {"op": "row_blocks", "blocks": 2, "stride": 3, "begin": 0, "end": 3, "of": named("h", 6)}
    parts = [tall, turned, folded, cut, heads, JOINED, named("l", 1)]
    assert joints({"op": "concat_rows", "of": parts}) == (7, 16, 20, 22, 25, 28, 31, 36)


@pytest.mark.parametrize(("rows", "whole"), [((1, 511), True), ((256, 256), False)])
def test_a_sample_takes_whole_what_it_cannot_follow(rows: tuple[int, int], whole: bool) -> None:
    stored, parts = {}, []
    for name, count in zip("ab", rows, strict=True):
        stored[name] = ("BF16", [count, 128], bytes(256 * count))
        parts.append(tensor(name, [count, 128], "BF16"))
    value = {"op": "reshape", "shape": [128, 512], "of": {"op": "concat_rows", "of": parts}}
    rules = [{"object": "o", "format": "BF16", "encode": "copy_words", "value": value}]
    _, plan, _ = bound(document(rules), {"base": folder(stored)})
    (item,) = plan.objects if plan is not None else ()
    assert isinstance(item, TensorPlan)
    stored_as = TensorObject(0, "o", item.shape, item.fmt, item.layout, 0, 128 * 512 * 2)
    taken = sampled_rows(stored_as, item, Sample(0.01, 0))
    if whole:
        assert taken is None
    else:
        assert taken is not None
        assert {0, 63, 64, 127} <= {row for found in taken for row in found}
