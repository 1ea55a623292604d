"""Encoder profiles: how source values become the codes and scales of a scheme (tensor-formats section 7).

None is a default: a recipe names the profile of each object, and an object without one is copied.
"""

from dataclasses import dataclass

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, GROUPED, GroupedFormat, RowFormat
from ninfer_core.registry import Closed


@dataclass(frozen=True, slots=True)
class EncoderProfile:
    """One fixed order of arithmetic; any change that can alter a code or a scale is a new version.

    `dtypes` are the source words it takes, by their safetensors names.
    """

    name: str
    version: int
    formats: tuple[GroupedFormat | RowFormat, ...]
    specification: str
    dtypes: tuple[str, ...]


MAXABS_F16_RECIP_RNE_V1 = EncoderProfile(
    "MAXABS_F16_RECIP_RNE_V1", 1, GROUPED, "tensor-formats section 7", ("BF16", "F16", "F32", "F64")
)
MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 = EncoderProfile(
    "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1",
    1,
    (FP8_E4M3FN_ROW_BF16S,),
    "per row: scale = BF16(FP32(amax / 448)), codes = E4M3FN(clamp(FP32(x * FP32(1 / scale)), 448)), every rounding "
    "to nearest even; a zero row has scale +0 and codes 0x00; a scale of at most 2**-128 over a nonzero row is refused",
    ("BF16", "F16", "F32"),
)

PROFILES: Closed[EncoderProfile] = Closed(
    "encoder profile", MAXABS_F16_RECIP_RNE_V1, MAXABS_BF16S_RECIP_E4M3FN_RNE_V1
)
