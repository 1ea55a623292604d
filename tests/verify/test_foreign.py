"""Objects of foreign producers through the engine: legal, within a bound, beyond it; never more than that is claimed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S
from ninfer_core.opening import open_path
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import NOTHING_COMPARED, CheckResult, Report
from ninfer_core.verify.sample import Sample
from tests.build import EVERYTHING, plan, recipe, tensor, write_artifact, write_checkpoint

ROWS, COLUMNS = 600, 512  # larger than what a sample compares whole
CODES = 0x30 + np.arange(ROWS * COLUMNS, dtype=np.uint32).reshape(ROWS, COLUMNS) % 16  # 0.5 to 1.875
ONE = 0x3F80  # the BF16 word of 1.0


def values(codes: Any) -> Any:
    """The binary32 words of E4M3FN codes 0x30 to 0x3f, from the definition of the format."""
    exponents, fractions = codes >> 3, codes & 7
    return ((8 + fractions) * 2.0 ** (exponents.astype(np.int64) - 10)).astype(np.float32).view(np.uint32)


def stored(codes: Any) -> tuple[Any, tuple[int, int], Any]:
    """Rows under a scale of one: codes are followed by their scale words, at a multiple of 256."""
    raw = codes.astype(np.uint8).tobytes() + np.full(ROWS, ONE, "<u2").tobytes()
    return FP8_E4M3FN_ROW_BF16S, (ROWS, COLUMNS), np.frombuffer(raw, np.uint8)


def judge(
    folder: Path,
    codes: Any,
    bound: Any,
    checks: tuple[str, ...] = (*EVERYTHING, "parity"),
    sample: Sample | None = None,
) -> tuple[Report, CheckResult]:
    """The report of an artifact of one foreign object, and its check `parity`."""
    path = write_artifact(folder / "a.ninfer", {"w": stored(codes)})
    write_checkpoint(folder, {"w": ("F32", values(CODES))})
    producer = {"name": "THEIRS", "version": "3", "bound": bound}
    rule = {"object": "w", "value": tensor("w", (ROWS, COLUMNS), "F32"), "producer": producer}
    made = plan(folder, recipe([{**rule, "format": FP8_E4M3FN_ROW_BF16S.name}]))
    with open_path(path) as opened:
        report = verify(opened, asked(checks), Against(made, sample=sample))
    return report, next(check for check in report.checks if check.name == "parity")


@pytest.mark.parametrize("bound", [None, "as good as can be"])
def test_legal_words_without_a_bound_prove_nothing_of_the_source(bound: Any, tmp_path: Path):
    report, parity = judge(tmp_path, CODES, bound)
    assert [item.evidence for item in report.objects] == ["legal-only"]
    assert (parity.outcome, parity.coverage, parity.objects) == ("not_checked", "none", 0)
    assert parity.reason == NOTHING_COMPARED
    assert report.verdict == "incomplete"
    # How far they are from the source is measured all the same.
    assert report.objects[0].metrics["error"]["max_abs_error"] == 0


def test_illegal_words_are_not_even_legal(tmp_path: Path):
    codes = CODES.copy()
    codes[7, 9] = 0x7F  # no number of E4M3FN
    report, _ = judge(tmp_path, codes, None)
    assert report.verdict == "failed"
    assert {item.check for item in report.findings} == {"values"}
    assert [item.evidence for item in report.objects] == [None]


def test_legality_is_claimed_only_where_it_was_looked_at(tmp_path: Path):
    report, parity = judge(tmp_path, CODES, None, ("layout", "parity"))
    assert [(item.evidence, item.coverage) for item in report.objects] == [(None, "none")]
    assert (parity.outcome, report.verdict) == ("not_checked", "incomplete")
    assert "legality" in (parity.reason or "")


@pytest.mark.parametrize(
    "bound",
    [{"max_abs_error": 0.125}, {"max_scale_error": 0.125}, {"nmse": 1e-6}, {"min_sqnr_db": 55}],
    ids=lambda bound: next(iter(bound)),
)
def test_a_bound_holds_or_is_exceeded(bound: dict[str, float], tmp_path: Path):
    """One value of 307,200 is off by 1/8; a second one by twice as much and more is beyond each bound."""
    codes = CODES.copy()
    codes[400, 8] += 1  # 1.0 becomes 1.125
    report, parity = judge(tmp_path, codes, bound)
    assert (report.verdict, parity.outcome, parity.coverage) == ("passed", "passed", "full")
    assert [item.evidence for item in report.objects] == ["within-bound"]
    codes[400, 8:16] = 0x3F
    codes[401:500] = 0x30
    report, parity = judge(tmp_path, codes, bound)
    overall = not bound.keys() & {"max_abs_error", "max_scale_error"}
    (finding,) = report.findings
    assert finding.code == ("parity.bound_exceeded_overall" if overall else "parity.bound_exceeded")
    assert (report.verdict, parity.outcome) == ("failed", "failed")
    assert [item.evidence for item in report.objects] == [None]
    if not overall:
        assert (finding.where["row"], finding.where["column"]) == (400, 8)


@pytest.mark.parametrize(
    ("bound", "coverage"), [({"max_abs_error": 0.125}, "sampled"), ({"nmse": 1e-6}, "full")]
)
def test_a_bound_of_the_whole_tensor_is_not_tried_on_a_sample(
    bound: dict[str, float], coverage: str, tmp_path: Path
):
    report, parity = judge(tmp_path, CODES, bound, sample=Sample(0.01, 1))
    assert (report.verdict, parity.coverage) == ("passed", coverage)
    assert [item.evidence for item in report.objects] == [None if coverage == "sampled" else "within-bound"]
    beyond = CODES.copy()
    beyond[1:-1] = 0x30
    report, _ = judge(tmp_path, beyond, bound, sample=Sample(0.01, 1))
    assert report.verdict == "failed"
