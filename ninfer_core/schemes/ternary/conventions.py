"""Which way BitNet's scale goes: its meaning depends on a word in the configuration that the tensors do not carry."""

from types import MappingProxyType
from typing import Final

from ninfer_core.schemes.dialects import Confidence, Dialect, Likely
from ninfer_core.schemes.form import Params, Parts, Shape, Values
from ninfer_core.schemes.scales import binary32
from ninfer_core.schemes.ternary.bitnet_hf import BITNET_HF, DIVIDES, MULTIPLIES

_LARGE: Final = 8.0  # all weights of a layer of this magnitude: hardly
_TOO_LARGE: Final = 64.0


def _stated(_form: str, params: Params) -> str:
    stated: str = params["linear_class"]
    return stated


def _read(_form: str, convention: str, parts: Parts, shape: Shape, params: Params) -> Values:
    return BITNET_HF.decode(parts, shape, {**params, "linear_class": convention})


def _content(stated: str, parts: Parts, _shape: Shape, _params: Params) -> Likely | None:
    """Readings are reciprocal: where one makes weights of a magnitude that no layer has, the other does not."""
    scale = abs(float(binary32(parts["weight_scale"]).reshape(())))
    if not 0 < scale < float("inf"):
        return None
    magnitude = 1 / scale if stated == DIVIDES else scale
    if magnitude <= _LARGE:
        return None
    other = MULTIPLIES if stated == DIVIDES else DIVIDES
    confidence: Confidence = "strong" if magnitude > _TOO_LARGE else "weak"
    return Likely(other, confidence, f"every weight is {1 / magnitude:.4g} by it, {magnitude:.4g} as stated")


BITNET_SCALE: Final = Dialect(
    "direction of BitNet's scale",
    (BITNET_HF.name,),
    "weight_scale",
    MappingProxyType({DIVIDES: "the scale divides", MULTIPLIES: "the scale multiplies"}),
    _stated,
    _read,
    _content,
)
