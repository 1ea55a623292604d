"""The cases about comparisons: what cannot be ordered fails, what is undefined is null, and neither is a pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.kernels import cpu
from ninfer_core.schemes.measures import Measures, measure, measures_json, report
from ninfer_core.verify.metrics import error_metrics

CASES = json.loads(
    (Path(__file__).parents[1] / "vectors" / "cases" / "comparison_verdicts.json").read_text()
)["cases"]
Floats = NDArray[np.float32]
NUMBERS = np.random.default_rng(53).normal(0, 1, 64).astype(np.float32)
NAMED: dict[str, Floats] = {
    "all zeros": np.zeros(64, np.float32),
    "one nonzero": np.eye(1, 64, 9, np.float32)[0],
    "x": NUMBERS,
    "3x": NUMBERS * np.float32(3),
    "empty tensor": np.zeros(0, np.float32),
}


def floats(text: str) -> Floats:
    """The tensor that a side of a case names, or its one word among numbers that agree."""
    if text in NAMED:
        return NAMED[text]
    values = NUMBERS.copy()
    values.view(np.uint32)[7] = int(text, 16)
    return values


def failed(measures: Measures) -> bool:
    """Whether the comparison gives a finding, which is then about the pairs it counts."""
    findings = Findings()
    report(measures, findings)
    assert [one.count for one in findings.items] == ([measures.beyond] if measures.beyond else [])
    assert (measures.first is None) == (measures.beyond == 0)
    return bool(findings.items)


def cosine(reference: Floats, artifact: Floats) -> dict[str, Any]:
    """What the verifier of artifacts measures of two tensors."""
    return error_metrics(cpu.error_sums_words(reference.view(np.uint32), artifact.view(np.uint32), "F32"), "")


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case['mode']}: {case['reference']}, {case['artifact']}"
)
def test_verdict(case: dict[str, str]) -> None:
    reference, artifact = floats(case["reference"]), floats(case["artifact"])
    by_words = measure(artifact, reference)
    match case["mode"], case["expected"].partition(":")[0]:
        case "exact words", "equal":
            assert not failed(by_words)
            assert by_words.differing == 0
        case "exact words", "different":
            assert failed(by_words)
            assert by_words.differing == 1
        case "tolerance", "fail":
            for within in (1e-6, 1e30, np.inf):
                bounded = measure(artifact, reference, within)
                assert failed(bounded)
                assert (bounded.beyond, bounded.not_finite) == (1, 1)
                shown = measures_json(bounded)
                assert [shown[name] for name in ("max_abs_error", "rmse", "sqnr_db")] == [None] * 3
            side = reference if "reference not finite" in case["expected"] else artifact
            assert not np.isfinite(side[7])
        case "cosine", "undefined, reported as null; exact equality decides":
            assert cosine(reference, artifact)["cosine"] is None
            assert not failed(by_words)
            assert measures_json(by_words)["sqnr_db"] is None
        case "cosine", "fail" if case["reference"] == "all zeros":
            assert cosine(reference, artifact)["cosine"] is None
            assert failed(by_words)
            assert by_words.ratio is None
        case "cosine", "fail":
            assert cosine(reference, artifact)["cosine"] == pytest.approx(1, abs=1e-12)
            assert failed(by_words)
            assert by_words.ratio == pytest.approx(3)
        case "max error", "undefined, reported as null with zero elements compared; not a pass by itself":
            for shown in (measures_json(by_words), measures_json(measure(artifact, reference, 1.0))):
                assert shown["values"] == 0
                assert [shown[name] for name in ("max_abs_error", "rmse", "sqnr_db", "ratio")] == [None] * 4
            assert cosine(reference, artifact)["max_abs_error"] is None
        case other:
            pytest.fail(f"no verdict for {other}")


def test_a_bound_counts_what_it_holds() -> None:
    reference = NUMBERS.copy()
    artifact = reference + np.float32(0.25)
    artifact[3] += 1
    bounded = measure(artifact, reference, 0.5)
    assert (bounded.differing, bounded.beyond, bounded.not_finite) == (64, 1, 0)
    assert bounded.first is not None
    assert bounded.first.index == (3,)
    reference[5] = artifact[5] = np.nan
    assert measure(artifact, reference, 0.5).beyond == 2
    assert measure(artifact, reference).differing == 63
