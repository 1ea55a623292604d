"""The IQ types: their fields, and which words may stand in them."""

from typing import Final

from ninfer_core.schemes.ggml import iq, rules
from ninfer_core.schemes.ggml.block import C_AND_GGUF, N32, Block, D, field, fields_of

IQ: Final = (
    Block("IQ4_NL", 20, 32, (D, N32), "d T[q], T sixteen fixed levels", iq.iq4_nl, C_AND_GGUF, ("d",)),
    Block(
        "IQ4_XS",
        23,
        256,
        (
            D,
            field("scales_h", "UINT16", doc="bits 2 g, 2 g + 1 are the high bits of scale g"),
            field("scales_l", "UINT8", 4, doc="low nibbles of the scales, low first"),
            field(
                "qs",
                "UINT8",
                8,
                16,
                doc="of each sixteen bytes, byte j holds code j low and code j + 16 high",
            ),
        ),
        "(d ls) T[q], ls signed of six bits by 32",
        iq.iq4_xs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_XXS",
        16,
        256,
        (
            D,
            fields_of(
                8,
                "groups",
                field("indices", "UINT8", 4),
                field(
                    "signs_scale",
                    "UINT32",
                    doc="four codes of seven signs, low first, and a scale of four bits",
                ),
            ),
        ),
        "d (0.5 + s) / 4 times one of 256 entries of eight with signs",
        iq.iq2_xxs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_XS",
        17,
        256,
        (
            D,
            field("qs", "UINT16", 32, doc="nine bits of index, seven of signs"),
            field("scales", "UINT8", 8, doc="sixteen of four bits, low first"),
        ),
        "d (0.5 + s) / 4 times one of 512 entries of eight with signs",
        iq.iq2_xs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ2_S",
        22,
        256,
        (
            D,
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field("signs", "UINT8", 32, doc="bit k negates value k of the entry"),
            field("qh", "UINT8", 8, doc="two high bits of each index, low first"),
            field("scales", "UINT8", 8, doc="sixteen of four bits, low first"),
        ),
        "d (0.5 + s) / 4 times one of 1024 entries of eight with signs",
        iq.iq2_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ3_XXS",
        18,
        256,
        (
            D,
            field("qs", "UINT8", 64, doc="indices"),
            field(
                "signs_scales",
                "UINT32",
                8,
                doc="four codes of seven signs, low first, and a scale of four bits",
            ),
        ),
        "d (0.5 + s) / 2 times one of 256 entries of four with signs",
        iq.iq3_xxs,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ3_S",
        21,
        256,
        (
            D,
            field("qs", "UINT8", 64, doc="low bits of the indices"),
            field("qh", "UINT8", 8, doc="the high bit of each index, low first"),
            field("signs", "UINT8", 32, doc="bit k negates value k of each eight"),
            field("scales", "UINT8", 4, doc="eight of four bits, low first"),
        ),
        "d (1 + 2 s) times one of 512 entries of four with signs",
        iq.iq3_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ1_S",
        19,
        256,
        (
            D,
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field(
                "qh",
                "UINT16",
                8,
                doc="three high bits of four indices, low first, a scale of three bits, the sign of delta",
            ),
        ),
        "d (2 s + 1) times (one of 2048 entries of eight, plus or minus an eighth)",
        iq.iq1_s,
        C_AND_GGUF,
        ("d",),
    ),
    Block(
        "IQ1_M",
        29,
        256,
        (
            field("qs", "UINT8", 32, doc="low bits of the indices"),
            field(
                "qh",
                "UINT8",
                16,
                doc="nibbles, low first: three high bits of an index and the sign of its delta",
            ),
            field(
                "scales", "UINT16", 4, doc="four scales of three bits, and on top a nibble of d, lowest first"
            ),
        ),
        "d (2 s + 1) times (one of 2048 entries of eight, plus or minus an eighth)",
        iq.iq1_m,
        C_AND_GGUF,
        rules=(rules.split_scale,),
    ),
)
