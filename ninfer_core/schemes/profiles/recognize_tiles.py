"""Tilings out of declarations: the grid, the cycle of quantizations, and a shape that the tiles hold without padding."""

import math
from collections.abc import Callable

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.level import Level, level_of
from ninfer_core.schemes.profiles.model import Kind, Quantization, Tiling
from ninfer_core.schemes.run import MAX_RANK
from ninfer_core.schemes.structs.model import Declared

Inner = Callable[[int, bool], tuple[Quantization, Shape]]  # the flag: its tile's shape stands in it


def tiling(level: Level, inner: Inner, declared: Declared) -> tuple[Kind, Shape]:
    """The kind and a shape. Raises: SchemeRefused."""
    in_tile = not level.has("tile_shape")
    cycle = level.need("elem_quant", "INT32") if level.has("elem_quant") else 0
    names = list(level.payload)
    fields = [level.reference(name) for name in names]
    if not names:
        raise level.unknown("there is nothing in it")
    several = len(names) > 1
    field = names[0].rpartition("_")[0] if several else names[0]
    if several and (names != [f"{field}_{n}" for n in range(len(names))] or not field):
        raise level.unknown("fields of one tile each are numbered")
    stating = level_of(declared.declarations[fields[0][0]]) if in_tile else level
    tile_shape, axes = stating.list("tile_shape", "INT64"), stating.list("axes", "INT32")
    perm = stating.list("perm", "INT32")
    read = [inner(index, in_tile) for index, _ in fields]
    elements = [element for element, _ in read]
    period = cycle or len(elements)
    if not 0 < period <= len(elements) or any(
        elements[n] != elements[n % period] for n in range(len(elements))
    ):
        raise level.differs("elem_quant", "the tiles do not repeat so", period, len(elements))
    kind = Tiling(tile_shape, tuple(elements[:period]), axes, perm, field, shape_in_tile=in_tile)
    grid = (sum(counts[0] for _, counts in fields),) if several else fields[0][1]
    return kind, _tiled_shape(level, kind, grid, read[0][1])


def _tiled_shape(level: Level, kind: Tiling, grid: Shape, tile: Shape) -> Shape:
    """A shape that the tiles hold without padding."""
    if not kind.axes:
        if len(kind.tile_shape) != 1 or len(grid) != 1:
            raise level.differs("tile_shape", "tiles of a flattened tensor have one size", 1, kind.tile_shape)
        return (math.prod(grid) * (kind.tile_shape[0] or math.prod(tile)),)
    rank = max(len(tile), max(kind.axes, default=-1) + 1)
    if len(kind.axes) != len(kind.tile_shape) or sorted(kind.perm or range(len(kind.axes))) != list(
        range(len(kind.axes))
    ):
        raise level.differs("axes", "not one size for each", kind.axes, kind.tile_shape)
    if grid == (1,):
        grid = (1,) * len(kind.axes)
    order = [kind.axes[place] for place in kind.perm] if kind.perm else list(kind.axes)
    if len(grid) != len(order) or len(set(order)) != len(order) or min(order) < 0 or rank > MAX_RANK:
        raise level.differs("axes", "the array of tiles has other dimensions", len(order), len(grid))
    sizes = list(tile) if len(tile) == rank else [1] * rank
    for axis, size in zip(kind.axes, kind.tile_shape, strict=True):
        sizes[axis] = size or sizes[axis]
    if len(tile) != rank:  # the values of a flat tile belong to an axis whose size is not stated
        stated = dict(zip(kind.axes, kind.tile_shape, strict=True))
        free = [axis for axis in range(rank) if not stated.get(axis)]
        rest = math.prod(tile) // (math.prod(size or 1 for size in kind.tile_shape) or 1)
        for axis in free[-1:]:
            sizes[axis] = rest
    for axis, count in zip(order, grid, strict=True):
        sizes[axis] *= count
    return tuple(sizes)
