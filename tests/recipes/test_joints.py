"""Joints of fused values against the rows themselves: where two neighbours do not come from neighbouring rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.recipes.joints import MOST_JOINTS, joints
from tests.recipes.build import tensor


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
    found = joints(many)
    assert np.array_equal(found, np.arange(1, MOST_JOINTS + 1))
