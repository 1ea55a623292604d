"""The page of a comparison: the worst first, filters in the address, and a comparison started by a form."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from service.dashboard.comparisons import _facts, _length
from service.records import comparisons, jobs
from service.records.models import DEFAULT_PROJECT, Artifact
from tests.service.dashboard.app import Served
from tests.service.dashboard.compared import compare
from tests.service.dashboard.conftest import World
from tests.service.dashboard.markup import Reader
from tests.service.dashboard.rows import tensor_names
from tests.service.dashboard.seed import Seed
from tests.service.dashboard.test_pages import read

HERE = {"Sec-Fetch-Site": "same-origin"}


def test_the_worst_first(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, f"/comparisons/{world.scene.different.id}")
    assert "different" in page.text
    assert "the same content as new/name of B" in page.text
    places = [
        page.text.index(word) for word in ("wanted 9 bytes, got 3", "values of A or B are not all finite")
    ]
    assert places == sorted(places)
    assert "Q4G64_F16S → W8G32_F16S" in page.text
    assert "exact" in page.text


def test_what_the_directories_say(world: World, visitor: httpx.Client) -> None:
    page = visitor.get(f"/comparisons/{world.scene.different.id}").text
    facts = page[page.index('<h2 id="facts">') : page.index('<h2 id="objects">')]
    assert facts.count("as a difference") == 40
    assert facts.count("not stated") == 40
    assert facts.count("for nothing") == 1
    assert "7 differences more; the document lists the first 1,000." in facts


def test_a_document_of_an_earlier_release_has_no_facts() -> None:
    assert _facts({"totals": {}}) == ([], 0)
    assert _facts(None) == ([], 0)
    many = [{"name": str(number)} for number in range(53)]
    assert _facts({"facts": many, "unlisted_facts": 5}) == (many[:50], 8)


def test_filters_and_order_live_in_the_address(world: World, visitor: httpx.Client) -> None:
    start = f"/comparisons/{world.scene.different.id}"
    added = read(visitor, f"{start}?status=added")
    assert "new/name" in added.text
    assert "Q4G64_F16S" not in added.text
    listed = visitor.get(f"{start}?order=ordinal").text
    listed = listed[listed.index('<table class="stacks dense">') :].replace("<wbr>", "")
    places = [listed.index(name) for name in (*tensor_names(40)[:3], "old/name", "new/name")]
    assert places == sorted(places)
    assert visitor.get(f"{start}?status=nothing").status_code == 400


def test_findings_by_side(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, f"/comparisons/{world.scene.hostile_comparison.id}")
    assert "Of B" in page.text
    assert "Of A" not in page.text
    assert "structure.object_name_duplicate" in page.text


def test_one_that_runs(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, f"/comparisons/{world.scene.comparing.id}")
    assert "A worker compares them now." in page.text
    assert "Objects" not in page.text


def test_the_document_is_to_be_had(world: World, visitor: httpx.Client) -> None:
    answer = visitor.get(f"/comparisons/{world.scene.different.id}/report.json")
    document = json.loads(answer.text)
    assert document["schema"] == "ninfer-gate/comparison/1"
    assert sum(document["totals"]["objects"].values()) == len(document["objects"]) == 42
    assert "attachment" in answer.headers["content-disposition"]
    assert visitor.get(f"/comparisons/{world.scene.comparing.id}/report.json").status_code == 409


def test_jobs_lead_to_it(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, "/jobs?type=compare")
    assert f"/comparisons/{world.scene.different.id}" in page.links
    answer = visitor.get(f"/jobs/{world.scene.different.job_id}")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/comparisons/{world.scene.different.id}",
    )


def test_an_artifact_lists_its_comparisons(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, f"/artifacts/{world.scene.large.digest}")
    assert "Compared with others" in page.text
    assert f"/comparisons/{world.scene.different.id}" in page.links


@dataclass(frozen=True)
class Own:
    """A service of the test's own, with three artifacts and somebody who is logged in."""

    seed: Seed
    visitor: httpx.Client
    a: Artifact
    b: Artifact
    source: Artifact


@pytest.fixture
def own(empty: Served) -> Iterator[Own]:
    seed = Seed(empty.parts.database)
    a, b = seed.artifact("a.ninfer", tensor_names(3)), seed.artifact("b-draft.ninfer", tensor_names(3))
    source = seed.artifact("model.safetensors", tensor_names(2), kind="safetensors", identity=(None, None))
    with empty.visitor() as visitor:
        yield Own(seed, visitor, a, b, source)


def test_started_by_a_form(own: Own) -> None:
    for text in (own.b.digest, "draft"):
        answer = own.visitor.post(f"/artifacts/{own.a.digest}/compare", data={"with": text}, headers=HERE)
        assert answer.status_code == 303, answer.text
        id_ = answer.headers["location"].removeprefix("/comparisons/")
        with own.seed.database.read() as session:
            row = comparisons.comparison(session, DEFAULT_PROJECT, id_)
            assert row is not None
            assert (row.a_artifact_id, row.b_artifact_id) == (own.a.id, own.b.id)
            job = jobs.get(session, row.job_id)
            assert job is not None
            assert job.state == "queued"
        assert "It waits for a worker" in read(own.visitor, f"/comparisons/{id_}").text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Say with which artifact"),
        ("nothing of this name", "No .ninfer artifact matches"),
        ("qwen3.6", "More than one artifact matches"),
        ("<i>none</i>", "No .ninfer artifact matches &lt;i&gt;none&lt;/i&gt;"),
    ],
)
def test_a_form_that_names_no_artifact(world: World, visitor: httpx.Client, text: str, says: str) -> None:
    address = f"/artifacts/{world.scene.large.digest}/compare"
    answer = visitor.post(address, data={"with": text}, headers={**HERE, "Accept": "text/html"})
    assert answer.status_code == 422
    assert says in answer.text
    assert Reader(answer.text).problems == []


def test_forms_of_other_sites_start_nothing(world: World, visitor: httpx.Client) -> None:
    address = f"/artifacts/{world.scene.large.digest}/compare"
    data = {"with": world.scene.hostile.digest}
    assert visitor.post(address, data=data, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert visitor.post(f"/artifacts/sha256:{'0' * 64}/compare", data=data, headers=HERE).status_code == 404


def test_artifacts_that_cannot_be_compared(own: Own) -> None:
    address = f"/artifacts/{own.source.digest}/compare"
    headers = {**HERE, "Accept": "text/html"}
    answer = own.visitor.post(address, data={"with": own.a.digest}, headers=headers)
    assert answer.status_code == 422
    assert "Only .ninfer artifacts are compared" in answer.text


def test_one_that_was_cancelled(own: Own) -> None:
    row = compare(own.seed, own.a, own.b, (), "cancelled")
    assert "It was stopped before it was done" in read(own.visitor, f"/comparisons/{row.id}").text


def test_there_is_no_such_comparison(visitor: httpx.Client) -> None:
    assert visitor.get(f"/comparisons/{'0' * 32}").status_code == 404


@pytest.mark.parametrize(
    ("nmse", "length"), [(None, None), (0.0, None), (1.0, 100.0), (9e9, 100.0), (1e-6, 50.0), (1e-30, 2.0)]
)
def test_how_long_a_bar_is(nmse: float | None, length: float | None) -> None:
    assert _length(nmse) == length
