"""The digest that a person expects of an artifact: of other bytes nothing else is said."""

import re
from dataclasses import replace
from typing import Final

from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.verify.report import CheckResult, Report

_DIGEST: Final = re.compile(f"{DIGEST_PREFIX}[0-9a-f]{{64}}")
_REASON: Final = "these are not the bytes that were expected"


def read_digest(text: str) -> str:
    """A digest as reports spell it. Raises: Usage."""
    if _DIGEST.fullmatch(text) is None:
        raise Usage(f"a digest is {DIGEST_PREFIX} and 64 lower-case hex digits, not {text!r}")
    return text


def require_digest(report: Report, expected: str) -> Report:
    """The report itself where the artifact has the digest `expected`; else one that judges nothing but that.

    The digest is measured over the same bytes as everything else in the report, so no file can change in between.
    """
    if report.digest == expected:
        return report
    found = report.digest or "no digest, since not every file could be read to its end"
    names = [file.name for file in report.files]
    findings = Findings()
    findings.add(
        "structure.digest_unexpected",
        f"{', '.join(names) or 'the artifact'} has another digest than the one that was expected; nothing else was judged",
        where={"file": names[0]} if len(names) == 1 else {"files": names},
        expected=expected,
        found=found,
    )
    checks = tuple(
        check
        if check.outcome == "not_asked"
        else CheckResult(check.name, "not_checked", "none", 0, 0, _REASON)
        for check in report.checks
    )
    return replace(
        report,
        objects=(),
        checks=checks,
        findings=tuple(findings),
        unlisted={},
        verdict="failed",
        sample=None,
    )
