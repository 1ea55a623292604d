"""Results taken over from earlier runs: only when everything that they rest on is the same, one ingredient at a time."""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, select, update

from ninfer_core.io import Buffer
from ninfer_core.verify import reuse as core
from service import jobs, targets
from service.job_requests import Convert, Output, Sample, Verify
from service.queue import VERIFY_SHARD
from service.records import content, models, reuse, runs
from service.records.types import now
from tests.build import recipe, tensor, write_checkpoint
from tests.worker.inside import follow, inside
from tests.worker.rig import PROJECT, Rig, rig
from worker.context import Context
from worker.preparing import open_verification
from worker.sources import StoredFile

SHAPE = (160, 256)
NAMES = ("a", "b", "c")
CANONICAL = "MAXABS_F16_RECIP_RNE_V1"


@dataclass
class Place:
    """A service with a converted artifact, everything about it verified once."""

    rig: Rig
    context: Context
    folder: Path
    document: dict[str, Any]
    checkpoint: str
    artifact: str
    first: str  # id of the first run

    def request(self, **changes: Any) -> Verify:
        """The first verification's request, or one with a change."""
        given: dict[str, Any] = {
            "artifact": self.artifact,
            "checkpoints": {"base": self.checkpoint},
            "recipe": text(self.document),
        }
        return Verify(**given | changes)

    def run(self, request: Verify | Convert) -> models.Job:
        """Do a job here."""
        job_id = self.rig.job(request)
        follow(self.context, job_id)
        return self.rig.row(job_id)

    def taken(self, request: Verify) -> set[str]:
        """Names of the objects whose results a verification would take over."""
        job_id = self.rig.job(request)
        verification = open_verification(self.context.store, job_id)
        verification.close()
        return {item.name for item in verification.known.objects.values()}

    def digest_of(self, job: models.Job) -> str:
        """Of the artifact that a conversion made."""
        with self.rig.parts.database.read() as session:
            artifact = session.get(models.Artifact, job.artifact_id)
        assert artifact is not None, job.error
        return artifact.digest

    def pushed(self, tensors: dict[str, Any], name: str) -> str:
        """Another checkpoint; its id."""
        folder = self.folder / name
        folder.mkdir()
        write_checkpoint(folder, tensors)
        return self.rig.checkpoint(folder)


def text(document: dict[str, Any]) -> bytes:
    """A document as a client sends it."""
    return json.dumps(document).encode()


def tensors(seed: int = 3) -> dict[str, Any]:
    """Source tensors of random BF16 words."""
    rng = np.random.default_rng(seed)
    return {
        name: ("BF16", (rng.standard_normal(SHAPE).astype("<f4").view("<u4") >> 16).astype("<u2"))
        for name in NAMES
    }


def rules() -> dict[str, Any]:
    """Two encoded matrices and a copied one."""
    made = (("a", "Q4G64_F16S", CANONICAL), ("b", "W8G32_F16S", CANONICAL), ("c", "BF16", "copy_words"))
    return recipe(
        [
            {"object": name, "value": tensor(name, SHAPE, "BF16"), "encode": encode, "format": fmt}
            for name, fmt, encode in made
        ]
    )


@dataclass(frozen=True)
class Made:
    """What the places of all tests are copies of."""

    data: Path
    checkpoint: str
    artifact: str
    first: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Converted and verified once."""
    folder = tmp_path_factory.mktemp("reuse")
    own = folder / "own"
    own.mkdir()
    write_checkpoint(own, tensors())
    with rig(folder / "data") as service, inside(service) as context:
        here = Place(service, context, folder, rules(), service.checkpoint(own), "", "")
        job = here.run(Convert(text(here.document), {"base": here.checkpoint}, Output(2, None, "a.ninfer")))
        here.artifact = here.digest_of(job)
        first = here.run(here.request())
        assert first.state == "passed"
        return Made(folder / "data", here.checkpoint, here.artifact, first.id)


@pytest.fixture
def place(made: Made, tmp_path: Path) -> Iterator[Place]:
    """A copy of it."""
    shutil.copytree(made.data, tmp_path / "data")
    with rig(tmp_path / "data") as service, inside(service) as context:
        yield Place(service, context, tmp_path, rules(), made.checkpoint, made.artifact, made.first)


def test_a_second_run_reads_no_tensor_and_says_what_it_took_over(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {item["name"]: item for item in place.rig.report(place.first)["objects"]}
    start = 4096  # where the payload of so small a file begins
    held = [(start + item["offset"], start + item["offset"] + item["bytes"]) for item in entries.values()]
    assert max(end for _, end in held) == place.rig.report(place.first)["artifact"]["bytes"]
    reads: list[tuple[str, int, int]] = []
    read_into = StoredFile.read_into

    def noted(self: StoredFile, buffer: Buffer, offset: int) -> None:
        reads.append((self.name, offset, offset + len(memoryview(buffer).cast("B"))))
        read_into(self, buffer, offset)

    monkeypatch.setattr(StoredFile, "read_into", noted)
    second = place.run(place.request())
    monkeypatch.undo()
    report = place.rig.report(second.id)
    assert second.state == report["verdict"] == "passed"
    source = [read for read in reads if read[0] == "model.safetensors" and read[2] > 4096]
    artifact = [
        read
        for read in reads
        if read[0] == "a.ninfer" and any(begin < read[2] and read[1] < end for begin, end in held)
    ]
    assert reads
    assert source == artifact == []
    first = place.rig.row(place.first)
    assert first.bytes is not None
    assert second.bytes is not None
    assert second.bytes < first.bytes // 20
    with place.rig.parts.database.read() as session:
        ended = runs.ended(session, [place.first])[place.first]
    for item in report["objects"]:
        own = entries[item["name"]]
        assert item["coverage"] == "reused"
        assert item["reused_from"] == {"run": place.first, "date": ended.isoformat()}
        same = {name: value for name, value in own.items() if name not in ("coverage", "reused_from")}
        assert {name: item[name] for name in same} == same
    total = len(entries)
    assert report["coverage"]["objects"] == {
        "full": 0,
        "sampled": 0,
        "reused": total,
        "none": 0,
        "total": total,
    }


def test_a_third_run_takes_over_from_the_first_since_the_second_measured_nothing(place: Place) -> None:
    place.run(place.request())
    third = place.run(place.request())
    assert {item["reused_from"]["run"] for item in place.rig.report(third.id)["objects"]} == {place.first}


def test_nothing_else_differs_where_everything_is_the_same(place: Place) -> None:
    assert place.taken(place.request()) == set(NAMES)


def changed_checks(place: Place) -> Verify:
    return place.request(checks=("structure", "layout", "values", "source", "parity"))


def changed_tree(place: Place) -> Verify:
    """The same words by another way."""
    document = copy.deepcopy(place.document)
    for rule in document["rules"]:
        rule["value"] = {"op": "reshape", "shape": list(SHAPE), "of": rule["value"]}
    return place.request(recipe=text(document))


def changed_claims(place: Place) -> Verify:
    """One more demand on every object."""
    document = copy.deepcopy(place.document)
    document["restrictions"] = [
        {"scope": {"encode": CANONICAL}, "rule": "canonical_group_shape", "basis": "contract"},
        {"scope": {"encode": "copy_words"}, "rule": "stored_finite", "basis": "contract"},
    ]
    return place.request(recipe=text(document))


def changed_target(place: Place) -> Verify:
    """The same checks, but held against a target as well."""
    shape = list(SHAPE)
    document = {
        "schema": "ninfer-target/1",
        "identity": dict(place.document["identity"]),
        "layouts": {
            "Q4G64_F16S": "row-split-k128-v1",
            "W8G32_F16S": "row-split-k128-v1",
            "BF16": "contiguous-le-v1",
        },
        "objects": [
            {"tensor": rule["object"], "shape": shape, "format": rule["format"]}
            for rule in place.document["rules"]
        ],
    }
    listed, _ = targets.push(place.rig.parts, PROJECT, text(document))
    return place.request(target=listed.digest, checks=first_checks(place))


def first_checks(place: Place) -> tuple[str, ...]:
    return tuple(place.rig.row(place.first).request["checks"])


def with_inventory(place: Place) -> Verify:
    """The target's own check as well, which `canonical` is about."""
    return replace(changed_target(place), checks=(*first_checks(place), "inventory"))


def changed_canonical(place: Place) -> Verify:
    return replace(with_inventory(place), canonical=True)


def changed_sample(place: Place) -> Verify:
    return place.request(sample=Sample(0.5, 1))


def another_checkpoint(place: Place) -> Verify:
    """Other words: parity against them is another question, whatever the answer."""
    return place.request(checkpoints={"base": place.pushed(tensors(4), "other")})


def moved_sources(place: Place) -> Verify:
    """The same words at other places of another file: nobody knows that without reading them."""
    held = tensors()
    moved = {name: held[name] for name in ("c", "a", "b")}
    return place.request(checkpoints={"base": place.pushed(moved, "moved")})


def nothing_allowed(place: Place) -> Verify:
    return place.request(full=True)


@pytest.mark.parametrize(
    "change",
    [
        changed_checks,
        changed_tree,
        changed_claims,
        changed_target,
        changed_canonical,
        changed_sample,
        another_checkpoint,
        moved_sources,
        nothing_allowed,
    ],
)
def test_one_changed_ingredient_takes_over_nothing(place: Place, change: Callable[[Place], Verify]) -> None:
    assert place.taken(change(place)) == set()


def test_canonical_alone_is_another_question(place: Place) -> None:
    assert place.run(with_inventory(place)).state == "passed"
    assert place.taken(with_inventory(place)) == set(NAMES)
    assert place.taken(changed_canonical(place)) == set()


def test_a_job_with_little_to_read_runs_its_shard_itself(place: Place) -> None:
    """Nothing goes in line where all is taken over; what is large goes there shard by shard."""
    enqueued: list[str] = []
    queue = SimpleNamespace(enqueue=lambda workflow, *given, **_: enqueued.append(workflow))
    context = replace(place.context, queue=queue)  # type: ignore[arg-type]  # as much of one as is needed
    again = place.rig.job(place.request())
    follow(context, again)
    assert (place.rig.row(again).state, enqueued) == ("passed", [])
    cut = place.rig.settings.model_copy(update={"shard_bytes": 100_000})
    full = place.rig.job(place.request(full=True))
    follow(replace(context, settings=cut), full)
    assert place.rig.row(full).state == "passed"
    assert len(enqueued) > 1
    assert set(enqueued) == {VERIFY_SHARD}


def test_another_version_takes_over_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "versions", lambda: {"ninfer_gate": "another", "encoder_profiles": {}})
    assert place.taken(place.request()) == set()


def test_one_source_tensor_that_changed_leaves_only_what_was_made_of_it(place: Place) -> None:
    """A recipe may read several files; of a file that is the same, the results stay."""
    document = copy.deepcopy(place.document)
    document["sources"]["other"] = {**document["sources"]["base"], "repository": "another"}
    document["rules"][2]["value"]["from"] = "other"
    held, changed = tensors(), tensors(7)
    base = place.pushed({name: held[name] for name in ("a", "b")}, "base")
    own, foreign = place.pushed({"c": held["c"]}, "c"), place.pushed({"c": changed["c"]}, "changed")
    request = place.request(recipe=text(document), checkpoints={"base": base, "other": own})
    assert place.run(request).state == "passed"
    assert place.taken(request) == set(NAMES)
    request = place.request(recipe=text(document), checkpoints={"base": base, "other": foreign})
    assert place.taken(request) == {"a", "b"}
    job = place.run(request)
    assert job.state == "failed"
    assert {item["name"]: item["coverage"] for item in place.rig.report(job.id)["objects"]} == {
        "a": "reused",
        "b": "reused",
        "c": "full",
    }
    with place.rig.parts.database.read() as session:
        assert reuse.source_run(session, PROJECT, "sha256:" + "0" * 64) is None


def test_an_object_with_a_finding_is_looked_at_again(place: Place) -> None:
    other = another_checkpoint(place)
    assert place.run(other).state == "failed"
    assert place.taken(other) == set()


def test_an_advisory_is_a_finding_too(place: Place) -> None:
    held = tensors()
    held["b"] = ("BF16", np.zeros(SHAPE, "<u2"))
    zeros = place.pushed(held, "zeros")
    converted = place.run(Convert(text(place.document), {"base": zeros}, Output(2, None, "zeros.ninfer")))
    request = place.request(artifact=place.digest_of(converted), checkpoints={"base": zeros})
    job = place.run(request)
    noted = {(item["object"], item["severity"]) for item in place.rig.report(job.id)["findings"]}
    assert (job.state, noted) == ("passed", {("b", "advisory")})
    assert place.taken(request) == {"a", "c"}


def test_an_advisory_about_the_source_keeps_nothing_from_being_taken_over(place: Place) -> None:
    """It comes from binding, which every run does itself."""
    spare = place.pushed({**tensors(), "spare": tensors(9)["a"]}, "spare")
    request = place.request(checkpoints={"base": spare})
    first, second = place.run(request), place.run(request)
    reports = [place.rig.report(job.id) for job in (first, second)]
    assert (first.state, second.state) == ("passed", "passed")
    assert [(item["code"], item["object"]) for item in reports[0]["findings"]] == [
        ("source.tensor_unaccounted", None)
    ]
    assert reports[1]["findings"] == reports[0]["findings"]
    assert {item["reused_from"]["run"] for item in reports[1]["objects"]} == {first.id}
    with place.rig.parts.database.read() as session:
        run = runs.by_job(session, second.id)
        assert run is not None
        assert run.reuse == {"runs": {first.id: [[0, 2]]}, "source": first.id}


def test_what_was_compared_with_damaged_sources_is_never_taken_over(place: Place) -> None:
    """The words may look the same: they were not those that were stored."""
    with place.rig.parts.database.read() as session:
        (held,) = content.checkpoint_files(session, place.checkpoint)
    stored = place.rig.parts.blobs.path(held.sha256)
    whole = stored.read_bytes()
    stored.chmod(0o644)
    damaged = bytearray(whole)
    damaged[-1] ^= 1
    stored.write_bytes(damaged)
    request = changed_tree(place)
    job = place.run(request)
    assert job.state == "failed"
    assert "source.changed" in {item["code"] for item in place.rig.report(job.id)["findings"]}
    stored.write_bytes(whole)
    assert place.taken(request) == set()
    assert place.run(request).state == "passed"
    assert place.taken(request) == set(NAMES)


def test_age(place: Place) -> None:
    with place.rig.parts.database.write() as session:
        earlier = now() - timedelta(hours=1)
        session.execute(update(models.Run).where(models.Run.id == place.first).values(finished_at=earlier))
    assert place.taken(place.request(max_age_seconds=3_500)) == set()
    assert place.taken(place.request(max_age_seconds=3_700)) == set(NAMES)
    assert place.taken(place.request(max_age_seconds=0)) == set()


def test_a_run_without_a_verdict_is_nothing_to_take_over(place: Place) -> None:
    with place.rig.parts.database.write() as session:
        session.execute(update(models.Run).where(models.Run.id == place.first).values(verdict=None))
    assert place.taken(place.request()) == set()


def test_another_project_takes_over_nothing(place: Place) -> None:
    with place.rig.parts.database.write() as session:
        session.add(models.Project(id="other", name="other", created_at=now()))
        session.flush()
    with place.rig.parts.database.read() as session:
        wanted = [key for key in session.scalars(select(models.Result.reuse_key)) if key is not None]
        assert len(wanted) == len(NAMES)
        assert set(reuse.found(session, PROJECT, wanted)) == set(wanted)
        assert reuse.found(session, "other", wanted) == {}


def test_a_decision_stands_even_if_more_could_be_taken_over_by_now(place: Place) -> None:
    request = changed_tree(place)
    job_id = place.rig.job(request)
    first = open_verification(place.context.store, job_id)
    first.close()
    assert place.run(request).state == "passed"
    assert place.taken(request) == set(NAMES)
    again = open_verification(place.context.store, job_id)
    again.close()
    assert dict(first.known.objects) == dict(again.known.objects) == {}
    assert first.plan == again.plan


def test_a_repacked_artifact_takes_over_what_is_the_same_tensor(place: Place) -> None:
    job = place.run(Convert(text(place.document), {"base": place.checkpoint}, Output(3, None, "b.ninfer")))
    digest = place.digest_of(job)
    request = place.request(artifact=digest)
    assert place.taken(request) == set(NAMES)
    report = place.rig.report(place.run(request).id)
    assert report["verdict"] == "passed"
    assert report["artifact"]["digest"] == digest
    assert report["artifact"]["content_root"] == place.rig.report(place.first)["artifact"]["content_root"]


def test_plain_verifications_take_over_as_well_and_keep_apart_from_parity(place: Place) -> None:
    plain = Verify(place.artifact)
    assert place.taken(plain) == set()
    assert place.run(plain).state == "passed"
    assert place.taken(plain) == set(NAMES)


def test_what_is_reused_verifies_nothing_anew(place: Place) -> None:
    """A run that compared nothing itself is never the origin of a fact."""
    with place.rig.parts.database.write() as session:
        session.execute(delete(models.Edge))
    second = place.run(place.request())
    assert second.state == "passed"
    with place.rig.parts.database.read() as session:
        assert list(session.scalars(select(models.Edge))) == []


def test_the_stored_reuse_is_small(place: Place) -> None:
    second = place.run(place.request())
    with place.rig.parts.database.read() as session:
        run = runs.by_job(session, second.id)
        assert run is not None
        assert run.reuse == {"runs": {place.first: [[0, 2]]}, "source": place.first}


def test_spans() -> None:
    assert reuse.spans([]) == []
    assert reuse.spans([0, 1, 2, 4, 6, 7]) == [[0, 2], [4, 4], [6, 7]]


def test_jobs_say_what_they_were_asked(place: Place) -> None:
    job = place.rig.row(place.rig.job(place.request(max_age_seconds=7)))
    assert (job.request["full"], job.request["max_age_seconds"]) == (False, 7)
    assert jobs.view(place.rig.parts, PROJECT, job.id).job.id == job.id
