"""A shape and parameters for each form: what bits per weight, drawings and decoders are shown for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core.schemes.form import Form, Shape


@dataclass(frozen=True, slots=True)
class Example:
    """A weight as a person would meet it, with the optional parts that it has."""

    shape: Shape
    params: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


_WEIGHT: Final = (4096, 4096)
_GROUPS: Final = {"bits": 4, "group_size": 128}

_FILES: Final[Mapping[str, tuple[Example, ...]]] = {
    "linear_onnx": (Example(_WEIGHT, {"type": "int4", "axis": 1, "block_size": 32}),),
    "gptq": (Example(_WEIGHT, _GROUPS),),
    "gptq_v2": (Example(_WEIGHT, _GROUPS),),
    "awq": (Example(_WEIGHT, {"group_size": 128}),),
    "awq_gemv": (Example(_WEIGHT, {"group_size": 128}),),
    "ct_pack_quantized": (Example(_WEIGHT, _GROUPS),),
    "hqq": (Example(_WEIGHT, {"bits": 4, "group_size": 64}),),
    "bnb_nf4": (
        Example(_WEIGHT, optional=("absmax",)),
        Example(_WEIGHT, optional=("absmax_u8", "nested_absmax")),
    ),
    "bnb_fp4": (Example(_WEIGHT, optional=("absmax",)),),
    "matmulnbits": (Example(_WEIGHT, {"bits": 4, "block_size": 32}),),
    "bitnet_hf": (Example(_WEIGHT, {"linear_class": "bitlinear"}),),
    "aqlm": (Example(_WEIGHT, {"num_codebooks": 2, "bits": 8}),),
    "exl2": (Example(_WEIGHT, {"groups": (4, 128) * 32}),),
    "exl3": (Example(_WEIGHT, {"bits": 3}, ("suh", "svh")),),
    "spqr": (Example(_WEIGHT, {"outliers": 167_772}),),  # of a hundred weights one
}
_LITERAL: Final[Mapping[str, tuple[Example, ...]]] = {}
# Levels as floats: no release packs them, so there are no bits per weight to speak of.
UNPACKED: Final = frozenset({"paretoq"})
# Where one form serves several schemes, each with parameters of its own.
_OF_SCHEME: Final[Mapping[tuple[str, str], tuple[Example, ...]]] = {
    ("int8_per_channel", "linear_onnx"): (Example(_WEIGHT, {"type": "int8", "axis": 0}),),
    ("int8_symmetric", "linear_onnx"): (Example(_WEIGHT, {"type": "int8"}),),
}


def examples_of(form: Form, scheme: str = "") -> tuple[Example, ...]:
    """What a form is shown for, the usual one first; a form of blocks alone takes any weight of whole blocks."""
    own = _OF_SCHEME.get((scheme, form.name))
    return own or _FILES.get(form.name) or _LITERAL.get(form.name) or (Example(_WEIGHT),)


def example_of(form: Form, scheme: str = "") -> Example:
    """The usual one."""
    return examples_of(form, scheme)[0]
