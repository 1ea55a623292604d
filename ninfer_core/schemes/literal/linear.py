"""Literal forms of linear quantization: per tensor, per channel, in blocks, in super-blocks and in tiles."""

from collections.abc import Callable
from typing import Final

from ninfer_core.schemes.form import REQUIRED, Parameter, Params, Shape
from ninfer_core.schemes.literal.spec import Spec, integer, number
from ninfer_core.schemes.profiles.model import (
    Linear,
    Quantization,
    Rotation,
    ScaleFloat,
    ScaleVector,
    Tiling,
)
from ninfer_core.schemes.run import refuse_parameter

_SCALE: Final = "the constant scale of all values (R7)"
_ZERO: Final = "the constant zero point of all values"
_STREAM: Final = "Codes are a low-bits-first stream, starting afresh in each block (R1)."
_RESOLVED: Final = (
    "Codes are unsigned, as zero points of 7 to 9 ask for (R4); the storage type stays as declared."
)
_DECLARED: Final = (
    "Codes are signed as declared, though zero points of 7 to 9 lie outside of their range (R4)."
)

# name, storage type, bits, leaf, scale, zero point, values of a block, names of the block and of the whole
_BLOCKS: Final = (
    ("exl2_layer_a", "INT4", 2, None, 0.005, 2, 128, "EXL2_INT2_BLOCK_128", "EXL2_LAYER_A", None, _STREAM),
    ("exl2_layer_b_resolved_uint4", "INT4", 4, "UINT4", 0.01, 8, 128, "EXL2_INT4_BLOCK_128", "EXL2_LAYER_B", None, _RESOLVED),
    ("exl3_literal", "UINT8", 3, None, 0.015, 4, 128, "EXL3_UINT3_BLOCK_128", "EXL3_LAYER", "FLOAT16", _STREAM),
    ("hqq_literal", "UINT8", 2, None, 0.032, 2, 64, "HQQ_UINT2_BLOCK_64", "HQQ_HEAD", "FLOAT16", _STREAM),
    ("paretoq_uint2", "UINT8", 2, None, 0.023, 1, 128, "PARETOQ_UINT2_BLOCK_128", "PARETOQ_UINT2", "FLOAT16", _STREAM),
    ("spqr_base", "INT4", 3, None, 0.01, 4, 16, "SPQR_INT3_BLOCK_16", "SPQR_DENSE_TILES", None, _STREAM),
    ("awq_block128_resolved_uint4", "INT4", 4, "UINT4", 0.01, 8, 128, "AWQ_INT4_BLOCK_128", "AWQ_INT4_TILES", None, _RESOLVED),
    ("awq_block128_declared_int4", "INT4", 4, None, 0.01, 8, 128, "AWQ_INT4_BLOCK_128", "AWQ_INT4_TILES", None, _DECLARED),
)  # fmt: skip

# name, storage type, bits, scale, zero point, values of a sub-block
_K_QUANTS: Final = (
    ("q2_k_literal", "UINT2", 2, 0.005, 1, 16),
    ("q3_k_literal", "UINT4", 3, 0.004, 3, 32),
    ("q4_k_literal", "UINT4", 4, 0.003, 2, 32),
    ("q5_k_literal", "UINT8", 5, 0.002, 4, 32),
    ("q6_k_literal", "UINT8", 6, 0.001, 5, 16),
)

# name, storage type, bits, scale, axis, name of the declaration
_WHOLE: Final = (
    ("int8_symmetric", "INT8", 8, 0.02, -1, "INT8_SYMMETRIC", "One constant scale for the tensor."),
    ("int4_symmetric_1024", "INT4", 4, 0.02, -1, "INT4_SYMMETRIC_1024", "One constant scale for the tensor."),
    ("int8_per_channel_scalar_scale", "INT8", 8, 0.03, 0, "INT8_PER_CHANNEL", "One scale although an axis is stated: it applies to all channels (R6)."),
    ("fp8_e4m3_per_tensor", "FLOAT8E4M3FN", 8, 1.0, -1, "FP8_E4M3_PER_TENSOR", "A cast, then the scale."),
)  # fmt: skip


def _linear(
    storage: str, bits: int, params: Params, axis: int = -1, leaf: str | None = None, symmetric: bool = False
) -> Linear:
    scale, zero = ScaleFloat(params["scale"]), params.get("zero_point", 0)
    return Linear(storage, bits, symmetric, scale, zero, axis, leaf)


def _tiles(
    size: int, block: Quantization, name: str, field: str = "blocks", data_type: str | None = None
) -> Quantization:
    # The stored types of these examples leave out the type before quantization, which the profiles state.
    return Quantization(
        Tiling((size,), (block,), field=field), name, data_type, unstated=("data_type",) if data_type else ()
    )


def _block(
    storage: str, bits: int, leaf: str | None, size: int, inner: str, outer: str, data_type: str | None
) -> Callable[[Shape, Params], Quantization]:
    def build(shape: Shape, params: Params) -> Quantization:
        return _tiles(
            size, Quantization(_linear(storage, bits, params, leaf=leaf), inner), outer, data_type=data_type
        )

    return build


def _k_quant(title: str, storage: str, bits: int, size: int) -> Callable[[Shape, Params], Quantization]:
    def build(shape: Shape, params: Params) -> Quantization:
        leaf = (
            "UINT8" if bits == 2 else None
        )  # the seed packs two bits into bytes, though UINT2 is its storage type
        block = Quantization(_linear(storage, bits, params, leaf=leaf), f"{title}_SUBBLOCK_{size}")
        return _tiles(
            256, _tiles(size, block, f"{title}_SUPERBLOCK_256", "subblocks"), f"{title}_TENSOR", "superblocks"
        )

    return build


def _whole(storage: str, bits: int, axis: int, title: str) -> Callable[[Shape, Params], Quantization]:
    return lambda shape, params: Quantization(_linear(storage, bits, params, axis, symmetric=True), title)


def _per_channel(shape: Shape, params: Params) -> Quantization:
    return Quantization(Linear("INT8", 8, True, ScaleVector(params["scale"]), 0, 0), "INT8_PER_CHANNEL")


def _smoothquant(shape: Shape, params: Params) -> Quantization:
    linear = Linear("INT8", 8, True, ScaleVector(params["scale"]), 0, 0)
    smooth = Rotation("PLAIN", (len(params["smooth"]),), params["smooth"])
    return Quantization(linear, "SMOOTHQUANT_INT8", "FLOAT", pre_rotation=smooth)


def _gptq(leaf: str | None) -> Callable[[Shape, Params], Quantization]:
    def build(shape: Shape, params: Params) -> Quantization:
        scales, zeros = params["scales"], params["zero_points"]
        if len(scales) != len(zeros):
            raise refuse_parameter(
                "gptq_1024_group128", "zero_points", f"one for each of {len(scales)} scales", len(zeros)
            )
        elements = tuple(
            Quantization(Linear("INT4", 4, False, ScaleFloat(scale), zero, -1, leaf))
            for scale, zero in zip(scales, zeros, strict=True)
        )
        return Quantization(Tiling((128,), elements, stacked=True), "GPTQ_INT4_1024_GROUP128")

    return build


def _matmulnbits(shape: Shape, params: Params) -> Quantization:
    tile = Quantization(_linear("UINT4", 4, params, symmetric=True), "MATMUL_NBITS_INT4_TILE_32X128")
    return Quantization(Tiling((32, 128), (tile,), (0, 1), (1, 0)), "MATMUL_NBITS_INT4")


def _quarot(leaf: str) -> Callable[[Shape, Params], Quantization]:
    def build(shape: Shape, params: Params) -> Quantization:
        block = Quantization(_linear("UINT8", 4, params, leaf=leaf, symmetric=True), "QUAROT_UINT4_BLOCK_128")
        hadamard = Rotation("HADAMARD", (shape[-1] if shape else 0,))
        return Quantization(
            Tiling((128,), (block,), field="blocks"), "QUAROT", "FLOAT16", pre_rotation=hadamard
        )

    return build


_GPTQ_PARAMETERS: Final = (
    Parameter("scales", "numbers", "the scale of each group of 128", (0.015, 0.012, 0.014, 0.013, 0.016, 0.011, 0.015, 0.012)),
    Parameter("zero_points", "integers", "the zero point of each group", (8, 7, 8, 8, 7, 8, 9, 8)),
)  # fmt: skip
_CHANNELS: Final = Parameter("scale", "numbers", "one scale for each output channel (R6)", REQUIRED)
_ROTATED: Final = (
    "Sums and differences of neighbours 1, 2, 4 .. apart in binary32, one product with 1/sqrt(n) last; other orders "
    "of the sum differ by about 1e-5 of the largest value."
)

LINEAR: tuple[Spec, ...] = (
    *(
        Spec(
            name, f"Blocks of {size}{'' if notes is _STREAM else f' {leaf or storage}'} codes of {bits} bits with a constant scale and zero point.",
            _block(storage, bits, leaf, size, inner, outer, data_type),
            (number("scale", scale, _SCALE), integer("zero_point", zero, _ZERO)),
            rate=(size, size * bits // 8), encoding="nearest", notes=notes,
        )
        for name, storage, bits, leaf, scale, zero, size, inner, outer, data_type, notes in _BLOCKS
    ),
    *(
        Spec(
            name, f"Super-blocks of 256 in sub-blocks of {size} codes of {bits} bits, with a constant scale and zero point.",
            _k_quant(name.removesuffix("_literal").upper(), storage, bits, size),
            (number("scale", scale, _SCALE), integer("zero_point", zero, _ZERO)),
            rate=(256, 32 * bits), encoding="nearest",
            notes="Shares nothing with the GGML block of this name: no scales, no minima, codes in another order." + (f" {_STREAM}" if bits != 4 else ""),
        )
        for name, storage, bits, scale, zero, size in _K_QUANTS
    ),
    *(
        Spec(
            name, notes, _whole(storage, bits, axis, title), (number("scale", scale, _SCALE),),
            rate=(8 // bits, 1), encoding="nearest",
        )
        for name, storage, bits, scale, axis, title, notes in _WHOLE
    ),
    Spec(
        "int8_per_channel_vector_scale", "One constant scale for each output channel (R6).", _per_channel,
        (_CHANNELS,), axes=("out", "in"), encoding="nearest",
    ),
    Spec(
        "smoothquant_resolved", "INT8 with a scale for each output channel; smoothing factors of the inputs are divided out (R11).",
        _smoothquant, (_CHANNELS, Parameter("smooth", "numbers", "one smoothing factor for each input channel", REQUIRED)),
        axes=("out", "in"), encoding="nearest",
        notes="The seed's axis 1 is resolved to 0, and its index of a matrix to the constant field pre_rotation.",
    ),
    *(
        Spec(
            name, f"Eight groups of 128 {leaf or 'INT4'} codes; scales and zero points are vectors over the groups.",
            _gptq(leaf), _GPTQ_PARAMETERS, rate=(128, 64), encoding="nearest", notes=notes,
        )
        for name, leaf, notes in (
            ("gptq_1024_group128_resolved_uint4", "UINT4", _RESOLVED),
            ("gptq_1024_group128_declared_int4", None, _DECLARED),
        )
    ),
    Spec(
        "matmulnbits_tiles_scale_half", "Tiles of 32 x 128 four-bit codes, stored tile column by tile column.",
        _matmulnbits, (number("scale", 0.5, "the constant scale; the seed says 0.0, which decodes to nothing but zeros"),),
        axes=("in", "out"), encoding="nearest",
        notes="The operator of this name knows no such tiles; see matmulnbits for what it takes.",
    ),
    *(
        Spec(
            name, "Blocks of 128 four-bit codes of a tensor whose rows were rotated by a Hadamard matrix.",
            _quarot(leaf), (number("scale", 0.018, _SCALE),), axes=("out", "in"), encoding="nearest",
            arithmetic=_ROTATED, notes=notes,
        )
        for name, leaf, notes in (
            ("quarot_declared_uint4", "UINT4", "Codes unsigned as declared, so that nothing decodes below zero before the rotation (R4)."),
            ("quarot_resolved_int4", "INT4", "Codes signed, as a symmetric scheme asks for (R4)."),
        )
    ),
)  # fmt: skip
