"""How a document with faults is refused: with how many there are, and as many findings as an answer holds."""

from typing import Final

from ninfer_core.findings import Findings
from ninfer_core.verify.report import finding_json
from service.errors import ServiceError
from service.text import plural

_MOST_FINDINGS: Final = 1_000  # in one refusal


def faulty(refusal: type[ServiceError], what: str, findings: Findings) -> ServiceError:
    """The refusal of a `what` in which these were found."""
    found = list(findings)
    return refusal(
        f"The {what} has {plural(len(found) + sum(findings.unlisted.values()), 'fault')}.",
        findings=[finding_json(finding) for finding in found[:_MOST_FINDINGS]],
    )
