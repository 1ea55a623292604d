"""What is noted of requests: ids, log lines, metrics by route, and never a secret or a path that a client chose."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from service import auth, logs, metrics
from service.errors import RateLimited
from service.records.models import DEFAULT_PROJECT, Job, Upload, Worker
from service.records.types import new_id, now
from tests.service.api.world import World, world

CANARY = "ng_CANARY7f3aCANARY7f3aCANARY7f3aCANARY7f3a"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged, as JSON lines, shaped as in `serve`."""
    root, before, config = logging.getLogger(), logging.getLogger().handlers[:], structlog.get_config()
    logs.configure(True, role="api")
    said = io.StringIO()
    handler = root.handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(said)
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "disabled", True)  # as `serve` runs it
    yield said
    root.handlers[:] = before
    structlog.configure(**config)


def families(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """{name: {values of labels: value}}."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_every_answer_has_an_id_and_a_refusal_says_it(api: World) -> None:
    assert api.call("GET", "/v1/jobs", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    refused = api.call("GET", "/v1/nothing", headers={"X-Request-Id": "mine-2"})
    assert refused.json()["request_id"] == refused.headers["x-request-id"] == "mine-2"
    for bad in ("a b", "x" * 65, "", "\xe9", CANARY):
        given = api.call("GET", "/v1/nothing", headers={"X-Request-Id": bad.encode("latin-1")})
        assert len(given.headers["x-request-id"]) == 32
    with api.with_database(None):
        fault = api.call("GET", "/v1/jobs")
    assert (fault.status_code, len(fault.headers["x-request-id"])) == (500, 32)
    assert fault.json()["request_id"] == fault.headers["x-request-id"]


def test_a_line_for_each_request_without_what_the_client_wrote(api: World, lines: io.StringIO) -> None:
    job = new_id()
    api.call("GET", f"/v1/jobs/{job}?token={CANARY}", headers={"X-Request-Id": "seen-1"})
    api.call("GET", f"/v1/jobs/{CANARY}")
    api.call("GET", f"/{CANARY}/{CANARY}")
    api.http.get("/v1/jobs", headers={"Authorization": f"Bearer {CANARY}"})
    with api.with_database(None):
        api.http.get("/v1/jobs", headers={"Authorization": f"Bearer {CANARY}"})
    api.call("GET", "/healthz")
    text = lines.getvalue()
    assert "CANARY" not in text
    first = next(line for line in text.splitlines() if "seen-1" in line)
    for part in (
        '"route": "/v1/jobs/{job}"',
        job,
        '"status": 404',
        '"request": "seen-1"',
        '"role": "api"',
    ):
        assert part in first, first
    assert sum("request.done" in line for line in text.splitlines()) == 5
    assert "request.failed" in text
    assert "Traceback" in text


@pytest.mark.parametrize(
    "secret",
    [
        CANARY,
        "Bearer tok_CANARY_7f3a",
        "eyJhbGciOiJSUzI1NiJ9.CANARY.CANARY",
        "postgresql://gate:CANARY@host/gate",
        "https://u:CANARY@host/file",
        "https://s3/b/k?X-Amz-Credential=CANARY&X-Amz-Signature=CANARY",
    ],
)
def test_lines_hide_what_looks_like_a_secret(lines: io.StringIO, secret: str) -> None:
    try:
        raise ValueError(f"refused: {secret}\n")
    except ValueError:
        structlog.get_logger().exception("library.failed", said=secret)
    logging.getLogger("somebody").error("headers: %s", {"authorization": secret})
    text = lines.getvalue()
    assert text.count("\n") == 2
    assert logs.HIDDEN in text
    assert "CANARY" not in text


def test_a_line_for_a_person_cannot_be_forged(lines: io.StringIO) -> None:
    logs.configure(False)
    handler = logging.getLogger().handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(lines)
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        structlog.get_logger().exception("failed", project="\0\x1b]0;x\x07\u2028\u202e")
    logging.getLogger("somebody").error("of %s", "a\n2026-12-01 [error] b")
    text = lines.getvalue()
    assert all(line.isprintable() for line in text.split("\n"))
    assert "2026-12-01 [error] b" in text.splitlines()[-1] != "2026-12-01 [error] b"


def test_metrics_count_routes_and_codes_not_paths(api: World) -> None:
    def counted() -> tuple[float, float, float]:
        text = api.call("GET", "/metrics").text
        assert "CANARY" not in text
        found = families(text)
        seconds = found.get("ninfer_gate_request_seconds_count", {})
        return (
            seconds.get(("GET", "/v1/jobs/{job}", "404"), 0),
            seconds.get(("other", "other", "404"), 0) + seconds.get(("other", "other", "405"), 0),
            found.get("ninfer_gate_errors_total", {}).get(("job_not_found",), 0),
        )

    before = counted()
    for _ in range(3):
        api.call("GET", f"/v1/jobs/{new_id()}")
    api.call("PROPFIND", "/CANARY")
    after = counted()
    assert [now - then for now, then in zip(after, before, strict=True)] == [3, 1, 3]


def test_metrics_tell_queue_workers_and_uploads(fresh: World) -> None:
    def told() -> dict[str, dict[tuple[str, ...], float]]:
        answer = fresh.call("GET", "/metrics")
        assert answer.headers["content-type"] == metrics.MEDIA_TYPE
        return families(answer.text)

    empty = told()
    assert set(empty["ninfer_gate_queue_jobs"].values()) == {0}
    assert set(empty["ninfer_gate_queue_oldest_seconds"].values()) == {0}
    with fresh.parts.database.write() as session:
        for lane, state, admitted in (
            ("bulk", "queued", None),
            ("bulk", "queued", now()),
            ("interactive", "running", now()),
            ("bulk", "passed", now()),
        ):
            facts = {
                "admitted_at": admitted,
                "request": {},
                "request_digest": "sha256:" + "0" * 64,
                "created_at": now(),
            }
            session.add(
                Job(id=new_id(), project_id=DEFAULT_PROJECT, type="verify", lane=lane, state=state, **facts)
            )
        for beat, draining in ((9e9, False), (9e9, True), (1.0, False)):
            session.add(
                Worker(
                    executor_id=new_id(),
                    host="h",
                    machine="m",
                    pid=1,
                    started=1,
                    beat_at=beat,
                    draining=draining,
                )
            )
        whole = {"created_by": "x", "created_at": now(), "expires_at": now(), "protocol": "tus"}
        for state, size in (("receiving", 5), ("storing", 6), ("stored", 7), ("receiving", 8)):
            session.add(Upload(id=new_id(), project_id=DEFAULT_PROJECT, state=state, bytes=size, **whole))
    found = told()
    assert found["ninfer_gate_queue_jobs"] == {
        ("interactive", "waiting"): 0,
        ("interactive", "in_line"): 0,
        ("interactive", "running"): 1,
        ("bulk", "waiting"): 1,
        ("bulk", "in_line"): 1,
        ("bulk", "running"): 0,
    }
    ages = found["ninfer_gate_queue_oldest_seconds"]
    assert 0 <= ages["bulk", "waiting"] < 60
    assert ages["bulk", "running"] == 0
    assert found["ninfer_gate_workers"] == {("false",): 1, ("true",): 1}
    assert found["ninfer_gate_open_uploads"] == {("receiving",): 2, ("storing",): 1}
    assert found["ninfer_gate_open_upload_bytes"] == {("receiving",): 13, ("storing",): 6}
    assert fresh.call("GET", "/readyz").json() == {"status": "ok", "warnings": []}


def test_who_may_read_the_metrics(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(made: World, token: str | None) -> int:
        headers = {"Authorization": "" if token is None else f"Bearer {token}"}
        answer = made.http.get("/metrics", headers={**headers, "X-Request-Id": "same"})
        if answer.status_code == 404:
            nothing = made.http.get("/nothing", headers={"X-Request-Id": "same"})
            assert answer.content == nothing.content
        return answer.status_code

    with world(tmp_path / "a", sqlite_url) as made:
        assert [asked(made, token) for token in (None, "x", made.token)] == [404, 404, 200]
        other = auth.new_token(made.parts.database)
        monkeypatch.setattr(made.parts.rates, "require_few_failures", Mock(side_effect=RateLimited("no")))
        # Tries here are counted like others; a token that opened something before is still heard.
        assert [asked(made, token) for token in (other, made.token)] == [404, 200]
    with world(tmp_path / "b", sqlite_url, metrics_token="m" * 20) as made:
        assert [asked(made, token) for token in (None, made.token, "m" * 19, "m" * 20)] == [
            404,
            404,
            404,
            200,
        ]
    with world(tmp_path / "c", sqlite_url, metrics_open=True) as made:
        assert asked(made, None) == 200


def test_readiness_names_the_engine_and_the_spool(api: World) -> None:
    api.queue.broken = True
    try:
        answer = api.call("GET", "/readyz")
    finally:
        api.queue.broken = False
    assert answer.json()["reasons"] == ["the durable engine cannot be used"]
