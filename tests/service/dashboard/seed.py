"""Rows as the service would have written them, for pages to show: every state, every kind of finding, hostile names."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from ninfer_core.targets import TARGETS
from ninfer_core.verify.checks import CHECKS
from ninfer_core.verify.report import versions
from service.records import content, conversions, jobs, runs
from service.records.database import Database
from service.records.models import (
    DEFAULT_PROJECT,
    Artifact,
    ArtifactFile,
    Checkpoint,
    CheckpointFile,
    Conversion,
    ConversionFinding,
    ConversionObject,
    Finding,
    Job,
    Object,
    Recipe,
    Run,
)
from service.records.types import new_id, now
from tests.service.dashboard.rows import (
    ACCOUNTING,
    made_object,
    object_row,
    report_head,
    result_row,
    sha256,
    two_shards,
)


class Seed:
    """Writes rows of the default project; every method commits by itself."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def artifact(
        self,
        entry: str,
        names: Sequence[str] = (),
        *,
        kind: str = "ninfer",
        identity: tuple[str | None, str | None] = ("qwen3.6-27b", "groupwise-int"),
        listing: str = "listed",
        origin: str = "pushed",
        ago: timedelta = timedelta(0),
    ) -> Artifact:
        """An artifact with one object for each name."""
        rows = [object_row(ordinal, name, kind) for ordinal, name in enumerate(names)]
        size = sum(row.entry["bytes"] for row in rows) + 4_096
        digest = sha256(entry)
        artifact = Artifact(
            id=new_id(),
            project_id=DEFAULT_PROJECT,
            digest=f"sha256:{digest}",
            kind=kind,
            entry=entry,
            bytes=size,
            origin=origin,
            listing="pending",
            created_at=now() - ago,
        )
        file = ArtifactFile(name=entry, sha256=digest, bytes=size)
        with self.database.write() as session:
            stored, _ = content.add_artifact(session, artifact, [file])
            if listing != "pending":
                content.list_objects(
                    session,
                    stored.id,
                    rows=rows,
                    listing=listing,
                    revision=2 if kind == "ninfer" else None,
                    model_id=identity[0],
                    weights_id=identity[1],
                )
        return stored

    def job(
        self, type_: str = "verify", artifact: Artifact | None = None, ago: timedelta = timedelta(0)
    ) -> Job:
        """A queued job."""
        job = Job(
            id=new_id(),
            project_id=DEFAULT_PROJECT,
            type=type_,
            state="queued",
            request={"type": type_},
            request_digest=f"sha256:{sha256(type_)}",
            artifact_id=artifact.id if artifact else None,
            cancel_requested=False,
            created_at=now() - ago,
        )
        with self.database.write() as session:
            return jobs.add(session, job)

    def run(
        self,
        artifact: Artifact,
        state: str = "queued",
        *,
        findings: Sequence[dict[str, Any]] = (),
        failed: Iterable[int] = (),
        not_checked: Iterable[int] = (),
        checks: Sequence[str] = CHECKS,
        reasons: dict[str, str] | None = None,
        error: dict[str, str] | None = None,
        extent: str = "full",
        ago: timedelta = timedelta(0),
    ) -> Run:
        """A run in the given state, with its results, findings and report when it has an answer."""
        job = self.job("verify", artifact, ago)
        run = Run(
            id=new_id(),
            project_id=DEFAULT_PROJECT,
            job_id=job.id,
            artifact_id=artifact.id,
            checks=list(checks),
            sample={"fraction": 0.01, "seed": 7} if extent == "sampled" else None,
            canonical=extent == "sampled",
            target=TARGETS[0].digest if extent == "sampled" else None,
            created_at=job.created_at,
        )
        with self.database.write() as session:
            run = runs.add(session, run)
            if state != "queued":
                jobs.begin(session, job.id)
                jobs.plan(session, job.id, artifact.object_count or 0, artifact.bytes, two_shards(artifact))
            if state in ("passed", "failed", "incomplete"):
                self._answer(
                    session,
                    run,
                    artifact,
                    state,
                    list(findings),
                    set(failed),
                    set(not_checked),
                    reasons or {},
                    extent,
                )
            if state not in ("queued", "running"):
                jobs.finish(session, job.id, state, error=error)
        return run

    def _answer(
        self,
        session: Any,
        run: Run,
        artifact: Artifact,
        state: str,
        findings: list[dict[str, Any]],
        failed: set[int],
        not_checked: set[int],
        reasons: dict[str, str],
        extent: str,
    ) -> None:
        objects: list[Object] = []
        cursor = None
        while True:
            page = content.objects(session, artifact.id, limit=1_000, cursor=cursor)
            objects += page.items
            cursor = page.next
            if cursor is None:
                break
        results = [result_row(row, failed, not_checked) for row in objects]
        for row in results:
            row.coverage = extent
            row.evidence = None if extent == "sampled" else row.evidence
        runs.save_results(session, run.id, results)
        rows = [
            Finding(
                seq=seq,
                code=document["code"],
                severity=document["severity"],
                check=document["check"],
                object=document["object"],
                document=document,
            )
            for seq, document in enumerate(findings)
        ]
        runs.save_findings(session, run.id, rows)
        errors = sum(document["severity"] == "error" for document in findings)
        head = report_head(artifact, state, run.checks, findings, objects, not_checked, reasons, extent)
        runs.save(
            session,
            run.id,
            verdict=state,
            report_head=head,
            errors=errors,
            advisories=len(findings) - errors,
        )

    def advance(self, run: Run, share: float) -> None:
        """Let a running job be so far."""
        with self.database.write() as session:
            for shard in jobs.shards(session, run.job_id):
                jobs.advance(session, run.job_id, shard.number, int(shard.bytes * share))

    def finish(self, run: Run, state: str = "passed") -> None:
        """Let a running job end without an answer of its own."""
        with self.database.write() as session:
            jobs.finish(session, run.job_id, state)

    def conversion(
        self, artifact: Artifact | None, state: str = "passed", *, findings: Sequence[dict[str, Any]] = ()
    ) -> Conversion:
        """A conversion that made `artifact`, or that is in another state."""
        recipe = f"sha256:{sha256('recipe')}"
        job = self.job("convert", artifact)
        weights = Checkpoint(
            id=new_id(),
            project_id=DEFAULT_PROJECT,
            digest=f"sha256:{sha256('weights')}",
            bytes=54_123_456_789,
            repository="Qwen/Qwen3.6-27B",
            revision="7ad1f2c",
            created_at=now(),
        )
        file = CheckpointFile(name="model.safetensors", sha256=sha256("weights"), bytes=54_123_456_789)
        with self.database.write() as session:
            content.add_recipe(
                session,
                Recipe(
                    project_id=DEFAULT_PROJECT,
                    digest=recipe,
                    recipe_id="qwen3.6-27b/groupwise-int",
                    model_id="qwen3.6-27b",
                    weights_id="groupwise-int",
                    document="{}",
                    created_at=now(),
                ),
            )
            stored, _ = content.add_checkpoint(session, weights, [file])
            conversion = conversions.add(
                session,
                Conversion(
                    id=job.id,
                    project_id=DEFAULT_PROJECT,
                    job_id=job.id,
                    recipe_digest=recipe,
                    checkpoints={"base": stored.id},
                    inputs={},
                    output={"revision": 2, "max_file_bytes": None, "name": "made.ninfer"},
                    created_at=now(),
                ),
            )
            if state != "queued":
                jobs.begin(session, job.id)
            if state in ("passed", "failed"):
                self._made(session, conversion, artifact if state == "passed" else None, list(findings))
            if state not in ("queued", "running"):
                jobs.finish(session, job.id, state, artifact_id=artifact.id if artifact else None)
        return conversion

    def _made(
        self, session: Any, conversion: Conversion, artifact: Artifact | None, findings: list[dict[str, Any]]
    ) -> None:
        if artifact is not None:
            page = content.objects(session, artifact.id, limit=1_000)
            rows = [ConversionObject(ordinal=row.ordinal, document=made_object(row)) for row in page.items]
            conversions.save_objects(session, conversion.id, rows)
        noted = [
            ConversionFinding(
                seq=seq,
                code=document["code"],
                severity=document["severity"],
                check=document["check"],
                object=document["object"],
                document=document,
            )
            for seq, document in enumerate(findings)
        ]
        conversions.save_findings(session, conversion.id, noted)
        conversions.save(
            session,
            conversion.id,
            verdict="refused" if artifact is None else "written",
            document={"versions": versions(), "unused_sources": {}, "accounting": {"base": ACCOUNTING}},
            artifact_id=artifact.id if artifact else None,
        )
