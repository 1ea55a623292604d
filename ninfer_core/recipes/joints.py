"""Where rows of different origin meet in a value: at these places fused tensors are put together wrongly."""

from collections.abc import Mapping
from math import prod
from typing import Any, Final

from ninfer_core.layouts.base import Shape

MOST_JOINTS: Final = 1 << 12  # of one object; one with more is compared whole


def joints(tree: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Rows of the value of an expanded `tree`, each the first of a new piece, ascending.

    None where they cannot be followed exactly, or are more than `MOST_JOINTS`: then no sample holds them all.
    """
    match tree["op"]:
        case "tensor" | "nvfp4_matrix" | "fp8_row_matrix" | "equal_scalar" | "ranked_token_ids":
            return ()
        case "widen" | "cast" | "invert":
            return joints(tree["of"])
        case "concat_rows":
            return _bounded(_concatenated(tree["of"]))
        case "rows":
            inside = joints(tree["of"])
            begin, end = tree["begin"], tree["end"]
            return None if inside is None else tuple(at - begin for at in inside if begin < at < end)
        case "row_blocks":
            return _blocked(tree, joints(tree["of"]))
        case "reshape":
            return _reshaped(tree, joints(tree["of"]))
        case "index" | "transpose" | "gather_rows":
            return () if joints(tree["of"]) == () else None  # rows of one origin stay so, in whatever order
        case _:
            return None


def _bounded(found: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if found is None or len(found) > MOST_JOINTS else found


def _concatenated(parts: list[Mapping[str, Any]]) -> tuple[int, ...] | None:
    found: list[int] = []
    start = 0
    for part in parts:
        inside, shape = joints(part), _shape(part)
        if inside is None or shape is None:
            return None
        found += [start] if start else []
        found += [start + at for at in inside]
        start += shape[0]
    return tuple(found)


def _blocked(tree: Mapping[str, Any], inside: tuple[int, ...] | None) -> tuple[int, ...] | None:
    blocks, begin, end = tree["blocks"], tree["begin"], tree["end"]
    if inside is None or blocks - 1 > MOST_JOINTS:
        return None
    count = end - begin
    found = set(range(count, blocks * count, count))
    for at in inside:
        block, row = divmod(at, tree["stride"])
        if begin < row < end:
            found.add(block * count + row - begin)
    return _bounded(tuple(sorted(found)))


def _reshaped(tree: Mapping[str, Any], inside: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if not inside:
        return inside
    shape = _shape(tree["of"])
    if shape is None:
        return None
    before, after = prod(shape[1:]), prod(tree["shape"][1:])
    if any(at * before % after for at in inside):
        return None  # a piece begins within a row
    return tuple(at * before // after for at in inside)


def _shape(tree: Mapping[str, Any]) -> Shape | None:
    """The shape of a value; None where the tree alone does not say."""
    match tree["op"]:
        case "tensor" | "nvfp4_matrix" | "fp8_row_matrix" | "reshape":
            return tuple(tree["shape"])
        case "equal_scalar":
            return ()
        case "ranked_token_ids":
            return (tree["count"],)
        case "gather_rows":
            return None
    if tree["op"] == "concat_rows":
        shapes = [_shape(part) for part in tree["of"]]
        known = [shape for shape in shapes if shape is not None]
        return (sum(shape[0] for shape in known), *known[0][1:]) if len(known) == len(shapes) else None
    shape = _shape(tree["of"])
    return None if shape is None else _moved(tree, shape)


def _moved(tree: Mapping[str, Any], shape: Shape) -> Shape:
    match tree["op"]:
        case "rows":
            return (tree["end"] - tree["begin"], *shape[1:])
        case "row_blocks":
            return (tree["blocks"] * (tree["end"] - tree["begin"]), *shape[1:])
        case "index":
            return (*shape[: tree["axis"]], *shape[tree["axis"] + 1 :])
        case "transpose":
            return tuple(shape[axis] for axis in tree["axes"])
        case _:
            return shape
