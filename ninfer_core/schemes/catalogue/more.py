"""What the seed's text defines beside its table, and the GGML blocks that files hold beside the rows."""

from typing import Final

from ninfer_core.schemes.catalogue.scheme import Scheme

MORE: Final = (
    Scheme(
        "column_major",
        "Column-major layout",
        None,
        "Tiling + Cast",
        "",
        "Plain floats whose bytes are those of the transpose.",
        ("column_major_float",),
        contradictions=(
            "The declared array is [M, N] while its bytes stand in the order of N x M; a single tile whose `perm` orders "
            "the elements says so (R10).",
        ),
    ),
    Scheme(
        "block_tiled_float",
        "Block-tiled floats (no quantization)",
        None,
        "Tiling + Cast",
        "",
        "Plain floats in tiles, row by row inside and across.",
        ("block_tiled_float",),
        contradictions=(
            "`perm` orders the grid here and the elements in the column-major example; one reading serves both (R10).",
        ),
    ),
    Scheme(
        "cast_bfloat16",
        "CastUniformProto",
        None,
        "Cast",
        "",
        "Values of another floating-point type, as they are.",
        ("cast_bfloat16",),
    ),
    Scheme(
        "prepacked_linear",
        "StructuredBlockUniformProto with VALUES",
        None,
        "StructuredBlock",
        "",
        "Blocks of codes with scale, zero point and bias of their own, interleaved or region by region.",
        ("structured_block_prepacked_interleaved", "structured_block_prepacked_sequential"),
        contradictions=("The roles MASK and EXPONENT have numbers and no defined effect.",),
    ),
    Scheme(
        "float6_e3m2",
        "FLOAT6_E3M2",
        None,
        "FloatingPoint",
        "",
        "Six-bit floats as a packed array of sign, exponent and mantissa.",
        ("float6_e3m2_declared_order_ieee", "float6_e3m2_tensor_1000"),
        contradictions=(
            "The components stand in the order sign, exponent, mantissa, which puts the sign lowest, unlike every file "
            "format and ONNX's own six-bit float.",
            "One name is used for two types, with and without infinities and NaN (largest value 14, or 28).",
        ),
    ),
    Scheme(
        "plugin",
        "Custom (plugin-based)",
        None,
        "Function",
        "",
        "A payload of codes whose meaning operators of another domain have.",
        ("custom_plugin_uint4",),
        contradictions=(
            "Without portable operators there is no decoder; the payload is seen and its size is checked.",
        ),
    ),
    Scheme(
        "ggml",
        "GGML blocks beside the rows",
        None,
        "none",
        "",
        "The other block types of GGUF files: legacy quants, IQ grids, plain BF16.",
        (),
        (
            "ggml_q4_0",
            "ggml_q4_1",
            "ggml_q5_0",
            "ggml_q5_1",
            "ggml_q8_0",
            "ggml_iq4_xs",
            "ggml_iq2_xxs",
            "ggml_iq2_xs",
            "ggml_iq2_s",
            "ggml_iq3_xxs",
            "ggml_iq3_s",
            "ggml_iq1_m",
            "ggml_bf16",
        ),
    ),
)
