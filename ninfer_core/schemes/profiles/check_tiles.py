"""What makes a tiling and a rotation legal: axes, orders, counts of tiles, square matrices (R10, R11, R17)."""

import math
from typing import Any, Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.hadamard import is_size
from ninfer_core.schemes.profiles.faults import Faults
from ninfer_core.schemes.profiles.model import Linear, Quantization, Rotation, ScaleFloat, Tiling
from ninfer_core.schemes.profiles.numbers import finite, is_integer
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.structs.limits import LIMITS

_LONGEST: Final = 2**31 - 1  # the dimensions of a matrix are INT32


def check_tiling(kind: Tiling, shape: Shape, faults: Faults) -> None:
    """Every fault of a tiling itself; its tiles are checked with their own shape."""
    if not kind.elem_quant:
        faults.add("elements_illegal", "elem_quant", "no quantization of the tiles", "at least one", 0)
    if len(set(kind.axes)) != len(kind.axes) or not all(0 <= axis < len(shape) for axis in kind.axes):
        expected = f"different axes of {len(shape)}"
        faults.add("axes_invalid", "axes", "not axes of the tensor", expected, list(kind.axes))
    if kind.perm and sorted(kind.perm) != list(range(len(kind.axes))):
        expected = f"0 to {len(kind.axes) - 1}, each once"
        faults.add("perm_invalid", "perm", "no permutation of the axes", expected, list(kind.perm))
    if len(kind.tile_shape) != (len(kind.axes) or 1):
        message = "not one entry for each axis"
        faults.add("tile_shape", "tile_shape", message, len(kind.axes) or 1, len(kind.tile_shape))
    if faults.any:
        return
    tiles, quantizations = cut(kind, shape).count, len(kind.elem_quant)
    alike = quantizations == 1
    if (quantizations > tiles and not alike) or (kind.stacked and quantizations != tiles):
        faults.add("elements_illegal", "elem_quant", "not one for each tile", tiles, quantizations)
    if not alike and not kind.stacked and tiles > LIMITS.fields:
        message = "tiles of several quantizations have a field each"
        faults.add("elements_illegal", "elem_quant", message, f"up to {LIMITS.fields:,} tiles", tiles)
    if kind.stacked and (kind.axes or not all(map(_stacks, kind.elem_quant)) or not _alike(kind)):
        message = (
            "only linear tiles of a flattened tensor, alike but for scale and zero point, share their codes"
        )
        faults.add("elements_illegal", "stacked", message, "like linear tiles", "others")
    if kind.shape_in_tile and quantizations != 1:
        faults.add("elements_illegal", "shape_in_tile", "tiles differ", "one quantization", quantizations)


def _stacks(element: Quantization) -> bool:
    kind = element.kind
    if not isinstance(kind, Linear) or element != Quantization(kind):
        return False
    return isinstance(kind.scale, ScaleFloat) and isinstance(kind.zero_point, int)


def _alike(tiling: Tiling) -> bool:
    def rest(element: Quantization) -> Any:
        kind = element.kind
        return isinstance(kind, Linear) and (
            kind.storage_type, kind.bits, kind.symmetric, kind.axis, kind.leaf,
        )  # fmt: skip

    return len({rest(element) for element in tiling.elem_quant}) <= 1


def check_rotation(rotation: Rotation, part: str, shape: Shape, faults: Faults) -> None:
    """Every fault of a rotation before or after a quantization (R11)."""
    dims = rotation.dims
    axis = -2 if part == "post_rotation" and len(dims) == 2 else -1  # a full post-rotation stands on the left
    length = shape[axis] if len(shape) >= -axis else None
    if rotation.matrix_type not in ("HADAMARD", "PLAIN"):
        faults.add(
            "rotation_illegal", f"{part}_type", "no such type", "HADAMARD, PLAIN", rotation.matrix_type
        )
    elif len(dims) not in (1, 2) or not all(is_integer(size) for size in dims) or len(set(dims)) != 1:
        faults.add("rotation_illegal", f"{part}_dims", "not square", "[n] or [n, n]", list(dims))
    elif dims[0] != length:
        message = f"axis {axis} of the tensor has another size"
        faults.add("rotation_illegal", f"{part}_dims", message, length, dims[0])
    elif dims[0] > _LONGEST:
        faults.add("rotation_illegal", f"{part}_dims", "beyond INT32", _LONGEST, dims[0])
    elif rotation.matrix_type == "HADAMARD" and (not is_size(dims[0]) or rotation.matrix):
        message = "a power of two and no matrix"
        faults.add("rotation_illegal", f"{part}_dims", "no Hadamard rotation", message, dims[0])
    elif rotation.matrix_type == "PLAIN" and len(rotation.matrix) != math.prod(dims):
        faults.add("rotation_illegal", part, "another size", math.prod(dims), len(rotation.matrix))
    elif not all(map(finite, rotation.matrix)):
        faults.add("rotation_illegal", part, "not finite", "finite numbers", "others")
