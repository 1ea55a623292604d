"""Literal forms of the rest: structured blocks, outliers, tilings without quantization, casts and a plugin."""

from collections.abc import Callable
from functools import cache
from typing import Final

from ninfer_core.schemes.form import REQUIRED, Parameter, Params, Shape
from ninfer_core.schemes.literal.spec import Spec, integer, number
from ninfer_core.schemes.profiles.model import (
    BlockField,
    BlockLayout,
    Cast,
    FieldWeight,
    Function,
    Linear,
    Order,
    Quantization,
    ScaleFloat,
    Scatter,
    Sparse,
    StructuredBlock,
    Tiling,
)

_INDEX: Final = (FieldWeight("CODE", 1), FieldWeight("SIGN", 16))
_SCATTER: Final = Scatter(64, 4, 16)
_PREPACKED: Final = "(v - zero point) x scale + bias in binary32, each step rounded."


@cache
def stq1_0_codebook() -> tuple[float, ...]:
    """Sherry's 32 entries of four lanes, entry after entry."""
    from ninfer_core.schemes.ggml.tables import stq1_0_lanes

    return tuple(float(lane) for lane in stq1_0_lanes().ravel())


def _stq1_0(shape: Shape, params: Params) -> Quantization:
    layout = BlockLayout(
        256,
        42,
        (
            BlockField("CODE", 0, 4, 64),
            BlockField("SIGN", 256, 1, 64),
            BlockField("SCALE", 320, 16, 1, "FLOAT16"),
        ),
    )
    kind = StructuredBlock(
        layout, stq1_0_codebook(), 4, _INDEX, _SCATTER, block_name="STQ1_0_BLOCK_256", described=True
    )
    return Quantization(kind, "STQ1_0", "FLOAT")


def _stq1_0_design(shape: Shape, params: Params) -> Quantization:
    layout = BlockLayout(
        256,
        42,
        (
            BlockField("CODE", 0, 4, 64),
            BlockField("SIGN", 256, 1, 64, name="packed_sign", carrier="UINT4"),
            BlockField("SCALE", 320, 16, 1, "FLOAT16", scalar=True),
        ),
    )
    kind = StructuredBlock(
        layout, stq1_0_codebook(), 4, _INDEX, _SCATTER, block_name="STQ1_0_BLOCK", bare=True
    )
    return Quantization(kind, "STQ1_0_TENSOR")


def _prepacked(order: Order) -> Callable[[Shape, Params], Quantization]:
    fields = [
        BlockField("VALUES", 0, 4, 32),
        BlockField("SCALE", 128, 16, 1, "FLOAT16", scalar=True),
        BlockField("ZERO_POINT", 144, 8, 1, scalar=True),
        BlockField("BIAS", 152, 32, 1, "FLOAT", scalar=True),
    ]
    if order == "SEQUENTIAL":
        fields = [
            BlockField(item.role, 0, item.bit_width, item.count, item.data_type, scalar=item.scalar)
            for item in fields
        ]
    kind = StructuredBlock(BlockLayout(32, 23, tuple(fields)), storage_order=order)
    quantization = Quantization(kind, "PREPACKED_LINEAR")
    return lambda shape, params: quantization


def _spqr(shape: Shape, params: Params) -> Quantization:
    linear = Linear("INT4", 3, False, ScaleFloat(params["scale"]), params["zero_point"], -1)
    block = Quantization(linear, "SPQR_INT3_BLOCK_16")
    base = Quantization(Tiling((16,), (block,), field="blocks"), "SPQR_DENSE_TILES")
    sparse = Sparse(base, "FLOAT16", params["threshold"], params["ratio"], params["outliers"], prefixed=True)
    return Quantization(sparse, "SPQR")


def _floats(
    tile: tuple[int, int], perm: tuple[int, ...], inner: str, outer: str
) -> Callable[[Shape, Params], Quantization]:
    def build(shape: Shape, params: Params) -> Quantization:
        size = tuple(params.get("tile", tile))
        element = Quantization(Cast("FLOAT"), inner, "FLOAT")
        return Quantization(Tiling(size, (element,), (0, 1), perm), outer)

    return build


def _cast(shape: Shape, params: Params) -> Quantization:
    return Quantization(Cast("BFLOAT16"), "CAST", "FLOAT")


def _plugin(shape: Shape, params: Params) -> Quantization:
    kind = Function("UINT4", 4, params["quantize_op"], params["dequantize_op"])
    return Quantization(kind, "VENDOR_QUANTIZE_V2")


BLOCKS: tuple[Spec, ...] = (
    Spec(
        "stq1_0_catalogue_420",
        "Blocks of 256 ternary values: 64 codes, 64 sign bits in eight bytes, a FLOAT16 scale; 32 vectors of four lanes.",
        _stq1_0,
        rate=(256, 42),
        encoding="canonical",
        notes="1.3125 bits for each weight, not the 1.25 of its title. The same bytes as stq1_0.",
    ),
    Spec(
        "stq1_0_design_page_420",
        "The same bytes with the sign bits as sixteen UINT4, and a bare array as the root.",
        _stq1_0_design,
        rate=(256, 42),
        encoding="canonical",
        notes="Table, formula and scatter stand nowhere in the structure; the metadata keep them.",
    ),
    Spec(
        "structured_block_prepacked_interleaved",
        "Blocks of 32 four-bit values with scale, zero point and bias, block after block.",
        _prepacked("INTERLEAVED"),
        rate=(32, 23),
        notes=_PREPACKED,
    ),
    Spec(
        "structured_block_prepacked_sequential",
        "Blocks of 32 four-bit values with scale, zero point and bias, one region for each field.",
        _prepacked("SEQUENTIAL"),
        rate=(32, 23),
        notes=_PREPACKED,
    ),
    Spec(
        "spqr_literal",
        "Blocks of 16 three-bit codes and FLOAT16 outliers at flat indices that replace their values (R12).",
        _spqr,
        (
            Parameter("outliers", "integer", "how many outliers are stored", REQUIRED),
            number("scale", 0.01, "the constant scale of the base"),
            integer("zero_point", 4, "the constant zero point of the base"),
            number("threshold", 6.0, "from which magnitude a weight is an outlier, when encoding"),
            number("ratio", 0.01, "the fraction of outliers that was aimed at"),
        ),
        encoding="nearest",
        notes="The tool adds outliers instead of replacing, and scales its blocks; see spqr.",
    ),
    Spec(
        "block_tiled_float",
        "A matrix of FLOAT in tiles, tile row after tile row, row-major inside of a tile.",
        _floats((32, 128), (), "FLOAT_TILE", "BLOCK_TILED_FLOAT"),
        (Parameter("tile", "integers", "rows and columns of a tile", (32, 128)),),
        axes=("rows", "columns"),
        encoding="canonical",
    ),
    Spec(
        "column_major_float",
        "A matrix of FLOAT stored column after column: one tile whose axes are exchanged (R10).",
        _floats((0, 0), (1, 0), "FLOAT_MATRIX", "COLUMN_MAJOR_FLOAT"),
        axes=("rows", "columns"),
        encoding="canonical",
    ),
    Spec(
        "cast_bfloat16",
        "Values cast to BFLOAT16.",
        _cast,
        rate=(1, 2),
        encoding="canonical",
    ),
    Spec(
        "custom_plugin_uint4",
        "Four-bit codes that only an operator of another vendor can read.",
        _plugin,
        (
            Parameter("quantize_op", "text", "the operator that wrote the codes", "vendor::QuantizeV2"),
            Parameter("dequantize_op", "text", "the operator that reads them", "vendor::DequantizeV2"),
        ),
        rate=(2, 1),
        arithmetic="none: the operator's numbers are its vendor's",
        notes="Structure and size are checked, and the codes can be looked at; their numbers are not known here.",
    ),
)
