"""Pages of self-checks: the matrix with age and what no longer counts, one check, and the form that asks for one."""

import json
import re
from datetime import timedelta

import httpx
import pytest

from service.dashboard.selfchecks import _age, _columns
from service.evidence import standing
from service.records import jobs
from service.records.models import DEFAULT_PROJECT
from tests.service.dashboard.app import Served
from tests.service.dashboard.checking import BROKEN, UNCHECKED, WRONG
from tests.service.dashboard.conftest import World
from tests.service.dashboard.test_pages import read
from tests.service.selfchecked import CPU, GPU, document, stored

HERE = {"Sec-Fetch-Site": "same-origin"}


def test_the_matrix_says_what_is_wrong_first(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, "/selfchecks")
    assert re.search(r"4 of \d+ kernels gave a wrong answer, or none\.", page.text)
    for name in (*WRONG, *BROKEN):
        assert name in page.text
    assert "expected code -3 found code -2" in page.text
    assert f"/selfchecks/{world.scene.checking.failed.id}?format=NVFP4" in page.links
    html = visitor.get("/selfchecks").text
    squares = re.findall(r'class="proof proof-(\w+) age-(\d)( expired)?"', html)
    assert {("passed", "0", ""), ("failed", "1", ""), ("passed", "2", ""), ("passed", "3", " expired")} <= {
        *squares
    }


def test_a_cell_is_the_worst_of_its_kernels(empty: Served) -> None:
    with empty.parts.database.write() as session:
        stored(session, document(GPU, failed=WRONG, unchecked=UNCHECKED))
        stored(session, document(CPU))
        gpu, cpu = sorted(
            _columns(standing(session, DEFAULT_PROJECT), {}), key=lambda column: -len(column.check.device)
        )
    assert (gpu.state, cpu.state) == ("failed", "passed")
    assert gpu.cells["Q4G64_F16S"].says == "1 failed, 10 passed (full)"
    assert gpu.cells["W8G32_F16S"].state == "not_checked"
    assert gpu.cells["Q5G64_F16S"].state == "passed"
    assert gpu.cells["NVFP4"].href == f"/selfchecks/{gpu.check.id}?format=NVFP4"


@pytest.mark.parametrize(
    ("age", "shade"),
    [
        (timedelta(0), 0),
        (timedelta(days=1), 0),
        (timedelta(days=2), 1),
        (timedelta(days=8), 2),
        (timedelta(99), 3),
    ],
)
def test_age_is_a_shade(age: timedelta, shade: int) -> None:
    assert _age(age.total_seconds()) == shade


def test_one_that_failed(world: World, visitor: httpx.Client) -> None:
    address = f"/selfchecks/{world.scene.checking.failed.id}"
    page = read(visitor, address)
    assert "3 kernels gave a wrong answer, or none: encode.Q4G64_F16S.BF16.cuda" in page.text
    assert "Case ties, row 3, group 1, lane 17: expected code -3, found code -2" in page.text
    assert "there is too little memory for 2**31 elements" in page.text
    some = read(visitor, f"{address}?outcome=not_checked&format=W8G32_F16S")
    assert some.text.count("there is too little memory") == 2
    assert "parity" not in some.text
    answer = visitor.get(f"{address}/document.json")
    assert "attachment" in answer.headers["content-disposition"]
    assert json.loads(answer.text)["schema"] == "ninfer-gate/selfcheck/1"
    for nowhere in ("0" * 32, "nope"):
        for address in (f"/selfchecks/{nowhere}", f"/selfchecks/{nowhere}/document.json"):
            answer = visitor.get(address)
            assert answer.status_code == 404
            assert "There is no such self-check." in answer.text


def test_those_that_are_not_done(world: World, visitor: httpx.Client) -> None:
    scene = world.scene.checking
    assert "23 of 64 kernels" in read(visitor, f"/selfchecks/{scene.running.id}").text
    assert "It waits for a free worker." in read(visitor, f"/selfchecks/{scene.queued.id}").text
    assert "It was stopped before it was done" in read(visitor, f"/selfchecks/{scene.cancelled.id}").text
    answer = visitor.get(f"/jobs/{scene.running.id}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/selfchecks/{scene.running.id}")
    checks = read(visitor, "/selfchecks")
    assert {f"/selfchecks/{scene.running.id}", f"/selfchecks/{scene.queued.id}"} <= set(checks.links)
    assert f"/selfchecks/{scene.cancelled.id}" not in checks.links
    assert "23 of 64 kernels" in checks.text
    listed = read(visitor, "/jobs?type=selfcheck")
    assert f"/selfchecks/{scene.queued.id}" in listed.links
    assert "full check of cuda:0" in listed.text


def test_a_full_pass_outlives_a_quick_one_and_squares_lead_to_it(empty: Served) -> None:
    with empty.parts.database.write() as session:
        full = stored(session, document(CPU, unchecked=("check.NVFP4.cpu",)), ago=timedelta(days=2))
        quick = stored(session, document(CPU, "quick"))
    kernels = len(document(CPU)["kernels"])
    with empty.visitor() as visitor:
        page = read(visitor, "/selfchecks")
        assert (
            f"{kernels} kernels on 1 device proved right as they are now, {kernels - 1} in full." in page.text
        )
        html = visitor.get("/selfchecks").text
    assert len(re.findall(rf'class="proof [^>]*href="/selfchecks/{full.id}[^>]*passed \(full\)', html)) == (
        kernels - 1
    )
    assert len(re.findall(rf'class="proof [^>]*href="/selfchecks/{quick.id}[^>]*passed \(quick\)', html)) == 1
    assert "passed (full)" in page.text
    assert "in full)" in page.text


def test_an_empty_service_and_its_form(empty: Served) -> None:
    with empty.visitor() as visitor:
        page = read(visitor, "/selfchecks")
        assert "No device has been checked yet." in page.text
        assert "cuda:0" not in page.text  # no check has seen one
        asked = {"device": "", "level": "quick"}
        answer = visitor.post("/selfchecks", data=asked, headers=HERE)
        assert answer.status_code == 303
        id_ = answer.headers["location"].removeprefix("/selfchecks/")
        with empty.parts.database.read() as session:
            job = jobs.job(session, DEFAULT_PROJECT, id_)
            assert job is not None
            assert job.request == {"type": "selfcheck", "device": "auto", "level": "quick", "seed": 0}
        for wrong in ({"device": "gpu", "level": "full"}, {"device": "cpu", "level": "some"}, {}):
            assert visitor.post("/selfchecks", data=wrong, headers=HERE).status_code == 422
        assert (
            visitor.post("/selfchecks", data=asked, headers={"Sec-Fetch-Site": "cross-site"}).status_code
            == 403
        )
