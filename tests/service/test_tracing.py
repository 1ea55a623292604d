"""Spans, as a collector receives them; and what is said where nothing that sends them is installed."""

import gzip
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from service import tracing
from service.settings import Settings
from tests.service.api.world import world

CANARY = "ng_CANARY7f3aCANARY7f3aCANARY7f3aCANARY7f3a"


class Collector:
    """A server that takes spans."""

    def __init__(self) -> None:
        received: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                received.append(body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.bodies = received
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(service, name, attributes) of each."""
        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = {item.key: item.value.string_value for item in resource.resource.attributes}
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        values = {
                            item.key: item.value.string_value or item.value.int_value
                            for item in span.attributes
                        }
                        found.append((about["service.name"], span.name, values))
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector, and an end of tracing."""
    made = Collector()
    yield made
    tracing.stop()
    made.server.shutdown()
    made.server.server_close()


def test_requests_and_steps_are_spans_without_what_a_client_wrote(
    collector: Collector, tmp_path: Path, sqlite_url: str
) -> None:
    tracing.start(Settings(data=tmp_path, trace_endpoint=collector.url), "api")
    with world(tmp_path / "data", sqlite_url) as made:
        made.call("GET", f"/v1/jobs/{CANARY}?token={CANARY}", headers={"X-Request-Id": "one"})
    with pytest.raises(ValueError, match="CANARY"), tracing.span("step plan", job="j", bytes=5):
        raise ValueError(CANARY)
    tracing.stop()
    assert not any(b"CANARY" in body for body in collector.bodies)
    spans = {name: (service, values) for service, name, values in collector.spans()}
    service, values = spans["GET /v1/jobs/{job}"]
    assert service == "ninfer-gate-api"
    assert (values["ninfer_gate.request"], values["http.response.status_code"]) == ("one", 422)
    assert spans["step plan"][1] == {
        "ninfer_gate.job": "j",
        "ninfer_gate.bytes": 5,
        "error.type": "ValueError",
    }


def test_nothing_is_loaded_without_a_collector(tmp_path: Path) -> None:
    before = set(sys.modules)
    tracing.start(Settings(data=tmp_path), "api")
    with tracing.span("nothing") as span:
        span.told("nothing", {})
    assert not {name for name in set(sys.modules) - before if name.startswith("opentelemetry")}


def test_an_absent_extra_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(tracing.TracingMissing, match=r"pip install 'ninfer-gate\[otel\]'"):
        tracing.start(Settings(data=tmp_path, trace_endpoint="http://127.0.0.1:1/v1/traces"), "worker")


def test_a_collector_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    tracing.start(Settings(data=tmp_path, trace_endpoint="http://127.0.0.1:1/v1/traces"), "worker")
    with tracing.span("lost"):
        pass
    ended = threading.Thread(target=tracing.stop)
    ended.start()
    ended.join(8)
    assert not ended.is_alive()
