"""The forms of small floats against the published vectors: word for word, compiled and plain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.floating import (
    FP6_LLM,
    FP8,
    MXFP4,
    MXFP6_E2M3,
    MXFP6_E3M2,
    NVFP4_CT,
    NVFP4_MODELOPT,
    fp6_llm,
)
from ninfer_core.schemes.form import Form
from tests.schemes.numbers import assert_same_numbers
from tests.schemes.vectors import cases

BLOCKS_OF_ONE_ROW = {"layout": "blocks"}


@dataclass(frozen=True)
class Request:
    """One vector as a request: which arrays are the parts, and what is known to be wrong with their words."""

    form: Form
    scheme: str
    case: str
    params: dict[str, Any]
    findings: tuple[str, ...] = ()

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return next(case.arrays for case in cases(self.scheme) if case.name == self.case)

    @property
    def parts(self) -> dict[str, NDArray[Any]]:
        return {part.name: self.arrays[part.name] for part in self.form.parts}


REQUESTS = (
    Request(FP8, "fp8", "e4m3fn_all_codes_per_tensor", {}, ("scheme.value_not_finite",)),
    Request(FP8, "fp8", "e4m3fn_per_channel", {"axis": 0}),
    Request(FP8, "fp8", "e5m2_all_codes_per_tensor", {"dialect": "e5m2"}, ("scheme.value_not_finite",)),
    Request(FP8, "fp8", "e5m2_per_channel", {"dialect": "e5m2", "axis": 0}),
    Request(MXFP4, "mxfp4", "ocp_separate", {}, ("scheme.scale_not_finite",)),
    Request(MXFP6_E3M2, "mxfp6", "e3m2_separate", {}),
    Request(MXFP6_E2M3, "mxfp6", "e2m3_separate", {}),
    Request(NVFP4_CT, "nvfp4", "compressed_tensors", {}),
    Request(NVFP4_MODELOPT, "nvfp4", "modelopt", {}),
    Request(FP6_LLM, "fp6_llm", "64x64", {}),
    Request(FP6_LLM, "fp6_llm", "128x64", {}),
    Request(FP6_LLM, "fp6_llm", "64x128", {}),
)


def test_every_case_of_separate_tensors_is_asked_for():
    asked = {(request.scheme, request.case) for request in REQUESTS}
    stored = {
        (name, case.name) for name in ("fp8", "mxfp4", "mxfp6", "nvfp4", "fp6_llm") for case in cases(name)
    }
    assert {case for case in stored if "seed_struct" not in case[1]} == asked


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: f"{request.form.name}-{request.case}")
def test_vectors(request_):
    expected = request_.arrays["expected"]
    for plain in (True, False):
        values = run.decode(request_.form, request_.parts, expected.shape, request_.params, plain=plain)
        assert_same_numbers(values, expected)
    found = run.check(request_.form, request_.parts, expected.shape, request_.params)
    assert tuple(finding.code for finding in found) == request_.findings
    assert run.implied_shape(request_.form, request_.parts, request_.params) == expected.shape


@pytest.mark.parametrize("name", ["e3m2_separate", "e2m3_separate"])
def test_a_byte_for_each_code_gives_the_same_values(name):
    form = MXFP6_E3M2 if name.startswith("e3m2") else MXFP6_E2M3
    (arrays,) = (case.arrays for case in cases("mxfp6") if case.name == name)
    parts = {"weight_packed": arrays["codes"], "weight_scale": arrays["weight_scale"]}
    assert_same_numbers(run.decode(form, parts, (40, 32), {"layout": "bytes"}), arrays["expected"])
    assert run.implied_shape(form, parts, {"layout": "bytes"}) == (40, 32)


def test_an_axis_of_blocks_gives_the_same_values():
    (arrays,) = (case.arrays for case in cases("mxfp4") if case.name == "ocp_separate")
    parts = {
        "weight_packed": arrays["weight_packed"].reshape(5, 2, 4, 16),
        "weight_scale": arrays["weight_scale"].reshape(5, 2, 4),
    }
    expected = arrays["expected"].reshape(5, 2, 128)
    assert run.implied_shape(MXFP4, parts, {"layout": "blocks"}) == (5, 2, 128)
    assert_same_numbers(run.decode(MXFP4, parts, (5, 2, 128), {"layout": "blocks"}), expected)


@pytest.mark.parametrize("name", ["e4m3fn_per_channel", "e5m2_per_channel"])
def test_fp8_is_encoded_as_the_tool_does(name):
    (arrays,) = (case.arrays for case in cases("fp8") if case.name == name)
    encoded = run.encode(FP8, arrays["source"], {"dialect": name.split("_")[0], "axis": 0})
    np.testing.assert_array_equal(encoded["payload"], arrays["payload"])
    assert_same_numbers(encoded["scale"], arrays["scale"])


def test_nvfp4_is_encoded_as_the_tool_does():
    (arrays,) = (case.arrays for case in cases("nvfp4") if case.name == "modelopt")
    encoded = run.encode(NVFP4_MODELOPT, arrays["source"], {})
    for name in ("weight", "weight_scale", "weight_scale_2"):
        np.testing.assert_array_equal(encoded[name].view(np.uint8), arrays[name].view(np.uint8))


@pytest.mark.parametrize("case", cases("fp6_llm"), ids=lambda case: case.name)
def test_fp6_is_laid_out_as_the_tool_does(case):
    codes = case.arrays["unpacked_codes"]
    np.testing.assert_array_equal(fp6_llm.pack(codes), case.arrays["prepacked"])
    np.testing.assert_array_equal(fp6_llm.unpack(case.arrays["prepacked"], codes.shape), codes)


def test_the_examples_of_the_specification():
    packed = np.zeros((1, 24), np.uint8)
    packed[0, :3] = 0x81, 0xF8, 0xFD  # codes 01, 22, 1f, 3f
    parts = {"weight_packed": packed, "weight_scale": np.array([[127]], np.uint8)}
    for form, first in ((MXFP6_E3M2, [0.0625, -0.125, 28, -28]), (MXFP6_E2M3, [0.125, -0.25, 7.5, -7.5])):
        assert run.decode(form, parts, (1, 32), {})[0, :4].tolist() == first
