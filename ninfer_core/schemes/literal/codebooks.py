"""Literal forms with codebooks: ternary and binary, NF4, additive vectors, lattices."""

from functools import cache
from typing import Final

from ninfer_core.schemes.form import REQUIRED, Parameter, Params, Shape
from ninfer_core.schemes.literal.spec import Spec, number
from ninfer_core.schemes.profiles.model import (
    Codebook,
    Quantization,
    Rotation,
    ScaleField,
    ScaleFloat,
    Tiling,
)

NF4_ROUNDED: Final = (
    -1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
    0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0,
)  # fmt: skip
TERNARY: Final = (-1.0, 0.0, 1.0)
_SCALE: Final = "the constant scale of all values"


def _nf4(shape: Shape, params: Params) -> Quantization:
    return Quantization(Codebook(NF4_ROUNDED, ScaleFloat(params["scale"]), 2, 1, 1, 16, 1, 0), "NF4")


def _ternary(shape: Shape, params: Params) -> Quantization:
    return Quantization(Codebook(TERNARY, ScaleFloat(params["scale"]), 5, 1, 1, 3, 1, 0), "TERNARY_1_58")


def _binary(shape: Shape, params: Params) -> Quantization:
    return Quantization(Codebook((-1.0, 1.0), ScaleFloat(params["scale"]), 8, 1, 1, 2, 1, 1), "BINARY")


def _tq1_0(shape: Shape, params: Params) -> Quantization:
    block = Quantization(Codebook(TERNARY, ScaleField("FLOAT16"), 5, 1), "TQ1_0_BLOCK_256")
    return Quantization(Tiling((256,), (block,), field="blocks"), "TQ1_0", "FLOAT16")


def _tq2_0(shape: Shape, params: Params) -> Quantization:
    codebook = Codebook(TERNARY, ScaleField("FLOAT16"), 4, 1, index_bits=2)
    block = Quantization(codebook, "TQ2_0_BLOCK_256", unstated=("index_bits",))
    return Quantization(Tiling((256,), (block,), field="blocks"), "TQ2_0", "FLOAT16")


def _aqlm(shape: Shape, params: Params) -> Quantization:
    codebook = Codebook(params["codebooks"], num_codebooks=2, codebook_size=256, vector_size=8, index_bits=8)
    return Quantization(codebook, "AQLM_2X8")


@cache
def iq1_s_grid() -> tuple[float, ...]:
    """The published table of IQ1_S, 2048 entries of eight values."""
    from ninfer_core.schemes.data import tables

    return tuple(float(value) for value in tables("ggml_iq_grids")["iq1_s"].ravel())


def _iq1_s(shape: Shape, params: Params) -> Quantization:
    codebook = Codebook(
        iq1_s_grid(), ScaleField("FLOAT16"), num_codebooks=1, codebook_size=2048, vector_size=8, index_bits=11
    )
    block = Quantization(codebook, "IQ1_S_BLOCK_256")
    return Quantization(Tiling((256,), (block,), field="blocks"), "IQ1_S_TILES")


def _quip_sharp(shape: Shape, params: Params) -> Quantization:
    codebook = Codebook(params["codebook"], num_codebooks=1, codebook_size=256, vector_size=8, index_bits=8)
    rows, columns = shape if len(shape) == 2 else (0, 0)
    return Quantization(
        codebook,
        "QUIP_SHARP",
        pre_rotation=Rotation("HADAMARD", (columns, columns)),
        post_rotation=Rotation("HADAMARD", (rows, rows)),
    )


CODEBOOKS: tuple[Spec, ...] = (
    Spec(
        "nf4_literal",
        "Two indices in each byte, the first in the low nibble; a rounded table and no block scale.",
        _nf4,
        (number("scale", 1.0, _SCALE),),
        rate=(2, 1),
        encoding="nearest",
        notes="Files have the other nibble order and an absmax for each block; see bnb_nf4.",
    ),
    Spec(
        "ternary_1_58",
        "Five base-3 digits in each byte, the first least significant (R2), with a constant scale.",
        _ternary,
        (number("scale", 0.5, _SCALE),),
        rate=(5, 1),
        encoding="nearest",
    ),
    Spec(
        "tq1_0_literal",
        "Blocks of 256 as 52 base-3 bytes, the last with one digit, and a FLOAT16 scale.",
        _tq1_0,
        rate=(256, 54),
        encoding="canonical",
        notes="Serves BitNet b1.58, ParetoQ's ternary variant and Tequila as well. As many bytes as GGML's block, "
        "with digits in another order.",
    ),
    Spec(
        "tq2_0_literal",
        "Blocks of 256 two-bit indices and a FLOAT16 scale.",
        _tq2_0,
        rate=(256, 66),
        encoding="canonical",
        notes="The seed leaves index_bits at 0, which would be base 3 by R2, while its text says two bits: two bits.",
    ),
    Spec(
        "aqlm_2x8",
        "Each eight values are the sum of two entries, one of each codebook; no scale (R8).",
        _aqlm,
        (Parameter("codebooks", "numbers", "2 x 256 x 8 numbers, codebook after codebook", REQUIRED),),
        rate=(8, 2),
        notes="Indices are stored vector after vector, as the structure says; the pseudo-code goes by codebook.",
    ),
    Spec(
        "binary_literal",
        "One bit for each value, low bits first: 0 is -1, 1 is +1; a constant scale.",
        _binary,
        (number("scale", 0.25, _SCALE),),
        rate=(8, 1),
        encoding="nearest",
        notes="Defined here: the seed has a line in its table and no structure.",
    ),
    Spec(
        "iq1_s_literal",
        "Blocks of 256 as 32 indices of 11 bits into a table of 2048 vectors, and a FLOAT16 scale.",
        _iq1_s,
        rate=(256, 46),
        notes="GGML's block has 50 bytes, with a scale and a delta for each 32 values; see ggml_iq1_s.",
    ),
    Spec(
        "quip_sharp_literal",
        "Indices of eight bits into a table of vectors, with a Hadamard matrix on either side.",
        _quip_sharp,
        (Parameter("codebook", "numbers", "256 x 8 numbers, entry after entry", REQUIRED),),
        axes=("out", "in"),
        arithmetic="Hadamard transforms by sums and differences in binary32; other orders of the sum differ by about "
        "1e-5 of the largest value.",
    ),
)
