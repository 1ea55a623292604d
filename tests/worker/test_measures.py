"""What a worker tells of itself: on a port where a setting names one, and in lines that say which job they are about."""

import json
import socket
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service import metrics
from service.settings import Settings
from tests.worker.material import Material
from tests.worker.rig import Rig, rig, until


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def told(port: int, token: str | None = None) -> dict[str, dict[tuple[str, ...], float]]:
    """{name: {values of labels: value}} of the worker's own port."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"http://127.0.0.1:{port}/metrics", headers=headers)
    answer.raise_for_status()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_a_worker_counts_its_work_and_names_it(tmp_path: Path, material: Material) -> None:
    port = free_port()
    with rig(tmp_path / "data", metrics_port=port, metrics_token="m" * 20) as made:
        worker = made.started()
        good = made.verify(made.push(material.artifact).digest, checks=("structure", "values"))
        made.finished(good)
        bad = made.verify(made.push(material.damaged).digest, material_id(made, material), material.document)
        made.finished(bad)
        jobs = ("ninfer_gate_jobs_total", ("interactive", "passed", "verify"))
        found = until(
            "both are counted",
            lambda: counted if len((counted := told(port, "m" * 20))[jobs[0]]) == 2 else None,
        )
        assert httpx.get(f"http://127.0.0.1:{port}/metrics").status_code == 404
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 404
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        lines = [json.loads(line) for line in worker.text().splitlines() if line.startswith("{")]
    assert found[jobs[0]] == {jobs[1]: 1, ("interactive", "failed", "verify"): 1}
    size = material.artifact.stat().st_size
    bytes_read, seconds = found["ninfer_gate_shard_bytes_total"], found["ninfer_gate_shard_seconds_total"]
    (few,) = {labels for labels in bytes_read if labels[0] == "structure+values"}
    (more,) = {labels for labels in bytes_read if "parity" in labels[0]}
    assert 0 < bytes_read[few] <= 2 * size
    assert bytes_read[more] > size
    assert all(seconds[labels] > 0 for labels in (few, more))
    assert found["ninfer_gate_verdict_latency_seconds_count"] == {("verify",): 2}
    assert 0 < found["ninfer_gate_verdict_latency_seconds_sum"]["verify",] < 60
    assert found["process_resident_memory_bytes"][()] > 1 << 20
    executors = {line.get("executor") for line in lines if line["event"] == "worker.ready"}
    assert len(executors) == 1
    assert {line.get("executor") for line in lines if line["event"] != "worker.ready"} <= executors | {None}


def material_id(made: Rig, material: Material) -> str:
    """The checkpoint, pushed."""
    return made.checkpoint(material.folder)


def test_a_port_that_is_taken_is_said(alone: Rig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        worker = alone.start(NINFER_GATE_METRICS_PORT=str(listener.getsockname()[1]))
        assert worker.wait() == 2
    assert "cannot start" in worker.text()
    assert "in use" in worker.text()


def test_without_a_port_nothing_listens() -> None:
    metrics.serve(Settings(), lambda: True)()


@pytest.mark.parametrize("token", [None, "t" * 20])
def test_the_port_asks_for_the_token_that_is_set(token: str | None) -> None:
    port = free_port()
    well = [True]
    stop = metrics.serve(Settings(metrics_port=port, metrics_token=token), lambda: well[0])
    try:
        assert "process_open_fds" in told(port, token)
        wrong = httpx.get(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer x"})
        assert wrong.status_code == (200 if token is None else 404)
        for well[0], code in ((True, 200), (False, 503)):
            assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == code
    finally:
        stop()
