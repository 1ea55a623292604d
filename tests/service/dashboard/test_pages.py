"""What the pages show, and that their markup is whole, safe and leads somewhere."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from ninfer_core.findings import FINDINGS
from ninfer_core.targets import TARGETS
from service.dashboard.render import CONTENT_SECURITY
from service.records import content
from service.records.models import DEFAULT_PROJECT, Run
from tests.service.dashboard.app import Served
from tests.service.dashboard.coming import TENSOR
from tests.service.dashboard.conftest import World
from tests.service.dashboard.markup import Reader
from tests.service.dashboard.rows import MARKUP, MEGABYTE, tensor_names
from tests.service.dashboard.scene import Scene
from tests.service.dashboard.seed import Seed

PAGES: dict[str, Callable[[Scene], str]] = {
    "artifacts": lambda _: "/",
    "artifact": lambda scene: f"/artifacts/{scene.large.digest}",
    "hostile artifact": lambda scene: f"/artifacts/{scene.hostile.digest}",
    "runs": lambda _: "/runs",
    "passed": lambda scene: f"/runs/{scene.passed.id}",
    "sampled": lambda scene: f"/runs/{scene.sampled.id}",
    "reused": lambda scene: f"/runs/{scene.reused.id}",
    "failed": lambda scene: f"/runs/{scene.failed.id}",
    "incomplete": lambda scene: f"/runs/{scene.incomplete.id}",
    "running": lambda scene: f"/runs/{scene.running.id}",
    "queued": lambda scene: f"/runs/{scene.queued.id}",
    "error": lambda scene: f"/runs/{scene.error.id}",
    "cancelled": lambda scene: f"/runs/{scene.cancelled.id}",
    "hostile run": lambda scene: f"/runs/{scene.hostile_run.id}",
    "jobs": lambda _: "/jobs",
    "written": lambda scene: f"/jobs/{scene.written.job_id}",
    "refused": lambda scene: f"/jobs/{scene.refused.job_id}",
    "different": lambda scene: f"/comparisons/{scene.different.id}",
    "comparing": lambda scene: f"/comparisons/{scene.comparing.id}",
    "hostile comparison": lambda scene: f"/comparisons/{scene.hostile_comparison.id}",
    "object": lambda scene: f"/artifacts/{scene.large.digest}/objects/1",
    "hostile object": lambda scene: f"/artifacts/{scene.hostile.digest}/objects/0",
    "tensor": lambda _: f"/tensors/{TENSOR}",
    "targets": lambda _: "/targets",
    "target": lambda _: f"/targets/{TARGETS[0].digest}",
    "provenance": lambda _: "/provenance",
    "provenance found": lambda _: "/provenance?encoder_profile=MAXABS_F16_RECIP_RNE_V1",
    "findings": lambda _: "/findings",
    "finding": lambda _: "/findings/parity.code_mismatch",
    "formats": lambda _: "/formats",
    "self-checks": lambda _: "/selfchecks",
    "self-check passed": lambda scene: f"/selfchecks/{scene.checking.passed.id}",
    "self-check failed": lambda scene: f"/selfchecks/{scene.checking.failed.id}",
    "hostile self-check": lambda scene: f"/selfchecks/{scene.checking.hostile.id}",
    "self-check running": lambda scene: f"/selfchecks/{scene.checking.running.id}",
    "schemes": lambda _: "/schemes",
    "scheme of blocks": lambda _: "/schemes/ggml_iq2_xxs?shape=2x256",
    "queue": lambda _: "/queue",
    "uploads": lambda _: "/uploads",
    "failed uploads": lambda _: "/uploads?state=failed",
    "campaigns": lambda _: "/campaigns",
    "campaign": lambda scene: f"/campaigns/{scene.tenant.campaign.id}",
    "campaign over": lambda scene: f"/campaigns/{scene.tenant.over.id}",
    "project": lambda _: "/project",
    "hostile scheme check": lambda scene: f"/scheme-checks/{scene.schemed.hostile.id}",
}


def read(client: httpx.Client, address: str, status: int = 200) -> Reader:
    response = client.get(address)
    assert response.status_code == status, response.text
    page = Reader(response.text)
    assert page.problems == []
    return page


@pytest.mark.parametrize("name", PAGES)
def test_page_is_whole_and_guarded(world: World, visitor: httpx.Client, name: str) -> None:
    response = visitor.get(PAGES[name](world.scene))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == CONTENT_SECURITY
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "same-origin"
    page = Reader(response.text)
    assert page.problems == []
    doubled = [entry for entry, count in Counter(page.ids).items() if count > 1 and entry != "hatch"]
    assert doubled == []
    assert "h1" in page.tags
    assert len(response.content) < 400_000


ALIKE = 12  # links that differ in nothing but a number or a digest: as many as that are followed


def test_every_link_leads_somewhere(world: World, visitor: httpx.Client) -> None:
    seen: Counter[str] = Counter()
    followed: set[str] = set()
    for address in PAGES.values():
        page = read(visitor, address(world.scene))
        for link in page.links:
            path = link.partition("#")[0]
            if (
                path and path not in followed and "/files/" not in path
            ):  # of these artifacts there are only rows
                followed.add(path)
                kind = re.sub(r"[0-9a-f]{32,64}|[0-9]+", "*", path)
                seen[kind] += 1
                if seen[kind] <= ALIKE:
                    assert visitor.get(path, follow_redirects=True).status_code == 200, path
            if link.startswith("#"):
                assert link[1:] in page.ids, link
    assert len(seen) > 200


def test_artifacts_say_what_they_are(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, "/")
    assert "qwen3.6-27b.ninfer qwen3.6-27b / groupwise-int" in page.text
    for word in (
        "failed",
        "incomplete",
        "running",
        "queued",
        "never verified",
        "unreadable",
        "3,000",
        "41.8 GB",
    ):
        assert word in page.text


def test_artifacts_are_found_by_digest_name_and_kind(world: World, visitor: httpx.Client) -> None:
    def found(address: str) -> set[str]:
        return {link for link in read(visitor, address).links if link.startswith("/artifacts/")}

    large = f"/artifacts/{world.scene.large.digest}"
    assert found(f"/?q={world.scene.large.digest[:20]}") == {large}
    assert large in found("/?q=qwen3")
    assert found("/?kind=safetensors") < found("/")
    assert "No artifact matches." in read(visitor, "/?q=nothing-like-it").text


def test_an_empty_service_teaches_how_to_begin(empty: Served) -> None:
    with empty.visitor() as visitor:
        page = read(visitor, "/")
        assert f"export NINFER_GATE_URL={empty.address} " in page.text
        assert "ninfer-gate push model.ninfer --kind ninfer --verify" in page.text
        assert "No run yet." in read(visitor, "/runs").text
        assert "No job yet." in read(visitor, "/jobs").text


def test_an_artifact_without_runs_teaches_how_to_verify(world: World, visitor: httpx.Client) -> None:
    link = next(link for link in read(visitor, "/?q=just-pushed").links if link.startswith("/artifacts/"))
    page = read(visitor, link)
    assert link.removeprefix("/artifacts/") in page.text.partition("curl")[2]
    assert f"{world.address}/v1/jobs" in page.text


def test_an_artifact_says_how_it_was_made(world: World, visitor: httpx.Client) -> None:
    text = read(visitor, PAGES["artifact"](world.scene)).text
    for word in ("MAXABS_F16_RECIP_RNE_V1", "7ad1f2c", "Checkpoint base", "54.1 GB", "converted"):
        assert word in text


def test_objects_of_an_artifact_are_paged_and_filtered(world: World, visitor: httpx.Client) -> None:
    address: str | None = PAGES["artifact"](world.scene)
    ordinals: list[int] = []
    while address is not None:
        response = visitor.get(address)
        ordinals += [int(entry) for entry in re.findall(r'data-label="#">(\d+)<', response.text)]
        found = re.search(r'href="([^"]*)#objects" rel="next"', response.text)
        address = found[1] if found else None
    assert ordinals == list(range(3_000))
    page = visitor.get(PAGES["artifact"](world.scene) + "?name=text/layers/12/&format=BF16").text
    assert len(re.findall('data-label="#"', page)) == 2
    assert 'value="text/layers/12/"' in page
    assert "<option selected>BF16</option>" in page


@pytest.mark.parametrize(
    ("name", "word", "sentence"),
    [
        ("passed", "passed", "3,000 objects of 41.8 GB passed structure, layout, values, statistics, restrictions, inventory, relations, source and parity; nothing left unchecked."),
        ("failed", "failed", "stored code -3, the profile gives -2"),
        ("incomplete", "incomplete", "values (5 of 40 objects could not be read); parity (no recipe was given)"),
        ("error", "error", "No check could run: the content sha256:12ab\\u202e is not in the store."),
        ("cancelled", "cancelled", "It was stopped after 0 B of"),
        ("queued", "queued", "It waits for a free worker."),
        ("running", "running", "A worker reads it now."),
    ],
)  # fmt: skip
def test_a_verdict_says_why(world: World, visitor: httpx.Client, name: str, word: str, sentence: str) -> None:
    response = visitor.get(PAGES[name](world.scene))
    assert f'<h1 id="verdict">{word}</h1>' in response.text
    assert sentence in Reader(response.text).text
    assert re.search(r'<section class="verdict tone-\w+"[^>]*>\s*<svg class="shape"', response.text)


def test_a_failed_run_lists_errors_first_with_place_and_explanation(
    world: World, visitor: httpx.Client
) -> None:
    page = read(visitor, PAGES["failed"](world.scene))
    codes = [link for link in page.links if link.startswith("/findings/")]
    assert codes == [
        "/findings/parity.code_mismatch",
        "/findings/values.scale_invalid",
        "/findings/layout.gap_nonzero",
        "/findings/statistics.all_zero",
    ]
    for word in (
        "Layout, values and parity failed",
        "2 more errors",
        "\u00d7 12",
        "expected -2 found -3",
        "Advisories 1",
    ):
        assert word in page.text


def test_a_pass_on_a_sample_or_out_of_earlier_runs_is_no_plain_pass(
    world: World, visitor: httpx.Client
) -> None:
    plain, sampled, reused = (
        visitor.get(PAGES[name](world.scene)).text for name in ("passed", "sampled", "reused")
    )
    tones = [
        re.search(r'<section class="verdict (tone-\w+)"', page)[1]  # type: ignore[index]  # each has one
        for page in (plain, sampled, reused)
    ]
    assert len(set(tones)) == 3
    for text, words in (
        (
            sampled,
            ("passed on a sample", "Parity on a sample only (422 of 39,744 rows).", "parity sampled 12"),
        ),
        (reused, ("passed, reused", "taken over from an earlier run.", "parity reused 12")),
    ):
        read_as = Reader(text).text
        for word in words:
            assert word in read_as
    marks = Reader(visitor.get("/runs").text).text
    for word in ("passed on a sample", "passed, reused", "sample 1 % \u00b7 canonical"):
        assert word in marks
    assert "parity passed 3,000" in Reader(plain).text


def test_a_name_that_nobody_knows_is_no_empty_answer(visitor: httpx.Client) -> None:
    response = visitor.get("/provenance?encoder_profile=MAXABS_F16_RECIP_RNE_V2")
    assert response.status_code == 422
    text = Reader(response.text).text
    assert "No such encoder profile: MAXABS_F16_RECIP_RNE_V2." in text
    assert "known are MAXABS_F16_RECIP_RNE_V1" in text
    assert "No artifact fulfils" not in text


def test_a_list_of_names_is_told_once(world: World, visitor: httpx.Client) -> None:
    text = Reader(visitor.get(PAGES["sampled"](world.scene)).text).text
    assert text.count("encoder.layer.7.attention.output.LayerNorm.weight") == 1


def test_an_artifact_leads_to_all_its_runs(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    artifact = seed.artifact("often.ninfer", tensor_names(3))
    for _ in range(3):
        proof = seed.run(artifact, "passed")
    for _ in range(9):
        seed.run(artifact, "passed", extent="sampled")
    with empty.visitor() as visitor:
        page = read(visitor, f"/artifacts/{artifact.digest}")
        assert "Strongest proof" in page.text
        assert f"/runs/{proof.id}" in page.links
        assert "All 12 runs" in page.text
        listed = read(visitor, f"/runs?artifact={artifact.digest}")
        assert len([link for link in listed.links if re.fullmatch(r"/runs/[0-9a-f]{32}", link)]) == 12
        assert visitor.get(f"/runs?artifact=sha256:{'0' * 64}").status_code == 404


def test_coverage_is_a_bar_with_numbers(world: World, visitor: httpx.Client) -> None:
    response = visitor.get(PAGES["incomplete"](world.scene))
    text = Reader(response.text).text
    assert "checked fully 83.1 % 479 MB 35 objects" in text
    assert "not checked 16.9 % 97.5 MB 5 objects" in text
    assert 'aria-label="Coverage: 83.1 % checked fully, 16.9 % not checked"' in response.text
    widths = [
        float(width)
        for width in re.findall(r'<rect class="part-\w+" x="[\d.]+%" width="([\d.]+)%"', response.text)
    ]
    assert sum(widths) == pytest.approx(100, abs=0.01)


def shown(page: str) -> list[str]:
    body = page.partition('id="objects"')[2].partition('id="files-title"')[0]
    return re.findall(r'<td class="lead">.*?title="([^"]*)"', body)


def test_objects_begin_with_what_failed_and_go_worst_first(world: World, visitor: httpx.Client) -> None:
    names = tensor_names(40)
    failed = PAGES["failed"](world.scene)
    assert set(shown(visitor.get(failed).text)) == {names[1], names[2], names[4]}
    every = visitor.get(f"{failed}?outcome=all").text
    assert len(shown(every)) == 40
    figures = [float(value) for value in re.findall(r'data-label="SQNR dB" class="num">([\d.]+)<', every)]
    assert figures == sorted(figures)
    assert shown(visitor.get(f"{failed}?outcome=all&order=ordinal").text) == names
    assert shown(visitor.get(f"{failed}?name={names[7]}").text) == [names[7]]
    kept = visitor.get(f"{failed}?outcome=all&format=BF16&check=parity").text
    assert '<input type="hidden" name="check" value="parity">' in kept
    assert 'href="' + failed + '?outcome=failed&amp;format=BF16&amp;check=parity#objects"' in kept


def test_objects_made_here_say_how_many_lanes_were_clamped(world: World, visitor: httpx.Client) -> None:
    page = visitor.get(PAGES["passed"](world.scene) + "?order=ordinal").text
    assert re.findall(r'data-label="clamped" class="num">(\d)<', page)[:5] == ["0", "1", "2", "3", "4"]


def test_findings_are_filtered_by_what_they_are_about(world: World, visitor: httpx.Client) -> None:
    failed = PAGES["failed"](world.scene)
    page = read(visitor, f"{failed}?object={tensor_names(40)[2]}")
    assert [link for link in page.links if link.startswith("/findings/")] == [
        "/findings/values.scale_invalid"
    ]
    assert "All findings" in page.text
    assert "No finding matches." in read(visitor, f"{failed}?severity=advisory&check=parity").text


def test_hostile_names_do_nothing(world: World, visitor: httpx.Client) -> None:
    for name in ("hostile run", "hostile artifact", "artifacts"):
        text = visitor.get(PAGES[name](world.scene)).text
        assert MARKUP not in text
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
        assert not {"\u202e", "\x00", "\x1b"} & set(text)
        assert "x" * 2_000 not in text
        assert "\u0301" * 3 not in text


def test_jobs_lead_to_their_run_or_conversion(world: World, visitor: httpx.Client) -> None:
    response = visitor.get(f"/jobs/{world.scene.failed.job_id}")
    assert (response.status_code, response.headers["location"]) == (303, f"/runs/{world.scene.failed.id}")
    text = read(visitor, "/jobs").text
    for word in ("37.0 % \u00b7 15.5 GB of 41.8 GB", "waiting for a worker"):
        assert word in text
    assert "Written" not in read(visitor, "/jobs?type=verify").text


def test_a_refused_conversion_says_why(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, PAGES["refused"](world.scene))
    assert "/findings/convert.source_not_finite" in page.links
    assert "Nothing was written" in page.text
    written = read(visitor, PAGES["written"](world.scene))
    assert f"/artifacts/{world.scene.large.digest}" in written.links


@pytest.mark.parametrize("code", FINDINGS.names)
def test_every_code_is_explained(visitor: httpx.Client, code: str) -> None:
    text = read(visitor, f"/findings/{code}").text
    definition = FINDINGS[code]
    for part in (definition.meaning, definition.causes, definition.remedy):
        assert " ".join(part.split()) in text


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/runs/" + "0" * 32, 404, "There is no run here"),
        ("/runs/no-such", 400, "nothing that can be asked for"),
        ("/jobs/" + "0" * 32, 404, "There is no job here"),
        ("/artifacts/sha256:" + "0" * 64, 404, "There is no artifact here"),
        ("/artifacts/%00", 400, "nothing that can be asked for"),
        ("/findings/parity.code_mismach", 404, "Did you mean parity.code_mismatch or"),
        ("/?cursor=zzz", 400, "Begin again"),
        ("/?kind=gguf", 400, "nothing that can be asked for"),
        ("/runs?cursor=%00", 400, "Begin again"),
        ("/static/../routes.py", 404, ""),
        ("/static/pages.py", 404, "There is no file here"),
    ],
)
def test_errors_are_pages(visitor: httpx.Client, address: str, status: int, says: str) -> None:
    response = visitor.get(address)
    assert response.status_code == status
    assert says in Reader(response.text).text
    if says:
        assert Reader(response.text).problems == []


def test_a_cursor_of_another_list_is_refused(world: World, visitor: httpx.Client) -> None:
    page = visitor.get(PAGES["artifact"](world.scene)).text
    found = re.search(r"cursor=([\w-]+)#objects", page)
    assert found
    assert visitor.get(f"/runs?cursor={found[1]}").status_code == 400


def test_empty_members_leave_the_address(visitor: httpx.Client) -> None:
    response = visitor.get("/?q=&kind=ninfer")
    assert (response.status_code, response.headers["location"]) == (303, "/?kind=ninfer")


def rows(client: httpx.Client, address: str) -> list[dict[str, str]]:
    response = client.get(address)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"].startswith("attachment")
    csv.field_size_limit(10_000_000)
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


def test_objects_download_as_csv(world: World, visitor: httpx.Client) -> None:
    whole = rows(visitor, f"/runs/{world.scene.passed.id}/objects.csv?order=ordinal")
    assert [row["name"] for row in whole] == tensor_names(3_000)
    assert whole[0]["shape"] == "[7168, 5120]"
    assert float(whole[0]["sqnr_db"]) == pytest.approx(19.0)
    assert len(rows(visitor, f"/runs/{world.scene.failed.id}/objects.csv?outcome=failed")) == 3


def test_downloads_hold_names_in_full_and_start_no_formula(world: World, visitor: httpx.Client) -> None:
    listed = rows(visitor, f"/runs/{world.scene.hostile_run.id}/objects.csv")
    names = {row["name"] for row in listed}
    assert MEGABYTE in names
    assert MARKUP in names
    assert "'=1+2" in names
    report = visitor.get(f"/runs/{world.scene.hostile_run.id}/report.json").json()
    assert "=1+2" in {item["name"] for item in report["objects"]}


def test_findings_download_as_csv(world: World, visitor: httpx.Client) -> None:
    found = rows(visitor, f"/runs/{world.scene.failed.id}/findings.csv?severity=error")
    assert [row["code"] for row in found] == [
        "parity.code_mismatch",
        "values.scale_invalid",
        "layout.gap_nonzero",
    ]
    assert json.loads(found[0]["where"]) == {"row": 4_096, "group": 17, "lane": 5}


def test_the_report_downloads_as_json(world: World, visitor: httpx.Client) -> None:
    response = visitor.get(f"/runs/{world.scene.passed.id}/report.json")
    assert response.headers["content-disposition"].startswith("attachment")
    assert len(response.json()["objects"]) == 3_000
    assert visitor.get(f"/jobs/{world.scene.written.job_id}/report.json").json()["versions"]


@pytest.mark.parametrize("name", ["queued", "error"])
def test_what_has_no_answer_has_no_report(world: World, visitor: httpx.Client, name: str) -> None:
    run: Run = getattr(world.scene, name)
    assert visitor.get(f"/runs/{run.id}/report.json").status_code == 409


def test_a_file_can_be_kept(world: World, visitor: httpx.Client) -> None:
    artifact = Seed(world.parts.database).artifact('kept "it".ninfer')
    with world.parts.database.write() as session:
        content.add_blob(session, DEFAULT_PROJECT, artifact.digest.removeprefix("sha256:"), artifact.bytes)
    place = f"/artifacts/{artifact.digest}/files/0"
    assert place in visitor.get(f"/artifacts/{artifact.digest}").text
    lost = visitor.get(place)
    assert lost.status_code == 410
    assert "any more" in lost.text
    path = world.parts.blobs.place(artifact.digest.removeprefix("sha256:"))
    path.write_bytes(bytes(artifact.bytes))
    answer = visitor.get(place)
    assert (answer.status_code, answer.content) == (200, bytes(artifact.bytes))
    assert answer.headers["content-disposition"].startswith("attachment; filename*=utf-8''kept%20%22it%22")
    assert visitor.get(f"/artifacts/{artifact.digest}/files/1").status_code == 404


def test_claims_stand_apart_from_what_was_done_and_proved(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, PAGES["artifact"](world.scene))
    assert "Recipe qwen3.6-27b/groupwise-int" in page.text
    rows = re.findall(
        r'<td data-label="Claimed".*?</tr>', visitor.get(PAGES["artifact"](world.scene)).text, re.S
    )
    marks = [tuple(word in row for word in ("says so", "converted", "verified")) for row in rows]
    assert marks.count((True, True, True)) == 2  # recipe and checkpoint
    assert marks.count((False, True, True)) == 2
    assert marks.count((False, False, True)) == 1  # the target; which version checked stands below
    assert "Checked by ninfer-gate" in page.text
    hostile = read(visitor, PAGES["hostile artifact"](world.scene))
    assert "claims, unverified" in hostile.text
    assert (
        "verified"
        not in hostile.text.partition("Where it comes from")[2].partition("What the artifact says")[0]
    )


def test_a_run_says_what_it_rests_on(world: World, visitor: httpx.Client) -> None:
    text = read(visitor, PAGES["passed"](world.scene)).text
    assert "in canonical order and placement" in text
    assert "1 % of the rows, seed 7: 1,234 of 123,400." in text
    assert "one wrong row with a chance of 1.0 %, one wrong row in a thousand with a chance of 63.0 %" in text
    assert "one in a hundred with a chance of over 99.9 %" in text
    assert "10 results taken over from run" in text
    assert "says nothing about the bytes on the disk today" in text


def test_provenance_is_searched(world: World, visitor: httpx.Client) -> None:
    start = read(visitor, "/provenance").text
    assert "Every condition must hold." in start
    assert "No artifact" not in start
    both = read(visitor, PAGES["provenance found"](world.scene)).text
    assert "claimed only" in both
    proved = read(visitor, PAGES["provenance found"](world.scene) + "&basis=verified").text
    assert "claimed only" not in proved
    assert "qwen3.6-27b.ninfer" in proved
    assert "No artifact fulfils all of this." in read(visitor, "/provenance?format=NVFP4&recipe=x").text


def test_a_target_lists_its_objects_and_what_is_complete_for_it(world: World, visitor: httpx.Client) -> None:
    target = TARGETS[0]
    address = PAGES["target"](world.scene)
    page = read(visitor, address)
    assert target.identity.replace("/", " / ") in page.text
    assert "qwen3.6-27b.ninfer" in page.text
    first = target.objects[0].name
    assert first in page.text.replace("\u200b", "")
    many = visitor.get(address).text.count('data-label="Layout"')
    assert many == min(100, len(target.objects))
    assert "No object matches." in read(visitor, f"{address}?name=nothing").text
    assert visitor.get(f"/targets/sha256:{'0' * 64}").status_code == 404


def test_an_object_tells_its_runs_and_where_else_it_lies(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, PAGES["object"](world.scene))
    assert f"/tensors/{TENSOR}" in page.links
    assert "reused from" in page.text
    lies = read(visitor, f"/tensors/{TENSOR}")
    assert f"/artifacts/{world.scene.hostile.digest}" in lies.links
    assert visitor.get(f"/artifacts/{world.scene.large.digest}/objects/999999").status_code == 404


def test_a_conversion_says_what_became_of_its_source_tensors(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, PAGES["written"](world.scene))
    assert "base 91 88 2 1 0" in page.text
    for word in ("lm_head.weight no reason is given", "rotary.inv_freq computed when it runs"):
        assert word in page.text
    assert f"/artifacts/{world.scene.large.digest}#origin" in page.links
    assert f"/artifacts/{world.scene.large.digest}/objects/0" in page.links


def test_a_conversion_leads_to_its_provenance_record(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    made = seed.conversion(seed.artifact("a.ninfer", tensor_names(3), origin="converted"))
    address = f"/jobs/{made.job_id}/record.json"
    with empty.visitor() as client:
        assert address not in read(client, f"/jobs/{made.job_id}").links
        assert client.get(address).status_code == 409
        with empty.parts.blobs.writer() as writer:
            writer.write(b'{"schema":"a record"}')
            sha256, _ = writer.commit()
        with empty.parts.database.write() as session:
            session.merge(made).record = f"sha256:{sha256}"
        assert address in read(client, f"/jobs/{made.job_id}").links
        answer = client.get(address)
        assert (answer.status_code, answer.content) == (200, b'{"schema":"a record"}')
        assert "attachment" in answer.headers["content-disposition"]
