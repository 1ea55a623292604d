"""The scalar types that a structure is made of: their widths in bits and their numbers in ONNX."""

from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.registry import Closed

LeafKind = Literal["bool", "unsigned", "signed", "float"]


@dataclass(frozen=True, slots=True)
class LeafType:
    """A scalar of the payload: `bits` wide, low bit first; `onnx` is its number in TensorProto.DataType."""

    name: str
    bits: int
    kind: LeafKind
    onnx: int


LEAVES: Final[Closed[LeafType]] = Closed(
    "leaf type",
    LeafType("BOOL", 8, "bool", 9),
    LeafType("UINT2", 2, "unsigned", 25),
    LeafType("UINT4", 4, "unsigned", 21),
    LeafType("UINT8", 8, "unsigned", 2),
    LeafType("UINT16", 16, "unsigned", 4),
    LeafType("UINT32", 32, "unsigned", 12),
    LeafType("UINT64", 64, "unsigned", 13),
    LeafType("INT2", 2, "signed", 26),
    LeafType("INT4", 4, "signed", 22),
    LeafType("INT8", 8, "signed", 3),
    LeafType("INT16", 16, "signed", 5),
    LeafType("INT32", 32, "signed", 6),
    LeafType("INT64", 64, "signed", 7),
    LeafType("FLOAT4E2M1", 4, "float", 23),
    LeafType("FLOAT6E2M3", 6, "float", 27),
    LeafType("FLOAT6E3M2", 6, "float", 28),
    LeafType("FLOAT8E4M3FN", 8, "float", 17),
    LeafType("FLOAT8E4M3FNUZ", 8, "float", 18),
    LeafType("FLOAT8E5M2", 8, "float", 19),
    LeafType("FLOAT8E5M2FNUZ", 8, "float", 20),
    LeafType("FLOAT8E8M0", 8, "float", 24),
    LeafType("FLOAT16", 16, "float", 10),
    LeafType("BFLOAT16", 16, "float", 16),
    LeafType("FLOAT", 32, "float", 1),
    LeafType("DOUBLE", 64, "float", 11),
)
