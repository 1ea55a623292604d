"""A shape and parameters for each form: what bits per weight, drawings and decoders are shown for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core.schemes.form import Form, Shape


@dataclass(frozen=True, slots=True)
class Example:
    """A weight as a person would meet it."""

    shape: Shape
    params: Mapping[str, Any] = field(default_factory=dict)


_WEIGHT: Final = (4096, 4096)

_FILES: Final[Mapping[str, Example]] = {
    "linear_onnx": Example(_WEIGHT, {"type": "int4", "axis": 1, "block_size": 32}),
    "gptq": Example(_WEIGHT, {"bits": 4, "group_size": 128}),
    "gptq_v2": Example(_WEIGHT, {"bits": 4, "group_size": 128}),
    "awq": Example(_WEIGHT, {"group_size": 128}),
    "awq_gemv": Example(_WEIGHT, {"group_size": 128}),
    "ct_pack_quantized": Example(_WEIGHT, {"bits": 4, "group_size": 128}),
    "hqq": Example(_WEIGHT, {"bits": 4, "group_size": 64}),
    "bnb_nf4": Example(_WEIGHT),
    "bnb_fp4": Example(_WEIGHT),
    "matmulnbits": Example(_WEIGHT, {"bits": 4, "block_size": 32}),
    "fp8": Example(_WEIGHT),
    "mxfp4": Example(_WEIGHT),
    "mxfp6_e3m2": Example(_WEIGHT),
    "mxfp6_e2m3": Example(_WEIGHT),
    "nvfp4_ct": Example(_WEIGHT),
    "nvfp4_modelopt": Example(_WEIGHT),
    "fp6_llm": Example(_WEIGHT),
    "aqlm": Example(_WEIGHT, {"num_codebooks": 2, "bits": 8}),
    "exl2": Example(_WEIGHT, {"groups": (4, 128) * 32}),
    "exl3": Example(_WEIGHT, {"bits": 3}),
    "quip_sharp_e8p": Example(_WEIGHT),
    "spqr": Example(_WEIGHT),
}
_LITERAL: Final[Mapping[str, Example]] = {}


def example_of(form: Form) -> Example:
    """What a form is shown for; a form of blocks alone takes any weight whose rows are whole blocks."""
    return _FILES.get(form.name) or _LITERAL.get(form.name) or Example(_WEIGHT)
