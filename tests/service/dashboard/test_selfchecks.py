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
            _columns(standing(session, DEFAULT_PROJECT)), key=lambda column: -len(column.check.device)
        )
    assert (gpu.state, cpu.state) == ("failed", "passed")
    assert gpu.cells["Q4G64_F16S"].says == "1 failed, 10 passed"
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
    assert visitor.get(f"/selfchecks/{'0' * 32}").status_code == 404


def test_those_that_are_not_done(world: World, visitor: httpx.Client) -> None:
    scene = world.scene.checking
    assert "23 of 64 kernels" in read(visitor, f"/selfchecks/{scene.running.id}").text
    assert "It waits for a worker" in read(visitor, f"/selfchecks/{scene.queued.id}").text
    assert "It was stopped before it was done" in read(visitor, f"/selfchecks/{scene.cancelled.id}").text
    answer = visitor.get(f"/jobs/{scene.running.id}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/selfchecks/{scene.running.id}")
    listed = read(visitor, "/jobs?type=selfcheck")
    assert f"/selfchecks/{scene.queued.id}" in listed.links
    assert "full check of cuda:0" in listed.text


def test_an_empty_service_and_its_form(empty: Served) -> None:
    with empty.visitor() as visitor:
        page = read(visitor, "/selfchecks")
        assert "No device has been checked yet." in page.text
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
