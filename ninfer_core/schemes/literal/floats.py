"""Literal forms of small floats: stand-alone six-bit floats, split storage, microscaling blocks, NVFP4, logarithms."""

from collections.abc import Callable
from math import prod
from typing import Final

from ninfer_core.schemes.form import Params, Shape
from ninfer_core.schemes.literal.spec import Spec, number
from ninfer_core.schemes.profiles.model import (
    FloatingPoint,
    Log,
    Quantization,
    ScaleField,
    Tiling,
    Unit,
)

# name, exponent and mantissa bits, bias, packing, leaf or none for a stream, scale, block, declarations, type before
_BLOCKS: Final = (
    ("mxfp4_literal", 2, 1, 1, (2, 1), "FLOAT4E2M1", "FLOAT8E8M0", 32, "MXFP4_E2M1_BLOCK_32", "MXFP4_TILES", None),
    ("mxfp6_e3m2_literal", 3, 2, 3, (4, 3), None, "FLOAT8E8M0", 32, "MXFP6_E3M2_BLOCK_32", "MXFP6_E3M2_TILES", None),
    ("mxfp6_e2m3_literal", 2, 3, 1, (4, 3), None, "FLOAT8E8M0", 32, "MXFP6_E2M3_BLOCK_32", "MXFP6_E2M3_TILES", None),
    ("nvfp4_literal", 2, 1, 1, (2, 1), "FLOAT4E2M1", "FLOAT8E4M3FN", 16, "NVFP4_E2M1_BLOCK_16", "NVFP4", "FLOAT16"),
)  # fmt: skip
_NOTES: Final = {
    "mxfp4_literal": "The scale follows the codes; GGML's block has it first and another order of nibbles.",
    "mxfp6_e3m2_literal": "Four codes in three bytes, low bits first, the sign on top of a code (R1).",
    "mxfp6_e2m3_literal": "The catalogue's E3M2 block with the other six-bit float.",
    "nvfp4_literal": "Without the second scale of the tensor that files have, and not the registry's NVFP4.",
}


def _scaled(
    exponent: int, mantissa: int, bias: int, packing: tuple[int, int], leaf: str | None, scale: str, size: int,
    inner: str, outer: str, data_type: str | None,
) -> Callable[[Shape, Params], Quantization]:  # fmt: skip
    kind = FloatingPoint(
        1, exponent, mantissa, bias, False, False, False, *packing,
        carrier="native" if leaf else "bytes", leaf=leaf, scale=ScaleField(scale),
    )  # fmt: skip
    block = Quantization(kind, inner)
    whole = Quantization(Tiling((size,), (block,), field="blocks"), outer, data_type)
    return lambda shape, params: whole


def _declared_order(shape: Shape, params: Params) -> Quantization:
    count = prod(shape)
    kind = FloatingPoint(1, 3, 2, 3, True, True, False, count, 6 * count // 8)
    return Quantization(kind, "FLOAT6_E3M2")


def _tensor_1000(shape: Shape, params: Params) -> Quantization:
    count = prod(shape)
    kind = FloatingPoint(1, 3, 2, 3, False, False, False, count, 6 * count // 8, bare=True, parameter="N")
    return Quantization(kind, "FLOAT6_E3M2_TENSOR")


def _fp6_llm(shape: Shape, params: Params) -> Quantization:
    kind = FloatingPoint(1, 3, 2, 3, False, False, True, 4, 3, unit=Unit("FLOAT6_E3M2_SPLIT"))
    tile = Quantization(kind, "FP6_LLM_TILE_128")
    return Quantization(Tiling((128,), (tile,), shape_in_tile=True), "FP6_LLM_TILES")


def _log(has_sign: bool) -> Callable[[Shape, Params], Quantization]:
    return lambda shape, params: Quantization(Log(4, params["base"], params["offset"], has_sign), "LOG4")


_LOG_PARAMETERS: Final = (
    number("base", 2.0, "the base of the logarithm"),
    number("offset", -7.0, "what is added to a code to give the exponent"),
)

FLOATS: tuple[Spec, ...] = (
    *(
        Spec(
            row[0],
            f"Blocks of {row[7]} values E{row[1]}M{row[2]} and one {row[6]} scale after them.",
            _scaled(*row[1:]),
            rate=(row[7], row[7] * (1 + row[1] + row[2]) // 8 + 1),
            encoding="nearest" if row[0] == "nvfp4_literal" else "canonical",
            notes=_NOTES[row[0]],
        )
        for row in _BLOCKS
    ),
    Spec(
        "float6_e3m2_declared_order_ieee",
        "Six-bit floats whose lowest bit is the sign, with infinities and NaN.",
        _declared_order,
        rate=(4, 3),
        encoding="nearest",
        notes="The declared order of components puts the sign lowest, unlike every file and ONNX's own six-bit float.",
    ),
    Spec(
        "float6_e3m2_tensor_1000",
        "The same six bits as a bare array whose count belongs to the value; every code is a number.",
        _tensor_1000,
        rate=(4, 3),
        encoding="nearest",
        notes="Bias and special values stand nowhere in the type; the finite rule is used, and the metadata say so.",
    ),
    Spec(
        "fp6_llm_literal",
        "Units of four values: four signs with exponents, then four mantissas; no scale.",
        _fp6_llm,
        rate=(128, 96),
        encoding="nearest",
        notes="The tool splits two and four bits, not four and two, and has a scale for each row; see fp6_llm. The unit "
        "has a name of its own, since another declaration is called FLOAT6_E3M2 already.",
    ),
    Spec(
        "log4_split_sign",
        "Four-bit exponents and a plane of sign bits, 1 for negative (R13).",
        _log(True),
        _LOG_PARAMETERS,
        rate=(8, 5),
        encoding="nearest",
        arithmetic="The power in binary64 rounded once to binary32: exact for base 2.",
        notes="Zero cannot be said; it is encoded as the smallest magnitude, positive.",
    ),
    Spec(
        "log4_unsigned",
        "Four-bit exponents of positive values.",
        _log(False),
        _LOG_PARAMETERS,
        rate=(2, 1),
        encoding="nearest",
        arithmetic="The power in binary64 rounded once to binary32: exact for base 2.",
    ),
)
