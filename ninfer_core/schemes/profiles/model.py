"""Descriptive profiles: the nine kinds of quantization and rotations of the seed, as frozen data.

Nothing here is a message or a document of its own. A profile translates to a struct type and back; the checker judges
it, so that a malformed one has a place in these classes too. What the specialized declarations leave open and the rules
R1 to R17 decide (where a scale is stored, which leaf carries the codes) is a parameter as well.

A parameter that is None is not stated; where the seed gives 0 a meaning of its own, None means the same. Numbers are
those of binary32, since constants of a type are stored so.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.schemes.profiles.model_blocks import (
    LEAF_WIDTHS,
    ORDERS,
    ROLES,
    BlockField,
    BlockLayout,
    FieldWeight,
    Function,
    Order,
    Role,
    Scatter,
    StructuredBlock,
)
from ninfer_core.schemes.profiles.model_values import (
    Carrier,
    Codebook,
    FloatingPoint,
    Linear,
    Log,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Unit,
    ZeroField,
    ZeroPoint,
    single,
    singles,
)

__all__ = [
    "LEAF_WIDTHS",
    "NAMES",
    "ORDERS",
    "ROLES",
    "BlockField",
    "BlockLayout",
    "Carrier",
    "Cast",
    "Codebook",
    "FieldWeight",
    "FloatingPoint",
    "Function",
    "Kind",
    "Linear",
    "Log",
    "Order",
    "Quantization",
    "Role",
    "Rotation",
    "Scale",
    "ScaleField",
    "ScaleFloat",
    "ScaleInt",
    "ScaleVector",
    "Scatter",
    "Sparse",
    "StructuredBlock",
    "Tiling",
    "Unit",
    "ZeroField",
    "ZeroPoint",
    "single",
    "singles",
]


@dataclass(frozen=True, slots=True)
class Sparse:
    """A base, and outliers at flat row-major indices that replace its values (R12).

    `prefixed` names the fields `outlier_indices` and `outlier_values` and states their type, as the SpQR example does.
    """

    base: "Quantization"
    outlier_data_type: str
    outlier_threshold: float
    outlier_ratio: float
    outliers: int
    prefixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "outlier_threshold", single(self.outlier_threshold))
        object.__setattr__(self, "outlier_ratio", single(self.outlier_ratio))


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiles of one or several axes (R10, R17); no axes: of the flattened tensor.

    `field` names the array of tiles. `stacked`: linear tiles that differ in scale and zero point alone share one array
    of codes. `shape_in_tile`: the tile's declaration states its shape, not the root.
    """

    tile_shape: tuple[int, ...]
    elem_quant: tuple["Quantization", ...]
    axes: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    field: str = "tiles"
    stacked: bool = False
    shape_in_tile: bool = False

    def __post_init__(self) -> None:
        first = self.elem_quant[:1]
        if self.elem_quant == first * len(self.elem_quant) and not self.stacked:
            object.__setattr__(self, "elem_quant", first)  # one quantization, repeated


@dataclass(frozen=True, slots=True)
class Cast:
    """Values of another type."""

    storage_type: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation beside a quantization (R11); a plain one holds its `matrix`, of one dim a diagonal."""

    matrix_type: Literal["HADAMARD", "PLAIN"]
    dims: tuple[int, ...]
    matrix: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", singles(self.matrix))


Kind = Linear | Codebook | FloatingPoint | Sparse | Log | Function | Tiling | Cast | StructuredBlock

NAMES: Final[dict[type, str]] = {
    Linear: "LINEAR",
    Codebook: "CODEBOOK",
    FloatingPoint: "FLOATING_POINT",
    Sparse: "SPARSE_QUANTIZED",
    Log: "LOG_UNIFORM",
    Function: "FUNCTION_QUANTIZED",
    Tiling: "TILED",
    Cast: "CAST",
    StructuredBlock: "STRUCTURED_BLOCK",
}


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a tensor is quantized. `data_type` is the type it had; `name` is that of the declaration.

    `unstated` names parameters that the seed's own structure leaves out: they go to the metadata, not to constants.
    """

    kind: Kind
    name: str = ""
    data_type: str | None = None
    doc: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    pre_rotation: Rotation | None = None
    post_rotation: Rotation | None = None
    unstated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or NAMES[type(self.kind)])
        object.__setattr__(self, "unstated", tuple(sorted(set(self.unstated))))
