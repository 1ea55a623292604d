"""Tiles in their places: the grid and the tiles of each axis side by side (R10)."""

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.ops import Ops, T
from ninfer_core.schemes.profiles.tiles import Cut


def placed(ops: Ops[T], x: T, tiles: Cut, shape: Shape, outer: Shape) -> T:
    """Tiles [*batch, tiles, *tile] at their coordinates; padding behind the end of an axis is dropped (R10)."""
    rank, batch = len(outer), tuple(range(len(outer)))
    order = tiles.element_order
    if order != tuple(range(len(shape))):
        x = ops.reshape(x, *outer, *(tiles.tile[axis] for axis in order))
        x = ops.transpose(x, *batch, *(rank + order.index(axis) for axis in range(len(shape))))
    x = ops.reshape(x, *outer, *tiles.grid, *tiles.tile)
    perm, padded = list(batch), []
    for axis, size in enumerate(tiles.tile):
        if axis in tiles.order:
            perm.append(rank + tiles.order.index(axis))
            size *= tiles.grid[tiles.order.index(axis)]
        perm.append(rank + len(tiles.grid) + axis)
        padded.append(size)
    x = ops.reshape(ops.transpose(x, *perm), *outer, *padded)
    for axis, (held, size) in enumerate(zip(padded, shape, strict=True)):
        if held != size:
            x = ops.cut(x, rank + axis, 0, size)
    return x
