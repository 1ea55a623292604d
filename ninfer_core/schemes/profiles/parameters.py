"""Parameters of a profile as they stand in a struct type: constants, or entries of the metadata where none is stated."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ninfer_core.schemes.profiles.checks import PREFIX
from ninfer_core.schemes.structs.model import Constant, Field

_DTYPES: Final = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "BOOL": "?"}
MAX_PARAMETER: Final = 1 << 22  # values of one parameter that is read from a type


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named tensor of INT32, INT64, FLOAT or BOOL: flat values beside their dims."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    values: tuple[Any, ...]

    @property
    def field(self) -> Field:
        """The constant field that holds it."""
        data = np.asarray(self.values, _DTYPES[self.dtype]).tobytes()
        return Field(self.name, constant=Constant(self.dtype, self.dims, data))

    @property
    def entry(self) -> tuple[str, str]:
        """The entry of the metadata that keeps it."""
        content = {"dtype": self.dtype, "dims": list(self.dims), "values": list(self.values)}
        return PREFIX + self.name, json.dumps(content, separators=(",", ":"))


def scalar(name: str, dtype: str, value: Any) -> Parameter:
    """A parameter that is one number."""
    return Parameter(name, dtype, (), (value,))


def vector(name: str, dtype: str, values: tuple[Any, ...]) -> Parameter:
    """A parameter that is a list of numbers."""
    return Parameter(name, dtype, (len(values),), tuple(values))


@dataclass(slots=True)
class Read:
    """Parameters found in one declaration, taken out one by one; `kept` names those that the metadata held."""

    constants: dict[str, Parameter] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def take(self, name: str, dtype: str) -> tuple[Any, ...] | None:
        """The values of a parameter of that type, or None where there is none such."""
        held = self.constants.get(name)
        if held is None or held.dtype != dtype:
            return None
        del self.constants[name]
        return held.values

    def one(self, name: str, dtype: str) -> Any:
        """The value of a parameter that is one number, or None."""
        held = self.constants.get(name)
        if held is None or held.dims != () or held.dtype != dtype:
            return None
        del self.constants[name]
        return held.values[0]


def of_constant(name: str, constant: Constant) -> Parameter | None:
    """A constant as a parameter, or None where no parameter is like it."""
    code = _DTYPES.get(constant.dtype)
    if code is None or constant.external:
        return None
    count, size = math.prod(constant.dims), np.dtype(code).itemsize
    if count > MAX_PARAMETER or count * size != len(constant.data):
        return None
    if constant.dtype == "BOOL" and constant.data.strip(b"\0\1"):
        return None
    values = tuple(np.frombuffer(constant.data, code).tolist())
    return Parameter(name, constant.dtype, constant.dims, values)


def of_entry(key: str, text: str) -> Parameter | None:
    """An entry of the metadata as a parameter, or None where it is none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or set(content) != {"dtype", "dims", "values"}:
        return None
    dtype, dims, values = content["dtype"], content["dims"], content["values"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        return None
    if not isinstance(dims, list) or not isinstance(values, list) or len(values) > MAX_PARAMETER:
        return None
    if not all(type(dim) is int and dim >= 0 for dim in dims) or math.prod(dims) != len(values):
        return None
    if not all(_fits(value, dtype) for value in values):
        return None
    return Parameter(key.removeprefix(PREFIX), dtype, tuple(dims), tuple(values))


def _fits(value: object, dtype: str) -> bool:
    if dtype == "BOOL":
        return isinstance(value, bool)
    if dtype == "FLOAT":
        return isinstance(value, float)
    bits = 31 if dtype == "INT32" else 63
    return type(value) is int and -(1 << bits) <= value < 1 << bits
