"""The reference vectors of the integer forms as requests: parts, shape, parameters and the words expected."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.integer import FORMS
from tests.schemes import vectors

SETS = ("gptq", "awq", "hqq", "bnb_nf4", "bnb_fp4", "ct_pack_quantized", "matmulnbits", "linear_onnx")
BY_NAME = {form.name: form for form in FORMS}
_ONNX_TYPES = {3: "int8", 2: "uint8", 22: "int4", 21: "uint4", 25: "uint2", 26: "int2"}
_APART = ("source", "expected", "expected_KxN", "expected_NxK")


@dataclass(frozen=True)
class Case:
    """One case of a vector set."""

    name: str
    form: Form
    parts: dict[str, NDArray[Any]]
    params: dict[str, Any]
    expected: NDArray[np.float32]
    source: NDArray[np.float32] | None


def _params(scheme: str, stated: dict[str, Any]) -> dict[str, Any]:
    """The parameters of ours that the case's own say."""
    match scheme:
        case "gptq" | "ct_pack_quantized":
            return {"bits": stated["bits"], "group_size": stated["group_size"]}
        case "awq":
            return {"group_size": stated["group_size"]}
        case "hqq":
            return {"bits": stated["nbits"], "group_size": stated["group_size"], "axis": stated["axis"]}
        case "matmulnbits":
            kind = {"none": "packed", "u8": "packed", "float": "float"}[stated["zero_points"]]
            return {"bits": stated["bits"], "block_size": stated["block_size"], "zero_points": kind}
        case "linear_onnx":
            type_ = _ONNX_TYPES[stated["onnx_elem_type"]]
            axis = {} if stated["axis"] is None else {"axis": stated["axis"]}
            return {"type": type_, "block_size": stated["block_size"], **axis}
    nested = {"nested_block_size": stated["nested_blocksize"]} if "nested_blocksize" in stated else {}
    return {"block_size": stated["blocksize"], **nested}


def _of(scheme: str) -> Iterator[Case]:
    for case in vectors.cases(scheme):
        parts = {name: array for name, array in case.arrays.items() if name not in _APART}
        (expected,) = (array for name, array in case.arrays.items() if name.startswith("expected"))
        v2 = case.params.get("checkpoint_format", "").startswith("gptq_v2")
        form = BY_NAME["gptq_v2" if v2 else scheme]
        params = _params(scheme, case.params)
        yield Case(f"{scheme}-{case.name}", form, parts, params, expected, case.arrays.get("source"))


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every set; the files are read once."""
    return tuple(case for scheme in SETS for case in _of(scheme))
