"""Encoder profiles: how source values become the codes and scales of a scheme (tensor-formats section 7)."""

from dataclasses import dataclass

from ninfer_core.formats import GROUPED, GroupedFormat
from ninfer_core.registry import Closed


@dataclass(frozen=True, slots=True)
class EncoderProfile:
    """One fixed order of arithmetic; any change that can alter a code or a scale is a new version."""

    name: str
    version: int
    formats: tuple[GroupedFormat, ...]
    specification: str


MAXABS_F16_RECIP_RNE_V1 = EncoderProfile("MAXABS_F16_RECIP_RNE_V1", 1, GROUPED, "tensor-formats section 7")

PROFILES: Closed[EncoderProfile] = Closed("encoder profile", MAXABS_F16_RECIP_RNE_V1)
