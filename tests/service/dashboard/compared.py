"""Comparisons for pages to show: objects of every status, hostile names, and one that still runs."""

from collections.abc import Sequence

from ninfer_core.compare.comparison import Compares, Comparison, ObjectComparison, Status
from ninfer_core.compare.facts import Fact, Facts
from ninfer_core.compare.metrics import no_metrics, pair_metrics
from ninfer_core.compare.outcomes import Changes
from ninfer_core.compare.summary import summary
from ninfer_core.containers.directory import TensorObject
from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, Q4G64_F16S, W8G32_F16S, NumericFormat
from ninfer_core.identity import FileDigest
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.layouts import canonical_layout
from service.records import comparisons, jobs
from service.records import models as rows
from service.records.models import DEFAULT_PROJECT, Artifact
from service.records.types import now
from tests.service.dashboard.rows import sha256, two_shards
from tests.service.dashboard.seed import Seed

SHAPE = (512, 1024)


def compare(
    seed: Seed, a: Artifact, b: Artifact, names: Sequence[str], state: str = "passed"
) -> rows.Comparison:
    """A comparison in the given state; an answer has an object for each name, and two more."""
    job = seed.job("compare")
    row = rows.Comparison(
        id=job.id,
        project_id=DEFAULT_PROJECT,
        job_id=job.id,
        a_artifact_id=a.id,
        b_artifact_id=b.id,
        created_at=now(),
    )
    with seed.database.write() as session:
        comparisons.add(session, row)
        if state != "queued":
            jobs.begin(session, job.id)
            jobs.plan(session, job.id, len(names), a.bytes, two_shards(a))
        if state in ("passed", "failed"):
            _answer(session, row, _comparison(a, b, names, state == "failed"))
        if state not in ("queued", "running"):
            jobs.finish(session, job.id, state)
    return row


def _answer(session, row: rows.Comparison, comparison: Comparison) -> None:
    made = [
        rows.ComparisonObject(
            ordinal=item.ordinal,
            status=item.status,
            rank=item.rank,
            weight=item.weight,
            document=item.as_json(),
        )
        for item in comparison.objects
    ]
    comparisons.save_objects(session, row.id, made)
    members = ("code", "severity", "check", "object")
    notes = [
        rows.ComparisonFinding(seq=seq, **{name: document[name] for name in members}, document=document)
        for seq, document in enumerate(comparison.findings_json(), 1)
    ]
    comparisons.save_findings(session, row.id, notes)
    comparisons.save(
        session,
        row.id,
        verdict=comparison.verdict,
        document=comparison.head_json(),
        summary=summary(comparison),
    )


def _comparison(a: Artifact, b: Artifact, names: Sequence[str], broken: bool) -> Comparison:
    objects = [_object(ordinal, name) for ordinal, name in enumerate(names)]
    objects.append(_alone(len(names), "old/name", "removed", "new/name"))
    objects.append(_alone(len(names) + 1, "new/name", "added", "old/name"))
    facts = [Fact(f"bindings.{name}", '{"object": "x"}', None, True) for name in names]
    facts.append(Fact("revision", "2", "3", False))
    return Comparison(_side(a, False), _side(b, broken), tuple(objects), Facts(tuple(facts), 7))


def _side(artifact: Artifact, broken: bool) -> Compares:
    findings = Findings()
    if broken:
        findings.add("structure.unreferenced_bytes", "12 bytes between two objects are not zero")
        findings.add("structure.object_name_duplicate", "'x' names objects 0 and 1", object="x")
    file = FileDigest(artifact.entry, artifact.bytes, sha256(artifact.entry))
    root = None if broken else f"sha256:{sha256(artifact.digest)}"
    return Compares(
        "ninfer",
        2,
        artifact.model_id,
        artifact.weights_id,
        None,
        (file,),
        True,
        True,
        root,
        tuple(findings),
        {},
    )


def _tensor(ordinal: int, name: str, fmt: NumericFormat) -> TensorObject:
    layout = canonical_layout(fmt)
    size = layout.encoded_size(fmt, SHAPE)
    return TensorObject(ordinal, name, SHAPE, fmt, layout, ordinal << 20, size)


def _object(ordinal: int, name: str) -> ObjectComparison:
    a, changes = _tensor(ordinal, name, Q4G64_F16S), None
    status, fmt = (
        ("identical", Q4G64_F16S),
        ("changed", Q4G64_F16S),
        ("re-encoded", W8G32_F16S),
        ("re-packed", Q4G64_F16S),
    )[ordinal % 4]
    if ordinal % 11 == 5:
        return ObjectComparison(ordinal, name, "unreadable", a, a, reason="a.ninfer: wanted 9 bytes, got 3")
    item = ObjectComparison(ordinal, name, status, a, _tensor(ordinal, name, fmt), "0" * 64, "1" * 64)
    if status == "identical":
        return item
    error = 0.0 if status == "re-packed" else 10.0 ** -(ordinal % 9)
    if status != "re-encoded":
        count = 0 if status == "re-packed" else 1 + ordinal
        changes = Changes(SHAPE[0] * SHAPE[1], count, 8192, 0, False, ordinal if count else None)
    sums = ErrorSums(SHAPE[0] * SHAPE[1], error, 1.0, 1.0, error / 10)
    item.metrics = pair_metrics(SHAPE, changes, sums, "")
    if ordinal % 7 == 6:
        item.metrics = no_metrics("values of A or B are not all finite")
    return item


def _alone(ordinal: int, name: str, status: Status, other: str) -> ObjectComparison:
    item = _tensor(ordinal, name, BF16)
    sides = (item, None) if status == "removed" else (None, item)
    return ObjectComparison(ordinal, name, status, *sides, same_content_as=other)
