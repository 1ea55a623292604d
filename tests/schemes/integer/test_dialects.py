"""Labels against contents: the GPTQ cases with their verdicts, nibble orders, and what a source decides."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.findings import Finding, Findings
from ninfer_core.io import MemorySource
from ninfer_core.schemes import run
from ninfer_core.schemes.dialects import examine
from ninfer_core.schemes.form import Form
from ninfer_core.schemes.integer.gptq import stored_zeros, zeros_for
from ninfer_core.schemes.reading import read_arrays
from tests.schemes.integer.vectors import BY_NAME, Case, cases

CASES = Path(__file__).parents[2] / "vectors" / "cases"
VERDICTS = [
    case
    for case in json.loads((CASES / "manifest.schemes.json").read_text())["cases"]
    if case["file"].startswith("gptq/")
]
EXPECTED = np.array(json.loads((CASES / "gptq" / "expected_values.json").read_text())["values"], np.float32)
Parts = dict[str, NDArray[Any]]


def opened(name: str) -> tuple[Form, Parts, dict[str, Any]]:
    """A GPTQ case as its own label reads it."""
    label = json.loads((CASES / name / "quantize_config.json").read_text())
    findings = Findings()
    source = MemorySource("model.safetensors", (CASES / name / "model.safetensors").read_bytes())
    parts, beside = read_arrays(source, "safetensors", findings, prefix="l.")
    assert not findings.items
    assert not beside
    params = {"bits": label["bits"], "group_size": label["group_size"], "symmetric": label["sym"]}
    return BY_NAME[label["checkpoint_format"]], parts, params


def contradictions(found: list[Finding]) -> list[tuple[Any, ...]]:
    """What the findings about dialects say."""
    assert all(one.code == "scheme.dialect_contradicted" for one in found)
    keys = ("part", "stated", "likely", "confidence")
    return [(*(one.where[key] for key in keys), one.severity) for one in found]


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case["file"])
def test_gptq_verdicts(case: dict[str, Any]) -> None:
    form, parts, params = opened(case["file"])
    shape = run.implied_shape(form, parts, params)
    assert run.check(form, parts, shape, params) == []
    values = run.decode(form, parts, shape, params)
    found = contradictions(examine(form, parts, shape, params))
    if case["expected"] == "fail":
        assert case["finding"] == "zero_point_convention"
        part = case["where"]["tensor"].removeprefix("l.")
        assert found == [(part, "gptq", "gptq_v2", "strong", "error")]
        scales = parts["scales"].astype(np.float32)
        assert np.array_equal(values, EXPECTED - scales)  # every weight is off by one scale
        by_values = contradictions(examine(form, parts, shape, params, EXPECTED))
        assert by_values == [(part, "gptq", "gptq_v2", "certain", "error")]
        return
    assert found == []
    assert contradictions(examine(form, parts, shape, params, values)) == []
    zeros = stored_zeros(parts, {"bits": 4}) + (form.name == "gptq")
    if case["expected"] == "accept":
        assert np.array_equal(values.view(np.uint32), EXPECTED.view(np.uint32))
        assert (zeros == 8).all()
        return
    assert case["expected"] == "refuse"
    for convention in ("gptq", "none"):
        with pytest.raises(run.SchemeRefused) as refused:
            zeros_for(zeros, 4, convention)
        (finding,) = refused.value.findings.items
        assert finding.code == f"scheme.{case['finding']}"
        assert finding.where["part"] == case["where"]["tensor"].removeprefix("l.")
        assert finding.where["zero"] == case["where"]["zero"]


def test_zero_points_restated() -> None:
    zeros = np.array([[8, 8, 1], [8, 15, 3]], np.uint8)
    assert zeros_for(zeros, 4, "gptq").tolist() == [[7, 7, 0], [7, 14, 2]]
    assert zeros_for(zeros, 4, "gptq_v2") is zeros
    with pytest.raises(run.SchemeRefused, match="no place"):
        zeros_for(zeros, 4, "none")
    assert zeros_for(np.full((2, 3), 8, np.uint8), 4, "none").size == 0
    with pytest.raises(ValueError, match="no convention"):
        zeros_for(zeros, 4, "gptq_v3")


def by_name(name: str) -> Case:
    """A case of the reference vectors."""
    return next(case for case in cases() if case.name == name)


def test_zero_points_of_a_label_that_says_asymmetric() -> None:
    form, parts, params = opened("gptq/v1_label_v2_zeros")
    params["symmetric"] = False
    found = examine(form, parts, EXPECTED.shape, params)
    assert contradictions(found) == [("qzeros", "gptq", "gptq_v2", "weak", "advisory")]
    other = BY_NAME["gptq_v2"]
    assert examine(other, parts, EXPECTED.shape, params) == []
    assert contradictions(
        examine(other, *opened("gptq/v1_stored_7")[1:2], EXPECTED.shape, {**params, "symmetric": True})
    ) == [("qzeros", "gptq_v2", "gptq", "strong", "error")]


def test_a_source_decides_over_the_content() -> None:
    case = by_name("gptq-b4_g32")
    noise = np.random.default_rng(1).normal(0, 1e-3, case.expected.shape).astype(np.float32)
    source = case.expected + noise
    other = BY_NAME["gptq_v2"]
    assert examine(case.form, case.parts, source.shape, case.params, source) == []
    found = contradictions(examine(other, case.parts, source.shape, case.params, source))
    assert found == [("qzeros", "gptq_v2", "gptq", "strong", "error")]
    # Zeros that look like the other convention's, in a tensor that decodes right as it is labelled.
    form, parts, params = opened("gptq/v1_label_v2_zeros")
    own = run.decode(form, parts, EXPECTED.shape, params)
    assert examine(form, parts, EXPECTED.shape, params, own) == []
    # Values that no reading is near, or that hold NaN, leave the word to the content.
    nothing = np.full(EXPECTED.shape, np.nan, np.float32)
    assert contradictions(examine(form, parts, EXPECTED.shape, params, nothing))[0][3] == "strong"


@pytest.mark.parametrize("name", ["bnb_nf4-plain_16x96_b64", "bnb_fp4-plain_8x64_b64"])
def test_order_of_nibbles(name: str) -> None:
    case = by_name(name)
    assert case.source is not None
    shape = case.source.shape
    assert examine(case.form, case.parts, shape, case.params, case.source) == []
    turned = {**case.params, "first_nibble": "low"}
    assert examine(case.form, case.parts, shape, turned) == []
    found = contradictions(examine(case.form, case.parts, shape, turned, case.source))
    assert found == [("payload", "low", "high", "strong", "error")]
    assert contradictions(examine(case.form, case.parts, shape, turned, case.expected))[0][3] == "certain"


def test_the_nibble_behind_an_odd_count() -> None:
    values = np.linspace(-1, -0.5, 5, dtype=np.float32)
    form = BY_NAME["bnb_nf4"]
    for order, other in (("high", "low"), ("low", "high")):
        parts = run.encode(form, values, {"first_nibble": order})
        assert examine(form, parts, (5,), {"first_nibble": order}) == []
        found = contradictions(examine(form, parts, (5,), {"first_nibble": other}))
        assert found == [("payload", other, order, "weak", "advisory")]
