"""Names that people meet elsewhere and that are not registered here, with the reason (tensor-formats section 10).

The patterns serve explanations only: nothing is accepted, aliased or taken apart because of them.
"""

import re
from dataclasses import dataclass

from ninfer_core.formats import FORMATS
from ninfer_core.retired import retirement


@dataclass(frozen=True, slots=True)
class Family:
    """A family of excluded names."""

    name: str
    pattern: re.Pattern[str]
    examples: tuple[str, ...]
    why: str


def _family(name: str, pattern: str, examples: str, why: str) -> Family:
    return Family(name, re.compile(pattern, re.IGNORECASE), tuple(examples.split()), why)


FAMILIES: tuple[Family, ...] = (
    _family(
        "control types",
        r"(bf16|fp32|i32)_ctrl",
        "BF16_CTRL FP32_CTRL I32_CTRL",
        "these are execution types inside a runtime; a stored control parameter uses a plain direct format",
    ),
    _family(
        "aliases and abbreviations",
        r"int32|float32|f32|bfloat16|q[4568]|w8|w8g32|q[456]g64|q8g32_f16s",
        "INT32 F32 Q4 Q5 Q6 W8G32 Q8G32_F16S",
        "the registry holds one exact name for each format and accepts no alias or abbreviation of it",
    ),
    _family(
        "other floating-point scalars",
        r"f(p|loat)?(16|64)|half|double|tf32",
        "FP16 FP64 F16 F64",
        "binary16 and binary64 are no direct formats; binary16 occurs only as the scale inside grouped formats",
    ),
    _family(
        "other integers",
        r"(u?int|[iu])(4|8|16|32|64)|bool",
        "I8 I16 I64 U8 U32 UINT8",
        "I32 is the only direct integer; other widths need a recipe that casts and refuses what does not fit",
    ),
    _family(
        "per-channel schemes",
        r"[qw]\d+(_?per_?channel|_?pc|gk)(_\w+)?",
        "W8_PER_CHANNEL Q4GK_F16S",
        "a scale per channel is another scheme, not a group size that happens to be K",
    ),
    _family(
        "zero points",
        r"([qw]\d+g\d+_(\w*zp\w*|asym\w*)|\w*_zp\w*|zp\d*|zero_?points?|affine\w*|asym\w*|u4g\d+\w*)",
        "Q4G64_F16S_ZP ASYM_INT4 ZERO_POINT",
        "asymmetric and affine schemes carry zero points; every registered scheme reconstructs as scale times code",
    ),
    _family(
        "other widths, groups or scales",
        r"[qw]\d+(_?g\d+_?\w*)?",
        "Q2 Q3 Q2G64_F16S Q3G64_F16S Q4G32_F16S Q6G128_F16S W8G64_F16S Q4G64_BF16S",
        "the four grouped formats are exact identities, not a template for widths, group sizes and scale types",
    ),
    _family(
        "codebooks",
        r"nf4|nf3|af4|fp4_codebook|\w*codebook\w*|aqlm\w*|quip\w*|vptq\w*",
        "NF4 AQLM QUIP",
        "codes of a codebook format index a table; registered codes are signed integers or registered float words",
    ),
    _family(
        "GGUF blocks",
        r"gguf\w*|ggml|(ggml_type_)?(q[2-8]_(k(_[sml])?|[01])|iq\d\w*|tq\d\w*|q8_k)",
        "GGUF Q4_K Q8_0 Q6_K IQ4_NL",
        "GGUF blocks interleave scales and codes and many hold minima; they are no aliases of grouped formats",
    ),
    _family(
        "ternary and binary",
        r"t2\w*|ternary\w*|bitnet\w*|b1_58|i2_s",
        "t2_g128_fp16 TERNARY",
        "no ternary or binary scheme is registered",
    ),
    _family(
        "GPTQ and AWQ dialects",
        r"gptq\w*|awq\w*|marlin\w*|exl[23]\w*|hqq\w*",
        "GPTQ AWQ MARLIN EXL2",
        "serialisation dialects with zero points and packed words of their own; values must be re-expressed, not relabelled",
    ),
    _family(
        "runtime-state codecs",
        r"\w*(kv_?cache|kv_(int|fp)\d|_kv$|activation|recurrent|w8a8|w4a16|w4a8|w4a4)\w*",
        "KV_INT8 INT8_KV KVCACHE_INT8 W8A8",
        "caches, activations and recurrent state are runtime codecs, outside a registry of persistent weights",
    ),
    _family(
        "other 8-bit floats",
        r"(f(p|loat)?8\w*|e4m3\w*|e5m2\w*|f8_\w+)",
        "FP8_E4M3FN FP8_E4M3FN_ROW_F32S FP8_E5M2 F8_E4M3",
        "only E4M3FN codes with one BF16 multiplier a row are registered, as FP8_E4M3FN_ROW_BF16S",
    ),
    _family(
        "other 4-bit and microscaling floats",
        r"(mx(fp|int)\d\w*|fp4\w*|e2m1\w*|nvfp4_\w+|f4\w*|bfp\w*|msfp\w*|fp6\w*|e8m0\w*)",
        "MXFP4 MXFP8 FP4 E2M1",
        "only the exact NVFP4 contract is registered: E2M1 codes, E4M3FN scales per 16, one binary32 divisor",
    ),
)


def why_not(name: str) -> str | None:
    """Why a name is not a registered format; None when nothing is known about it or when it is registered."""
    if name in FORMATS:
        return None
    if (former := retirement(FORMATS.what, name)) is not None:
        return str(former)
    folded = next((known for known in FORMATS.names if known.lower() == name.strip().lower()), None)
    if folded is not None:
        return f"names are compared exactly; the registered spelling is {folded}"
    family = next((family for family in FAMILIES if family.pattern.fullmatch(name)), None)
    return None if family is None else f"{family.name}: {family.why}"
