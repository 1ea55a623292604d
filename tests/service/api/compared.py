"""The comparison that the examples of the OpenAPI document speak of."""

from typing import Any

from sqlalchemy.orm import Session

from service.api import examples
from service.jobs import Sent
from service.records import comparisons, jobs
from service.records.models import DEFAULT_PROJECT, Comparison, ComparisonFinding, ComparisonObject, Job
from service.records.types import now

SIDE: dict[str, Any] = {
    "ordinal": 0,
    "kind": "tensor",
    "format": "FP32",
    "layout": "contiguous-le-v1",
    "encoding": None,
    "shape": [2, 64],
    "offset": 0,
    "bytes": 512,
    "sha256": "0" * 64,
    "identity": f"sha256:{'1' * 64}",
}
OBJECT: dict[str, Any] = {
    "ordinal": 0,
    "name": "a",
    "status": "changed",
    "a": SIDE,
    "b": SIDE,
    "same_content_as": None,
    "metrics": {"nmse": 0.5},
    "reason": None,
}
OBJECTS = (
    OBJECT,
    {**OBJECT, "ordinal": 1, "name": "b", "status": "identical", "metrics": {}},
    {**OBJECT, "ordinal": 2, "name": "c", "status": "removed", "b": None, "metrics": {}},
)
FINDING = {
    "side": "b",
    "code": "structure.unreferenced_bytes",
    "rule": "A6",
    "severity": "advisory",
    "check": "structure",
    "about": "artifact",
    "object": None,
    "where": {"offset": 1},
    "expected": "x",
    "found": "y",
    "count": 2,
    "message": "m",
}
HEAD = {
    "schema": "ninfer-gate/comparison/1",
    "verdict": "different",
    "a": {},
    "b": {},
    "totals": {},
    "facts": [{"name": "metadata.name", "a": '"x"', "b": None, "decides": True}],
    "unlisted_facts": 0,
}
_RANKS = {"changed": 4, "identical": 7, "removed": 1}


def compared(session: Session, artifact_id: str) -> None:
    """A comparison that is done, of an artifact with itself."""
    id_, project_id = examples.COMPARISON_ID, DEFAULT_PROJECT
    job = Job(
        id=id_,
        project_id=project_id,
        type="compare",
        state="queued",
        request=examples.COMPARE,
        request_digest=Sent.of(id_, None).digest,
        created_at=now(),
    )
    jobs.add(session, job)
    row = Comparison(
        id=id_,
        project_id=project_id,
        job_id=id_,
        a_artifact_id=artifact_id,
        b_artifact_id=artifact_id,
        created_at=now(),
    )
    comparisons.add(session, row)
    jobs.begin(session, id_)
    rows = [
        ComparisonObject(
            ordinal=item["ordinal"],
            status=item["status"],
            rank=_RANKS[item["status"]],
            weight=item["metrics"].get("nmse", 0.0),
            document=item,
        )
        for item in OBJECTS
    ]
    comparisons.save_objects(session, id_, rows)
    members = {name: FINDING[name] for name in ("code", "severity", "check", "object")}
    comparisons.save_findings(session, id_, [ComparisonFinding(seq=1, **members, document=FINDING)])
    comparisons.save(session, id_, verdict="different", document=HEAD, summary="B lacks 1 object of A")
    jobs.finish(session, id_, "passed")
