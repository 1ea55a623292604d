"""What of self-checks counts: kernels and devices as they are now, and a failure until as much has passed again."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.kernels.registry import KERNELS
from service import evidence, selfchecks
from service.blobs import BlobStore
from service.parts import Parts
from service.records import selfchecks as rows
from service.records import workers
from service.records.database import Database, clock
from service.records.models import DEFAULT_PROJECT as P
from service.records.selfchecks import Wanted
from service.records.types import name_key, new_id
from service.settings import Settings
from service.workforce import workforce
from tests.service.dashboard.app import NoQueue
from tests.service.records.build import OTHER, other_project
from tests.service.selfchecked import CPU, GPU, document, stored

KERNEL = "encode.Q4G64_F16S.BF16.cuda"
ENCODE = Wanted(device_class="cuda", format="Q4G64_F16S", operation="encode")
FORMER = f"sha256:{'9' * 64}"


def outcomes(session: Any, wanted: Wanted = ENCODE, **more: Any) -> set[tuple[str, str]]:
    """(level, outcome) of what counts."""
    found = evidence.current_evidence(session, P, wanted, **more)
    return {(item.check.level, item.result.outcome) for item in found}


def test_stored_as_it_was_said(database: Database) -> None:
    said = document(GPU, failed=(KERNEL,), unchecked=("check.NVFP4.cuda",))
    with database.write() as session:
        other_project(session)
        row = stored(session, said)
        again = {**said, "outcome": "passed", "kernels": []}
        selfchecks.save(session, again, project_id=P, id_=row.id, worker="w", job_id=None)
    with database.read() as session:
        kept = rows.get(session, P, row.id)
        assert kept is not None
        assert rows.get(session, OTHER, row.id) is None
        view = selfchecks.viewed(session, kept)
        assert selfchecks.document(view) == said
        assert view.counts == {"passed": len(said["kernels"]) - 2, "failed": 1, "not_checked": 1}
        assert len(view.current) == len(said["kernels"])


def test_nothing_counts_that_is_another_kernels_or_another_projects(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        assert outcomes(session) == set()
        stored(session, document(GPU), project_id=OTHER)
        stored(session, document(CPU))
        assert outcomes(session) == set()
        stored(session, document(GPU, digest=FORMER))
        assert outcomes(session) == set()
        assert len(evidence.standing(session, P, ENCODE)) == 3  # one for each dtype: kept, and not current
        stored(session, document(GPU))
        stored(session, document(GPU, digest=FORMER, failed=(KERNEL,)))  # a worker of the former version
        assert outcomes(session) == {("full", "passed")}


def test_age(database: Database) -> None:
    with database.write() as session:
        stored(session, document(GPU), ago=timedelta(hours=2))
        assert outcomes(session, max_age_seconds=7_300) == {("full", "passed")}
        assert outcomes(session, max_age_seconds=7_100) == set()


def test_a_failure_stands_until_as_much_has_passed(database: Database) -> None:
    with database.write() as session:
        one = Wanted(device_class="cuda", format="W8G32_F16S", operation="check")
        wrong = ("check.W8G32_F16S.cuda",)
        stored(session, document(GPU, "quick", failed=wrong))
        assert outcomes(session, one) == {("quick", "failed")}
        stored(session, document(GPU, "quick"))
        assert outcomes(session, one) == {("quick", "passed")}
        stored(session, document(GPU, "full", errors=wrong))
        stored(session, document(GPU, "quick"))
        assert outcomes(session, one) == {("full", "error")}
        assert outcomes(session) == {("quick", "passed")}  # the other kernels are none the worse
        refuted = evidence.refuted(session, P, GPU)
        assert refuted is not None
        assert refuted.result.kernel == wrong[0]
        assert evidence.refuted(session, P, {**GPU, "driver": "590.1"}) is None
        stored(session, document(GPU, "full"))
        assert outcomes(session, one) == {("full", "passed")}
        assert evidence.refuted(session, P, GPU) is None
        stored(session, document(GPU, "quick", unchecked=wrong))
        assert outcomes(session, one) == {("full", "passed")}  # to say nothing takes nothing back


def test_a_failure_is_lifted_by_a_check_of_a_whitelist_that_has_grown(database: Database) -> None:
    """The kernel is the same, and what else was checked is not: it is the kernel's evidence all the same."""
    with database.write() as session:
        stored(session, document(GPU, failed=(KERNEL,)))
        for outcome in ("not_checked", "passed"):
            assert ("full", "failed") in outcomes(session)
            assert evidence.refuted(session, P, GPU) is not None
            said = document(GPU, unchecked=(KERNEL,) if outcome == "not_checked" else ())
            fewer = [one for one in said["kernels"] if one["kernel"] == KERNEL]
            stored(session, {**said, "kernels": fewer})
        assert outcomes(session) == {("full", "passed")}
        assert evidence.refuted(session, P, GPU) is None


def test_the_newest_is_what_was_found_last(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock of the worker said, and whenever a job was asked for."""
    with database.write() as session:
        ahead = "f" * 32  # the id of a worker whose clock is ahead by years
        stored(session, document({**GPU, "driver": "570.1"}), id_=ahead, ago=timedelta(minutes=2))
        stored(session, document(GPU), id_="e" * 32, ago=timedelta(minutes=1))
        assert outcomes(session) == {("full", "passed")}
        assert {item.check.driver for item in evidence.current_evidence(session, P, ENCODE)} == {
            GPU["driver"]
        }
        stored(session, document(GPU, failed=(KERNEL,)), id_="0" * 32)  # a job that waited long
        assert ("full", "failed") in outcomes(session)
        assert evidence.refuted(session, P, GPU) is not None
    with database.write() as session:
        monkeypatch.setattr("service.records.types.now", lambda: pytest.fail("this host's clock was asked"))
        row = selfchecks.save(session, document(GPU), project_id=P, id_="1" * 32, worker="w", job_id=None)
        assert abs(row.created_at.timestamp() - clock(session)) < 60


def test_why_nobody_works(tmp_path: Path, database: Database) -> None:
    parts = Parts(Settings(data=tmp_path), database, BlobStore(tmp_path), NoQueue())

    def said() -> str:
        with database.read() as session:
            return workforce(session, parts).waits

    assert said().startswith("It waits for a worker, and none is alive: start one with ninfer-gate worker.")
    with database.write() as session:
        stored(session, document(CPU, "quick", failed=("check.NVFP4.cpu",)))
    assert "found check.NVFP4.cpu wrong on cpu, and a worker with wrong kernels refuses work" in said()
    with database.write() as session:
        stored(session, document(CPU, "quick"))
    assert "start one" in said()
    with database.write() as session:
        stored(session, document(GPU, "quick", errors=("check.NVFP4.cuda",)))
        workers.enter(session, "w", host="h", machine="m", pid=1, started=1)
    assert said() == "It waits for a free worker."


def test_a_device_that_changed_leaves_no_evidence(database: Database, monkeypatch: Any) -> None:
    newer = {**GPU, "driver": "590.1"}
    with database.write() as session:
        stored(session, document(GPU))
        stored(session, document(newer, "quick"))
        assert outcomes(session) == {("quick", "passed")}
        monkeypatch.setattr(selfchecks, "machine", lambda: name_key("another machine"))
        stored(session, document(GPU, "quick"))
        assert outcomes(session) == {("quick", "passed")}
        found = evidence.current_evidence(session, P, ENCODE)
        assert {item.check.driver for item in found} == {"580.95", "590.1"}  # both drivers are somewhere


@pytest.mark.parametrize("member", ["model", "capability", "driver", "runtime", "compiler", "name"])
def test_whatever_differs_makes_another_device(member: str) -> None:
    assert selfchecks.device_key({**GPU, member: "another"}) != selfchecks.device_key(GPU)


def test_what_workers_find_as_they_start_does_not_pile_up(database: Database) -> None:
    small = document(CPU, "quick") | {"kernels": document(CPU, "quick")["kernels"][:1]}
    with database.write() as session:
        first = stored(session, small).id
        for _ in range(rows._KEPT - 1):
            selfchecks.save(session, small, project_id=P, id_="f" + new_id()[1:], worker="w", job_id=None)
        assert rows.get(session, P, first) is not None
        selfchecks.save(session, small, project_id=P, id_="f" + new_id()[1:], worker="w", job_id=None)
        session.expire_all()
        assert rows.get(session, P, first) is None
        assert rows.results(session, [first])[first] == []
        assert len(rows.page(session, P, limit=200).items) == rows._KEPT


def test_every_kernel_is_listed_with_what_stands(database: Database) -> None:
    with database.write() as session:
        stored(session, document(CPU, failed=("parity.BF16.BF16.cpu",)))
        found = {kernel.name: stands for kernel, stands in evidence.kernels(session, P)}
    assert list(found) == list(KERNELS.names)
    assert found[KERNEL] == []
    assert [item.result.outcome for item in found["parity.BF16.BF16.cpu"]] == ["failed"]
    assert all(item.passed for item in found["parity.FP32.BF16.cpu"])
