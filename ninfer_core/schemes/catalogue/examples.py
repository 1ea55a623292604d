"""A shape and parameters for each form: what bits per weight, drawings and decoders are shown for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core.schemes.form import Form, Shape


@dataclass(frozen=True, slots=True)
class Example:
    """A weight as a person would meet it, with the optional parts that it has.

    `types` says of a part which of its types it has, where that is not the first.
    """

    shape: Shape
    params: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def dtypes(self, form: Form) -> dict[str, str]:
        """The parts that are there, each with its type."""
        there = (part for part in form.parts if not part.optional or part.name in self.optional)
        return {part.name: self.types.get(part.name, part.dtypes[0]) for part in there}


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
    "quarot": (Example(_WEIGHT, types={"weight_scales": "float16"}),),
    "exl3": (Example(_WEIGHT, {"bits": 3}, ("suh", "svh")),),
    "spqr": (Example(_WEIGHT, {"outliers": 167_772}),),  # of a hundred weights one
}
_SMALL: Final = (16, 32)
_LITERAL: Final[Mapping[str, tuple[Example, ...]]] = {
    "gptq_1024_group128_resolved_uint4": (Example((1024,)),),
    "gptq_1024_group128_declared_int4": (Example((1024,)),),
    "int4_symmetric_1024": (Example((1024,)),),
    "float6_e3m2_tensor_1000": (Example((1000,)),),
    "int8_per_channel_vector_scale": (Example(_SMALL, {"scale": (0.03,) * 16}),),
    "smoothquant_resolved": (Example(_SMALL, {"scale": (0.03,) * 16, "smooth": (1.0,) * 32}),),
    "spqr_literal": (Example(_WEIGHT, {"outliers": 167_772}),),
    "aqlm_2x8": (Example((4096,), {"codebooks": (0.0,) * 4096}),),
    "quip_sharp_literal": (Example(_SMALL, {"codebook": (0.0,) * 2048}),),
}
# Levels as floats: no release packs them, so there are no bits per weight to speak of.
UNPACKED: Final = frozenset({"paretoq"})
# Where one form serves several schemes, each with parameters of its own.
_OF_SCHEME: Final[Mapping[tuple[str, str], tuple[Example, ...]]] = {
    ("int8_per_channel", "linear_onnx"): (
        Example(_WEIGHT, {"type": "int8", "axis": 0}, types={"scale": "float32"}),
    ),
    ("int8_symmetric", "linear_onnx"): (Example(_WEIGHT, {"type": "int8"}, types={"scale": "float32"}),),
}


def examples_of(form: Form, scheme: str = "") -> tuple[Example, ...]:
    """What a form is shown for, the usual one first; a form of blocks alone takes any weight of whole blocks."""
    own = _OF_SCHEME.get((scheme, form.name))
    return own or _FILES.get(form.name) or _LITERAL.get(form.name) or (Example(_WEIGHT),)


def example_of(form: Form, scheme: str = "") -> Example:
    """The usual one."""
    return examples_of(form, scheme)[0]
