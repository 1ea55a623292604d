"""Schemes whose codes are small floats, as checkpoints hold them (scheme specification 5.10 to 5.15)."""

from typing import Final

from ninfer_core.schemes.floating.fp6_llm import FP6_LLM
from ninfer_core.schemes.floating.fp8 import FP8
from ninfer_core.schemes.floating.mx import MXFP4, MXFP6_E2M3, MXFP6_E3M2
from ninfer_core.schemes.floating.nvfp4 import NVFP4_CT, NVFP4_MODELOPT
from ninfer_core.schemes.form import Form

FORMS: Final[tuple[Form, ...]] = (
    FP8,
    MXFP4,
    MXFP6_E3M2,
    MXFP6_E2M3,
    NVFP4_CT,
    NVFP4_MODELOPT,
    FP6_LLM,
)
