"""How a tiling cuts a tensor: the extent of a tile, the grid in storage order, and the padded shape (R10)."""

import math
from dataclasses import dataclass

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import Tiling


@dataclass(frozen=True, slots=True)
class Cut:
    """Tiles of one tensor. `grid` counts tiles over `order`, the axes that are cut, outermost in memory first.

    A flattened tensor has no order and a grid of one number.
    """

    tile: Shape
    grid: Shape
    order: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return math.prod(self.grid)

    @property
    def dims(self) -> Shape:
        """The counts of the array of tiles: the grid, or one number for a single tile."""
        return (1,) if self.count == 1 else self.grid

    @property
    def element_order(self) -> tuple[int, ...]:
        """The order of a tile's own axes in memory: `perm` orders the elements of a single tile, else nothing."""
        axes = list(range(len(self.tile)))
        if self.count == 1:
            for slot, axis in zip(sorted(self.order), self.order, strict=True):
                axes[slot] = axis
        return tuple(axes)


def cut(tiling: Tiling, shape: Shape) -> Cut:
    """The tiles of a tensor of that shape; the tiling is a legal one for it."""
    if not tiling.axes:
        values = math.prod(shape)
        extent = tiling.tile_shape[0] or values
        return Cut((extent,), (_count(values, extent),), ())
    order = tuple(tiling.axes[place] for place in tiling.perm) if tiling.perm else tiling.axes
    sizes = dict(zip(tiling.axes, tiling.tile_shape, strict=True))
    tile = tuple(sizes.get(axis) or size for axis, size in enumerate(shape))
    return Cut(tile, tuple(_count(shape[axis], tile[axis]) for axis in order), order)


def apart(tiles: Cut, rank: int) -> tuple[Shape, Shape, tuple[int, ...]]:
    """How a tensor behind `rank` other axes is taken into tiles.

    Returns its padded shape, that shape with each cut axis split into grid and tile, and the order of the split axes in
    which the tiles follow one another in memory.
    """
    whole: list[int] = []
    split: list[int] = []
    grid_axes: dict[int, int] = {}
    tile_axes: dict[int, int] = {}
    for axis, size in enumerate(tiles.tile):
        count = 1
        if axis in tiles.order:
            count = tiles.grid[tiles.order.index(axis)]
            grid_axes[axis] = rank + len(split)
            split.append(count)
        tile_axes[axis] = rank + len(split)
        split.append(size)
        whole.append(count * size)
    order = (
        *range(rank),
        *(grid_axes[axis] for axis in tiles.order),
        *(tile_axes[axis] for axis in tiles.element_order),
    )
    return tuple(whole), tuple(split), order


def _count(size: int, extent: int) -> int:
    return 1 if size == extent else -(-size // extent)
