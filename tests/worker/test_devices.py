"""Which device a worker works on, what it refuses, and self-checks as jobs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ninfer_core.kernels import devices as here
from ninfer_core.kernels.devices import Device, NoDevice
from ninfer_core.kernels.failover import FailingOver
from ninfer_core.kernels.processor import cpu_processor
from ninfer_core.kernels.registry import KERNELS
from ninfer_core.selfcheck import run as core
from ninfer_core.selfcheck.result import evidence_key
from service import evidence, selfchecks
from service.records import jobs, runs
from service.records import selfchecks as rows
from service.records.selfchecks import Wanted
from service.selfchecks import Check
from tests.service.selfchecked import CPU, GPU, document, stored
from tests.worker.inside import follow, inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, Rig, rig
from worker import devices as proof
from worker.devices import Devices, SelfCheckFailed
from worker.produced import merged, told
from worker.watch import Draining
from worker.workflows import selfcheck as workflow

FAULT = """
import signal
from worker import SIGNALS
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
from ninfer_core.kernels import cpu
cpu.scan_row = lambda codes, scales: 0
from worker.start import start
raise SystemExit(start(None))
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rig]:
    with rig(tmp_path / "data") as built:
        yield built


def answering(found: dict[str, Any]) -> Callable[..., Any]:
    """A self-check that says this of whatever device it is asked about, one kernel after the other."""

    def check(
        device: Device,
        level: str,
        seed: int,
        progress: Callable[[int, int, str], None],
        only: str | None = None,
    ) -> Any:
        said = {**found, "level": level, "seed": seed}
        total = len(said["kernels"])
        for done in range(total + 1):
            progress(done, total, "")
        return SimpleNamespace(as_json=lambda: said)

    return check


def test_a_job_leaves_the_self_check_behind(made: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for found, state in (
        (document(), "passed"),
        (document(failed=("encode.Q4G64_F16S.BF16.cpu",)), "failed"),
        (document(unchecked=("encode.Q4G64_F16S.BF16.cpu",)), "incomplete"),
    ):
        del found["kernels"][5:]
        monkeypatch.setattr(workflow, "chosen", lambda device: range(5))
        monkeypatch.setattr(workflow, "check", answering(found))
        with inside(made) as context:
            job_id = made.job(Check("cpu", "full", 7))
            follow(context, job_id)
        job = made.row(job_id)
        assert (job.state, job.error) == (state, None)
        view = selfchecks.one(made.parts, PROJECT, job_id)
        assert selfchecks.document(view) == {**found, "seed": 7}
        assert view.check.job_id == job_id
        with made.parts.database.read() as session:
            progress = jobs.progress(session, job_id)
        assert progress.objects == progress.objects_done == len(found["kernels"])
        events = made.events(job_id)
        assert len([type_ for _, type_, _ in events if type_ == "progress"]) == len(found["kernels"])


def test_a_job_for_a_device_that_is_not_here(made: Rig) -> None:
    with inside(made) as context:
        job_id = made.job(Check("cuda:99"))
        follow(context, job_id)
    job = made.row(job_id)
    assert (job.state, job.error["code"]) == ("error", "no_device")
    assert "cuda:99" in job.error["detail"]


def test_a_job_that_is_cancelled_leaves_nothing(made: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with inside(made) as context:
        job_id = made.job(Check("cpu"))

        def check(device: Device, level: str, seed: int, progress: Callable[[int, int, str], None]) -> Any:
            progress(0, 74, "")
            with made.parts.database.write() as session:
                jobs.request_cancel(session, PROJECT, job_id)
            progress(1, 74, "")
            raise AssertionError("it went on")

        monkeypatch.setattr(workflow, "check", check)
        monkeypatch.setattr(workflow, "_TELL_SECONDS", 0)
        follow(context, job_id)
    assert made.row(job_id).state == "cancelled"
    with made.parts.database.read() as session:
        assert rows.get(session, PROJECT, job_id) is None


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What is found of each device that seems to be here, by its name."""
    found = {"cpu": document(CPU, "quick"), "cuda:0": document(GPU, "quick")}
    known = {"cpu": Device(**CPU), "cuda:0": Device(**GPU)}

    def find(name: str) -> Device:
        if name not in known:
            raise NoDevice(f"there is no device {name!r} here")
        return known[name]

    monkeypatch.setattr(here, "devices", lambda: tuple(known.values()))
    monkeypatch.setattr(here, "find_device", find)
    monkeypatch.setattr(core, "processor_of", lambda device: SimpleNamespace(device=device))
    monkeypatch.setattr(proof, "check", lambda device, *rest: answering(found[device.name])(device, *rest))
    return found


def proved(made: Rig, wanted: str) -> Devices:
    devices = Devices(wanted, "w" * 32)
    devices.prove(made.parts.database, lambda: None)
    return devices


def last(made: Rig, device: str) -> str | None:
    """How the last self-check of a device came out."""
    with made.parts.database.read() as session:
        items = rows.page(session, PROJECT, limit=1, wanted=Wanted(device=device)).items
    return items[0].outcome if items else None


def test_a_gpu_that_proves_itself_is_worked_on(made: Rig, with_gpu: dict[str, Any]) -> None:
    for wanted in ("auto", "cuda:0"):
        devices = proved(made, wanted)
        assert devices.find("auto").name == "cuda:0"
        assert isinstance(devices.processor(), FailingOver)
        assert (
            devices.processor() is not devices.processor()
        )  # one that failed in a pass is asked again in the next
    assert (last(made, "cpu"), last(made, "cuda:0")) == ("passed", "passed")
    forbidden = proved(made, "cpu")
    assert forbidden.find("auto").name == "cpu"
    assert forbidden.processor() is cpu_processor()


@pytest.mark.parametrize(
    "how", [{"failed": ("matvec.NVFP4.BF16.cuda",)}, {"unchecked": ("check.NVFP4.cuda",)}]
)
def test_a_gpu_that_does_not_is_left_alone(made: Rig, with_gpu: dict[str, Any], how: dict[str, Any]) -> None:
    with_gpu["cuda:0"] = document(GPU, "quick", **how)
    assert proved(made, "auto").find("auto").name == "cpu"
    assert last(made, "cuda:0") != "passed"
    with pytest.raises(SelfCheckFailed, match=r"cuda:0 \(Some GPU 141GB\)"):
        proved(made, "cuda:0")


def test_a_full_check_that_failed_stands_against_a_quick_pass(made: Rig, with_gpu: dict[str, Any]) -> None:
    with made.parts.database.write() as session:
        stored(session, document(GPU, "full", failed=("encode.Q4G64_F16S.BF16.cuda",)))
    assert proved(made, "auto").find("auto").name == "cpu"
    with pytest.raises(SelfCheckFailed, match="the last full self-check of cuda:0"):
        proved(made, "cuda:0")
    with made.parts.database.write() as session:
        stored(session, document(GPU, "full"))
    assert proved(made, "auto").find("auto").name == "cuda:0"


def test_a_gpu_that_is_found_wrong_is_worked_on_no_longer(made: Rig, with_gpu: dict[str, Any]) -> None:
    """By a job of whatever worker, while this one works on it."""
    devices, forced = proved(made, "auto"), proved(made, "cuda:0")
    given = devices.processor()
    assert isinstance(given, FailingOver)
    with made.parts.database.write() as session:
        stored(session, document(GPU, "full", failed=("encode.Q4G64_F16S.BF16.cuda",)))
    assert devices.processor() is cpu_processor()
    assert devices.find("auto").name == "cpu"
    assert devices.find("cuda:0").name == "cuda:0"  # what ran there before still tells so
    assert not given.same_bytes(np.zeros(1, np.uint8), np.ones(1, np.uint8))
    assert (
        given.scan_row(np.zeros((1, 8), np.uint8), np.zeros(1, np.uint16)) == 0
    )  # `first` has no such method
    assert given.failures() == ()
    assert devices.refused is None
    with pytest.raises(Draining):
        forced.processor()
    assert "the last full self-check of cuda:0" in str(forced.refused)


def test_a_processor_that_is_found_wrong_is_asked_again(
    made: Rig, with_gpu: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "encode.Q4G64_F16S.BF16.cpu"
    asked: list[tuple[str, str | None]] = []
    found = {"quick": document(CPU, "quick"), "full": document(CPU, "full", failed=(wrong,))}

    def check(device: Device, level: str, seed: int, progress: Any, only: str | None = None) -> Any:
        asked.append((level, only))
        kernels = [one for one in found[level]["kernels"] if only in (None, one["kernel"])]
        outcome = "failed" if any(one["outcome"] != "passed" for one in kernels) else "passed"
        return SimpleNamespace(as_json=lambda: {**found[level], "kernels": kernels, "outcome": outcome})

    monkeypatch.setattr(proof, "check", check)
    devices = proved(made, "cpu")
    with made.parts.database.write() as session:
        stored(session, document(CPU, "full", failed=(wrong,)))
    with pytest.raises(Draining):
        devices.processor()
    assert wrong in str(devices.refused)
    asked.clear()
    with pytest.raises(SelfCheckFailed, match="case ties, row 3"):
        proved(made, "cpu")
    assert asked == [("quick", None), ("full", wrong)]
    found["full"] = document(CPU, "full")
    assert proved(made, "cpu").processor() is cpu_processor()
    asked.clear()
    assert proved(made, "cpu").processor() is cpu_processor()
    assert asked == [("quick", None)]


def test_a_device_that_is_named_has_to_be_here(made: Rig, with_gpu: dict[str, Any]) -> None:
    with pytest.raises(NoDevice, match="cuda:1"):
        proved(made, "cuda:1")


def test_a_processor_that_fails_does_no_work(made: Rig, with_gpu: dict[str, Any]) -> None:
    with_gpu["cpu"] = document(CPU, "quick", failed=("encode.Q4G64_F16S.BF16.cpu",))
    for wanted in ("auto", "cpu", "cuda:0"):
        with pytest.raises(SelfCheckFailed, match=r"encode\.Q4G64_F16S\.BF16\.cpu: case ties, row 3"):
            proved(made, wanted)
    assert last(made, "cpu") == "failed"


def test_a_result_names_the_kernels_that_made_it(made: Rig, material: Material) -> None:
    with inside(made) as context:
        job_id = made.verify(made.push(material.artifact).digest, checks=("structure", "values"))
        follow(context, job_id)
    with made.parts.database.read() as session:
        run = runs.by_job(session, job_id)
    assert run is not None
    processor = here.find_device("cpu")
    [one] = run.produced
    assert one["device"] == processor.as_json()
    assert one["kernels"] == {name: evidence_key(KERNELS[name], processor) for name in one["kernels"]}
    assert {name.partition(".")[0] for name in one["kernels"]} == {"check"}


def test_what_workers_tell_is_merged(made: Rig, with_gpu: dict[str, Any]) -> None:
    devices = proved(made, "cuda:0")
    gpu = told([{"kernels": {"cuda:0": ["check.NVFP4.cuda"], "cpu": ["check.NVFP4.cpu"]}}, {}], devices)
    cpu = told([{"kernels": {"cpu": ["check.Q4G64_F16S.cpu", "another release's"]}}], Devices())
    assert told([{"kernels": {}}], devices) == []
    whole = merged([gpu, None, cpu, gpu])
    kernels = {item["device"]["name"]: list(item["kernels"]) for item in whole}
    assert kernels == {"cpu": ["check.NVFP4.cpu", "check.Q4G64_F16S.cpu"], "cuda:0": ["check.NVFP4.cuda"]}


def test_workers_prove_themselves(shared: Rig) -> None:
    """A real one: what it found as it started counts, and a job finds the same."""
    with shared.parts.database.read() as session:
        found = evidence.current_evidence(session, PROJECT, Wanted(device_class="cpu"))
        assert {item.result.kernel for item in found} == {
            kernel.name for kernel in KERNELS if kernel.device_class == "cpu"
        }
        assert all(item.passed for item in found)
    job = shared.finished(shared.job(Check("auto", "quick")), 120)
    assert (job.state, job.error) == ("passed", None)
    assert selfchecks.one(shared.parts, PROJECT, job.id).check.device == "cpu"


def test_a_worker_whose_kernels_are_wrong_refuses_work(made: Rig) -> None:
    environment = {**os.environ, **made.settings.environment()}
    done = subprocess.run(
        [sys.executable, "-c", FAULT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 2, done.stderr
    assert "worker: cannot start: the self-check of cpu" in done.stderr
    assert "check.FP8_E4M3FN_ROW_BF16S.cpu: case " in done.stderr
    assert made.beats() == []
    assert last(made, "cpu") == "failed"
