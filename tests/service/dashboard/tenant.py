"""What a project has besides its evidence, for pages to show: tokens, trusts, its log, uploads, campaigns, workers, lanes."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from service import auth
from service.records import audit, campaigns, jobs, tokens, trusts, workers
from service.records.models import DEFAULT_PROJECT, Artifact, Campaign, Job, Project, Trust, Upload, Worker
from service.records.types import new_id, now
from tests.service.dashboard.rows import MARKUP, REORDERED, sha256
from tests.service.dashboard.seed import Seed

QUOTA = 200_000_000_000


@dataclass(frozen=True, slots=True)
class Tenant:
    """What was seeded, by what it shows."""

    campaign: Campaign
    over: Campaign
    receiving: Upload
    set_aside: Job


def tenant(seed: Seed, scratch: Path, artifact: Artifact) -> Tenant:
    """Seed it."""
    with seed.database.write() as session:
        project = session.get(Project, DEFAULT_PROJECT)
        assert project is not None
        project.quota_bytes = QUOTA
        for number, (name, scopes, days) in enumerate(
            (("ci-nightly", "read submit", 9), ("release desk", "read gate", None), (MARKUP, "read", 300))
        ):
            tokens.add(
                session,
                DEFAULT_PROJECT,
                auth.hashed(f"seeded {number}"),
                "api",
                name=name[:100],
                scopes=scopes,
                created_by="token first",
                expires_at=None if days is None else now() + timedelta(days=days),
            )
        trusts.add(
            session,
            Trust(
                id=new_id(),
                project_id=DEFAULT_PROJECT,
                name="release workflow",
                issuer="https://token.actions.githubusercontent.com",
                audience="https://gate.example",
                claims={
                    "repository": "example/weights",
                    "workflow_ref": "example/weights/.github/workflows/release.yml@refs/heads/main",
                    "environment": ["production", REORDERED],
                },
                scopes="read submit",
                created_by="token first",
                created_at=now(),
            ),
        )
        for action, subject in (
            ("token.created", new_id()),
            ("trust.created", REORDERED),
            ("campaign.started", None),
        ):
            audit.add(session, DEFAULT_PROJECT, "token first", action, subject, {"name": MARKUP, "n": 3})
        for name, version, draining, ago in (
            ("gate-worker-1", "0.4.0", False, -900.0),  # alive for all tests of this service, however slow
            ("gate-worker-2", "0.3.0", True, -900.0),
            (MARKUP, None, False, 9_000.0),
        ):
            workers.enter(session, new_id(), host=name, machine="m", pid=41, started=1, version=version)
            row = session.query(Worker).filter_by(host=name).one()
            row.draining, row.beat_at = draining, row.beat_at - ago
    set_aside = _job(
        seed, artifact, "error", "gave_up", "a worker died at it five times; the last one of SIGKILL"
    )
    _job(seed, artifact, "running", "store_away", "the store did not answer in time")
    bulk = _job(seed, artifact, "queued", None, "")
    with seed.database.write() as session:
        kept = jobs.get(session, bulk.id)
        assert kept is not None
        kept.lane, kept.admitted_at = "bulk", None
        running, over = (
            _campaign(session, name, state) for name, state in (("after 0.4.0", "running"), (MARKUP, "done"))
        )
        kept.campaign_id = running.id
    uploads = [
        _upload(name, state, size)
        for name, state, size in (
            ("qwen3.6-27b.safetensors", "receiving", 54_000_000_000),
            (MARKUP, "storing", 2_000_000_000),
            (None, "failed", 7),
            ("done.ninfer", "stored", 5_000_000),
        )
    ]
    with seed.database.write() as session:
        session.add_all(uploads)
    (scratch / "incoming").mkdir(parents=True, exist_ok=True)
    with (scratch / "incoming" / uploads[0].id).open("wb") as file:
        file.truncate(20_250_000_000)
    return Tenant(running, over, uploads[0], set_aside)


def _job(seed: Seed, artifact: Artifact, state: str, code: str | None, detail: str) -> Job:
    run = seed.run(artifact, "queued")
    said = None if code is None else {"code": code, "detail": detail}
    with seed.database.write() as session:
        job = jobs.get(session, run.job_id)
        assert job is not None
        job.attempts, job.last_error = (0, None) if said is None else (3, said)
        if state != "queued":
            jobs.begin(session, job.id)
        if state == "error":
            jobs.finish(session, job.id, "error", error=said)
        return job


def _campaign(session: object, name: str, state: str) -> Campaign:
    row = Campaign(
        id=new_id(),
        project_id=DEFAULT_PROJECT,
        name=name[:100],
        request={
            "query": {"conditions": {"format": "Q4G64_F16S"}, "not_verified_for_days": 30, "kind": None},
            "verify": {"full": True, "recipe": "auto", "checks": []},
            "priority": 0,
        },
        state=state,
        cursor=None,
        total=120,
        selected=1,
        refused=2,
        last_refusal={"artifact": "sha256:0", "code": "recipe_mismatch", "detail": REORDERED},
        created_by="token first",
        created_at=now(),
        finished_at=now() if state == "done" else None,
    )
    return campaigns.add(session, row)  # type: ignore[arg-type]  # a session


def _upload(name: str | None, state: str, size: int) -> Upload:
    open_ = state in ("receiving", "storing")
    return Upload(
        id=new_id(),
        project_id=DEFAULT_PROJECT,
        protocol="tus",
        name=name,
        bytes=size,
        sha256=sha256(name or "none"),
        state=state,
        error={"code": "digest_mismatch", "detail": "the bytes are not what was declared"}
        if state == "failed"
        else None,
        created_by="token ci-nightly",
        created_at=now() - timedelta(hours=3),
        expires_at=now() + timedelta(days=6),
        finished_at=None if open_ else now(),
    )
