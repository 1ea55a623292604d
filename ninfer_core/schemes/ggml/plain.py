"""Decoders of the block types with one scale for 32 weights or more, and of the types of one bit."""

from typing import Final

import numpy as np

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml import encoders, rules
from ninfer_core.schemes.ggml.block import C_ALONE, C_AND_GGUF, N32, Block, Blocks, D, M, field
from ninfer_core.schemes.ggml.pieces import Codes, Words, bits, half, nibbles, real
from ninfer_core.schemes.ggml.tables import DOUBLED_E2M1, mxfp4_table, nvfp4_scales
from ninfer_core.words import expand_bf16

QH: Final = field("qh", "UINT32", doc="bit i is bit 4 of code i")


def bf16(blocks: Blocks) -> Values:
    """The upper half of a binary32 word."""
    return expand_bf16(blocks["value"]).view(np.float32)[:, None]


def q4_0(blocks: Blocks) -> Values:
    """d (q - 8)."""
    return half(blocks["d"])[:, None] * (real(nibbles(blocks["qs"])) - 8)


def q4_1(blocks: Blocks) -> Values:
    """d q + m."""
    return half(blocks["d"])[:, None] * real(nibbles(blocks["qs"])) + half(blocks["m"])[:, None]


def q5_0(blocks: Blocks) -> Values:
    """d (q - 16)."""
    return half(blocks["d"])[:, None] * (real(_five_bits(blocks)) - 16)


def q5_1(blocks: Blocks) -> Values:
    """d q + m."""
    return half(blocks["d"])[:, None] * real(_five_bits(blocks)) + half(blocks["m"])[:, None]


def q8_0(blocks: Blocks) -> Values:
    """d q."""
    return half(blocks["d"])[:, None] * real(blocks["qs"])


def q1_0(blocks: Blocks) -> Values:
    """d where the bit is set, else -d."""
    d = half(blocks["d"])[:, None]
    return np.where(bits(blocks["bits"]) == 1, d, -d)


def mxfp4(blocks: Blocks) -> Values:
    """Twice E2M1 times 2**(e - 128), from a table: the product may be subnormal, which a processor can be told to flush."""
    exponents, codes = blocks["e"], nibbles(blocks["qs"])
    values: Values = mxfp4_table()[exponents[:, None], codes]
    return values


def nvfp4(blocks: Blocks) -> Values:
    """Twice E2M1 times half the scale of each sixteen."""
    codes = DOUBLED_E2M1[nibbles(blocks["qs"])]  # [n, 4, 16]
    scales = nvfp4_scales()[blocks["scale"]]
    values: Values = (real(codes) * scales[:, :, None]).reshape(-1, 64)
    return values


def _five_bits(blocks: Blocks) -> Codes:
    high: Words = blocks["qh"][:, None] >> np.arange(32, dtype=np.uint32) & 1
    codes: Codes = nibbles(blocks["qs"]) | high.astype(np.uint8) << 4
    return codes


PLAIN: Final = (
    Block(
        "BF16",
        30,
        1,
        (field("value", "BFLOAT16"),),
        "the upper half of binary32, one value at a time",
        bf16,
        C_AND_GGUF,
        rules=(rules.finite_values,),
        encode=encoders.bf16,
        direct=True,
    ),
    Block("Q4_0", 2, 32, (D, N32), "d (q - 8)", q4_0, C_AND_GGUF, ("d",), encode=encoders.q4_0),
    Block("Q4_1", 3, 32, (D, M, N32), "d q + m", q4_1, C_AND_GGUF, ("d", "m"), ("d",), encode=encoders.q4_1),
    Block("Q5_0", 6, 32, (D, QH, N32), "d (q - 16)", q5_0, C_AND_GGUF, ("d",), encode=encoders.q5_0),
    Block(
        "Q5_1", 7, 32, (D, M, QH, N32), "d q + m", q5_1, C_AND_GGUF, ("d", "m"), ("d",), encode=encoders.q5_1
    ),
    Block(
        "Q8_0",
        8,
        32,
        (D, field("qs", "INT8", 32)),
        "d q",
        q8_0,
        C_AND_GGUF,
        ("d",),
        ("d",),
        encode=encoders.q8_0,
    ),
    Block(
        "Q1_0",
        41,
        128,
        (D, field("bits", "UINT8", 16, doc="low bit first")),
        "d or -d",
        q1_0,
        C_ALONE,
        ("d",),
        ("d",),
        encode=encoders.q1_0,
    ),
    # Scales of the next two are bytes: these decoders do not read them as E8M0 and E4M3FN say.
    Block(
        "MXFP4",
        39,
        32,
        (field("e", "UINT8", doc="exponent + 127"), N32),
        "E2M1[q] times 2**(e - 127)",
        mxfp4,
        C_AND_GGUF,
        rules=(rules.power_of_two,),
        encode=encoders.mxfp4,
        notes="The scale comes first and nibbles are split in halves, unlike MXFP4 elsewhere; e = 255 is read as 2**128.",
    ),
    Block(
        "NVFP4",
        40,
        64,
        (
            field("scale", "UINT8", 4, doc="E4M3, the sign left out"),
            field(
                "qs", "UINT8", 4, 8, doc="of each eight bytes, byte j holds code j low and code j + 8 high"
            ),
        ),
        "E2M1[q] times E4M3 scale, by sixteen",
        nvfp4,
        C_AND_GGUF,
        rules=(rules.unsigned_scales,),
        notes="Blocks of GGUF files: another arrangement than NVFP4 in safetensors, and no format of .ninfer files.",
    ),
)
