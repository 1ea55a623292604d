"""What a literal form is: a profile of the catalogue with its parameters open, from which everything else follows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ninfer_core.schemes.form import Parameter, Params, Shape
from ninfer_core.schemes.profiles.model import Quantization

Rate = tuple[
    int, int
]  # values and the bytes that they take, from any start that a whole number of them gives


@dataclass(frozen=True, slots=True)
class Spec:
    """A literal form as data; `quantization` gives the profile for a shape and complete parameters.

    `rate` lets the size of a payload say how many values it holds; without one the shape has to be given.
    """

    name: str
    summary: str
    quantization: Callable[[Shape, Params], Quantization]
    parameters: tuple[Parameter, ...] = ()
    axes: tuple[str, ...] = ("values",)
    rate: Rate | None = None
    encoding: Literal["", "nearest", "canonical"] = ""
    arithmetic: str = "exact"
    notes: str = ""


def number(name: str, default: float, meaning: str) -> Parameter:
    """A number that the catalogue's example fixes and a user may state otherwise."""
    return Parameter(name, "number", meaning, default)


def integer(name: str, default: int, meaning: str) -> Parameter:
    """An integer of the same sort."""
    return Parameter(name, "integer", meaning, default)
