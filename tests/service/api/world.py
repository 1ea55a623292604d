"""A real service over HTTP with small limits, a queue that only remembers, and rows that the examples speak of."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from service import auth
from service.api import examples
from service.api.app import create_app
from service.blobs import open_store
from service.campaigns import Query, Start
from service.job_requests import Verify
from service.jobs import Sent
from service.lanes import INTERACTIVE
from service.parts import Parts
from service.records import (
    campaigns,
    content,
    conversions,
    identities,
    jobs,
    provenance,
    runs,
    scheme_checks,
    tokens,
    trusts,
)
from service.records.database import Database
from service.records.models import (
    DEFAULT_PROJECT,
    Campaign,
    Checkpoint,
    CheckpointFile,
    Conversion,
    ConversionFinding,
    ConversionObject,
    Finding,
    Job,
    Object,
    Result,
    Run,
    SchemeCheck,
    Trust,
)
from service.records.provenance import Fact
from service.records.types import now
from service.settings import Settings
from tests.service.api.compared import compared
from tests.service.api.uploaded import uploaded
from tests.service.selfchecked import document, stored

P = DEFAULT_PROJECT
LIMITS: dict[str, Any] = {
    "idle_seconds": 0.6,
    "max_blob_bytes": 9 << 20,
    "max_json_bytes": 20_000,
    "max_json_depth": 16,
    "max_files": 3,
    "max_page": 100,
    "import_roots": (Path("/srv/imports"),),
}
REPORT = {
    "schema": "ninfer-gate/report/1",
    "verdict": "failed",
    "artifact": {"kind": "ninfer", "name": "example.ninfer"},
    "recipe": None,
    "checks": [],
    "coverage": {},
    "unlisted_findings": {},
    "versions": {"ninfer_gate": "0"},
}
CONVERSION = {
    "schema": "ninfer-gate/conversion/1",
    "verdict": "written",
    "artifact": {"kind": "ninfer"},
    "recipe": {"digest": examples.RECIPE_DIGEST},
    "unused_sources": {},
    "accounting": {},
    "versions": {"ninfer_gate": "0"},
}
RECORD = '{"schema":"ninfer-gate/provenance-record/1"}'
FINDING = {
    "code": "values.code_illegal",
    "rule": "C1",
    "severity": "error",
    "check": "values",
    "about": "artifact",
    "object": "a",
    "where": {"row": 1},
    "expected": "x",
    "found": "y",
    "count": 2,
    "message": "m",
}


@dataclass
class Remembering:
    """The queue's twin: what was enqueued, once for each id; it fails when told to."""

    enqueued: dict[str, tuple[str, tuple[str | int, ...]]] = field(default_factory=dict)
    lines: dict[str, tuple[str, int]] = field(default_factory=dict)  # lane and priority
    broken: bool = False

    def enqueue(
        self,
        workflow: str,
        id: str,  # noqa: A002  the engine's own word
        *args: str | int,
        lane: str = INTERACTIVE,
        priority: int = 0,
    ) -> None:
        """See `service.queue.Queue`."""
        if self.broken:
            raise RuntimeError("the engine is away")
        if id not in self.enqueued:
            self.enqueued[id] = (workflow, args)
            self.lines[id] = (lane, priority)

    def require_ready(self) -> None:
        """See `service.parts.Enqueues`."""
        if self.broken:
            raise OSError("the engine is away")


@dataclass
class World:
    """A running service."""

    app: Any
    parts: Parts
    queue: Remembering
    address: str
    token: str
    http: httpx.Client

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A request with the token."""
        return self.http.request(method, path, **more)

    def push(self, content: bytes | str, **headers: str) -> str:
        """The digest of new content."""
        answer = self.http.post("/v1/blobs", content=content, headers=headers)
        assert answer.is_success, answer.text
        digest: str = answer.json()["digest"]
        return digest

    def kept(self) -> set[str]:
        """Every sha256 in the store."""
        return {path.name for path in (self.parts.blobs.root / "blobs").rglob("*") if path.is_file()}

    @contextmanager
    def with_database(self, database: Any) -> Iterator[None]:
        """Another database for a moment."""
        self.app.state.parts = replace(self.parts, database=database)
        try:
            yield
        finally:
            self.app.state.parts = self.parts

    @contextmanager
    def with_settings(self, **changes: Any) -> Iterator[None]:
        """Other settings for a moment."""
        settings = self.parts.settings.model_copy(update=changes)
        self.app.state.parts = replace(self.parts, settings=settings)
        try:
            yield
        finally:
            self.app.state.parts = self.parts


@contextmanager
def world(folder: Path, url: str, **limits: Any) -> Iterator[World]:
    """A service over a migrated database, on a free port."""
    settings = Settings(data=folder, database_url=url, **{**LIMITS, **limits})
    database = Database(url)
    queue = Remembering()
    app = create_app(settings, database, open_store(settings), queue)
    token = auth.new_token(database)
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        http="httptools",
        loop="uvloop",
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "uvicorn did not start"
            time.sleep(0.005)
        address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=address, headers=headers, timeout=30) as http:
            yield World(app, app.state.parts, queue, address, token, http)
    finally:
        app.state.parts.closing.set()
        server.should_exit = True
        thread.join(10)
        assert app.state.parts.uses.settle()
        database.close()
    assert not thread.is_alive()


def seed(made: World) -> None:
    """What the examples of the OpenAPI document speak of."""
    made.push(examples.CONTENT)
    record = made.push(RECORD)
    uploaded(made.parts)
    made.call("POST", "/v1/artifacts", json=examples.ARTIFACT).raise_for_status()
    made.call("POST", "/v1/recipes", json=examples.RECIPE).raise_for_status()
    made.call("POST", "/v1/targets", json=examples.TARGET).raise_for_status()
    sha256 = examples.CONTENT_DIGEST.removeprefix("sha256:")
    size = len(examples.CONTENT)
    with made.parts.database.write() as session:
        artifact = content.find_artifact(session, P, examples.CONTENT_DIGEST)
        assert artifact is not None
        checkpoint = Checkpoint(
            id=examples.CHECKPOINT_ID,
            project_id=P,
            digest=examples.CONTENT_DIGEST,
            bytes=size,
            repository="seeded",
            revision=None,
            created_at=now(),
        )
        file = CheckpointFile(name="model.safetensors", sha256=sha256, bytes=size)
        content.add_checkpoint(session, checkpoint, [file])
        content.list_objects(
            session,
            artifact.id,
            rows=[_object(0, "a"), _object(1, "b")],
            listing="listed",
            revision=2,
            model_id="m",
            weights_id="w",
        )
        for id_ in (examples.JOB_ID, examples.DONE_ID):
            _verification(session, id_, artifact.id)
        _access(session)
        _finished(session)
        _conversion(session, artifact.id, record)
        compared(session, artifact.id)
        _selfcheck(session)
        _scheme_check(session)
        _campaign(session)
        identities.save(session, artifact, [(0, examples.IDENTITY), (1, examples.IDENTITY)])
        facts = [Fact("recipe", examples.RECIPE_DIGEST), Fact("format", "FP32")]
        provenance.save(session, artifact, "converted", examples.CONVERSION_ID, facts)


def _access(session: Any) -> None:
    made = tokens.add(session, P, "1" * 64, "api", name="seeded", scopes="read", created_by="seed")
    made.id = examples.TOKEN_ID
    trust = {name: examples.TRUST_OIDC[name] for name in ("name", "issuer", "audience", "claims")}
    trusts.add(
        session,
        Trust(
            id=examples.TRUST_ID,
            project_id=P,
            **trust,
            scopes="read submit",
            created_by="seed",
            created_at=now(),
        ),
    )


def _object(ordinal: int, name: str) -> Object:
    entry = {"encoding": None, "shape": [2, 64], "offset": 64 * ordinal, "bytes": 64}
    return Object(
        ordinal=ordinal,
        name=name,
        kind="tensor",
        format="FP32",
        layout="contiguous-le-v1",
        entry=entry,
    )


def _job(id_: str, type_: str, artifact_id: str | None) -> Job:
    return Job(
        id=id_,
        project_id=P,
        type=type_,
        state="queued",
        request={"type": type_},
        request_digest=Sent.of(id_, None).digest,
        artifact_id=artifact_id,
        created_at=now(),
    )


def _verification(session: Any, id_: str, artifact_id: str) -> None:
    jobs.add(session, _job(id_, "verify", artifact_id))
    run = Run(
        id=id_,
        project_id=P,
        job_id=id_,
        artifact_id=artifact_id,
        checks=["structure"],
        checkpoints={},
        created_at=now(),
    )
    runs.add(session, run)


def _finished(session: Any) -> None:
    done = examples.DONE_ID
    jobs.begin(session, done)
    rows = [
        Result(
            ordinal=ordinal,
            outcome=outcome,
            sha256="0" * 64,
            identity=f"sha256:{'1' * 64}",
            metrics={"nmse": nmse},
            nmse=nmse,
        )
        for ordinal, (outcome, nmse) in enumerate((("passed", 0.25), ("failed", 0.5)))
    ]
    runs.save_results(session, done, rows)
    runs.save_findings(session, done, [_finding(Finding)])
    runs.save(session, done, verdict="failed", report_head=REPORT, errors=1, advisories=0)
    jobs.finish(session, done, "failed")


def _conversion(session: Any, artifact_id: str, record: str) -> None:
    id_ = examples.CONVERSION_ID
    jobs.add(session, _job(id_, "convert", None))
    row = Conversion(
        id=id_,
        project_id=P,
        job_id=id_,
        recipe_digest=examples.RECIPE_DIGEST,
        checkpoints={"base": examples.CHECKPOINT_ID},
        inputs={},
        output={"revision": 2, "max_file_bytes": None, "name": "example.ninfer"},
        created_at=now(),
    )
    conversions.add(session, row)
    jobs.begin(session, id_)
    conversions.save_objects(session, id_, [ConversionObject(ordinal=0, document={"name": "a"})])
    conversions.save_findings(session, id_, [_finding(ConversionFinding)])
    conversions.save(
        session, id_, verdict="written", document=CONVERSION, artifact_id=artifact_id, record=record
    )
    jobs.finish(session, id_, "passed", artifact_id=artifact_id)


def _selfcheck(session: Any) -> None:
    id_ = examples.SELFCHECK_ID
    jobs.add(session, _job(id_, "selfcheck", None))
    jobs.begin(session, id_)
    stored(session, document(failed=("encode.Q4G64_F16S.BF16.cpu",)), id_=id_, job_id=id_)
    jobs.finish(session, id_, "failed")


def _scheme_check(session: Any) -> None:
    id_ = examples.SCHEME_CHECK_ID
    jobs.add(session, _job(id_, "scheme", None))
    row = SchemeCheck(id=id_, project_id=P, job_id=id_, subject="parts", form="gptq", created_at=now())
    scheme_checks.add(session, row)
    jobs.begin(session, id_)
    document = {
        "schema": "ninfer-gate/scheme-check/1",
        "verdict": "failed",
        "form": "gptq",
        "findings": [{**FINDING, "code": "scheme.group_out_of_range", "check": "scheme"}],
    }
    scheme_checks.save(session, id_, document)
    jobs.finish(session, id_, "failed")


def _campaign(session: Any) -> None:
    row = Campaign(
        id=examples.CAMPAIGN_ID,
        project_id=P,
        name="seeded",
        request=Start("seeded", Query(), Verify("")).document(),
        state="running",
        cursor=examples.CAMPAIGN_ID,
        total=1,
        selected=0,
        refused=0,
        created_by="seed",
        created_at=now(),
    )
    campaigns.add(session, row)


def _finding(model: Any) -> Any:
    members = ("code", "severity", "check", "object")
    return model(seq=0, document=FINDING, **{name: FINDING[name] for name in members})
