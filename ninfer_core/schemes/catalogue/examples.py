"""A shape and parameters for each form: what bits per weight, drawings and decoders are shown for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core.schemes.form import Shape


@dataclass(frozen=True, slots=True)
class Example:
    """A weight as a person would meet it."""

    shape: Shape
    params: Mapping[str, Any] = field(default_factory=dict)


_WEIGHT: Final = (4096, 4096)

EXAMPLES: Final[Mapping[str, Example]] = {
    "aqlm": Example(_WEIGHT, {"num_codebooks": 2, "bits": 8}),
    "exl2": Example(_WEIGHT, {"groups": (8, 128, 6, 256, 5, 512, 4, 2176, 3, 1024)}),
    "exl3": Example(_WEIGHT, {"bits": 3}),
    "quip_sharp_e8p": Example(_WEIGHT),
    "spqr": Example(_WEIGHT),
}
