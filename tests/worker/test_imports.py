"""Imports as jobs: from below a root, out of a bucket, out of the parts of an upload; over quota, killed, and when a store is away."""

import hashlib
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from service import imports, jobs
from service.blobs import open_store
from service.errors import ImportRefused
from service.imports import Fetch
from service.records import uploads as upload_rows
from service.records.models import Project
from service.uploads import ledger, parts
from service.uploads.clearing import clear
from service.uploads.part_store import store_of
from tests.s3 import S3Server
from tests.worker.inside import follow, inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, Rig, rig, until
from worker.context import Context
from worker.workflows import imports as workflow

PART = 5 << 20


class Killed(BaseException):
    """Nothing below a worker takes it for an error."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rig]:
    root = tmp_path / "models"
    root.mkdir()
    with rig(tmp_path / "data", import_roots=(root,)) as built:
        yield built


@pytest.fixture
def in_s3(tmp_path: Path, s3_settings: dict[str, Any]) -> Iterator[Rig]:
    with rig(tmp_path / "data", upload_part_bytes=PART, **s3_settings) as built:
        yield built


def content(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def digest(given: bytes) -> str:
    return f"sha256:{hashlib.sha256(given).hexdigest()}"


def root(made: Rig) -> Path:
    return made.settings.import_roots[0]


def fetched(made: Rig, request: Fetch) -> Any:
    """The import, once its job is over, done in this process."""
    job_id = made.job(request)
    with inside(made) as context:
        follow(context, job_id)
    return imports.one(made.parts, PROJECT, job_id)


def held(made: Rig, given: bytes) -> bool:
    sha256 = digest(given).removeprefix("sha256:")
    return (
        made.parts.blobs.holds(sha256, len(given))
        and b"".join(made.parts.blobs.pieces(sha256, 0, len(given))) == given
    )


def test_a_folder_becomes_an_artifact(made: Rig) -> None:
    given = {"a.ninfer": content(3_000_000, 1), "b": content(10, 2), "c": b""}
    for name, body in given.items():
        (root(made) / name).write_bytes(body)
    (root(made) / "inner").mkdir()
    (root(made) / "inner" / "not.this").write_bytes(b"not this")
    view = fetched(made, Fetch(str(root(made)), "ninfer"))
    assert view.job.state == "passed"
    assert view.files == [
        {"name": name, "digest": digest(body), "bytes": len(body)} for name, body in sorted(given.items())
    ]
    assert all(held(made, body) for body in given.values())
    seen = jobs.view(made.parts, PROJECT, view.job.id)
    assert seen.artifact == view.row.document["artifact"]
    assert (seen.progress.objects_done, seen.progress.bytes_done) == (3, 3_000_010)
    # once more: everything is there, and the same artifact
    assert fetched(made, Fetch(str(root(made)), "ninfer")).row.document == view.row.document


def test_what_may_not_be_read_is_refused_and_not_looked_at(made: Rig, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    for source in ("/etc/passwd", f"{root(made)}/../secret", "s3://bucket/key", str(tmp_path / "nothing")):
        with pytest.raises(ImportRefused):
            made.job(Fetch(source))
    os.symlink(tmp_path / "secret", root(made) / "link")
    view = fetched(made, Fetch(str(root(made) / "link")))
    assert (view.job.state, view.files) == ("error", None)
    assert not held(made, b"secret")
    assert fetched(made, Fetch(str(root(made) / "nothing"))).job.error["code"] == "cannot_read"


def test_over_quota_nothing_is_kept(made: Rig) -> None:
    body = content(1_000, 3)
    (root(made) / "one").write_bytes(body)
    with made.parts.database.write() as session:
        project = session.get(Project, PROJECT)
        assert project is not None
        project.quota_bytes = 999
    view = fetched(made, Fetch(str(root(made))))
    assert (view.job.state, view.job.error["code"]) == ("error", "quota_exceeded")
    assert not held(made, body)


def test_a_killed_worker_has_fetched_what_it_had_fetched(made: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {name: content(100_000, number) for number, name in enumerate("abc")}
    for name, body in given.items():
        (root(made) / name).write_bytes(body)
    job_id = made.job(Fetch(str(root(made))))
    read: list[str] = []
    pieces = workflow._pieces

    def counted(source: Any, ticket: Any) -> Any:
        read.append(source.name)
        if read == ["a", "b"]:
            raise Killed
        return pieces(source, ticket)

    monkeypatch.setattr(workflow, "_pieces", counted)
    with inside(made) as context, pytest.raises(Killed):
        follow(context, job_id)
    with inside(made) as context:
        follow(context, job_id)
    assert made.row(job_id).state == "passed"
    assert read == ["a", "b", "b", "c"]
    assert all(held(made, body) for body in given.values())


def test_a_file_that_changes_meanwhile_is_not_kept(made: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root(made) / "one"
    path.write_bytes(content(100_000, 4))
    pieces = workflow._pieces

    def changing(source: Any, ticket: Any) -> Any:
        yield from pieces(source, ticket)
        os.utime(path, ns=(1, 1))

    monkeypatch.setattr(workflow, "_pieces", changing)
    view = fetched(made, Fetch(str(path)))
    assert (view.job.state, view.job.error["code"]) == ("error", "cannot_read")
    assert "changed" in view.job.error["detail"]


def test_out_of_a_bucket_into_a_bucket(tmp_path: Path, s3: S3Server, s3_settings: dict[str, Any]) -> None:
    bucket = s3.bucket()
    body = content(200_000, 5)
    s3.put(bucket, "public/model/weights.ninfer", body)
    with rig(tmp_path / "data", import_buckets=(f"{bucket}/public",), **s3_settings) as made:
        fault = s3.fail(times=1, method="GET", status=500)
        view = fetched(made, Fetch(f"s3://{bucket}/public/model", "ninfer"))
        assert (view.job.state, view.job.error) == ("passed", None)
        assert fault.seen == 1
        assert held(made, body)
        with pytest.raises(ImportRefused):
            made.job(Fetch(f"s3://{bucket}/private/model"))


def in_parts(made: Rig, body: bytes, declared: str | None = None) -> ledger.Upload:
    """An upload whose parts a client has put."""
    announced = ledger.Announced(len(body), "weights", (declared or digest(body)).removeprefix("sha256:"))
    upload = parts.begin(made.parts, PROJECT, "tests", announced)
    for part in parts.page(made.parts, PROJECT, upload.id, limit=100, cursor=None).items:
        assert part.address is not None
        at = (part.number - 1) * PART
        httpx.put(part.address, content=body[at : at + part.bytes]).raise_for_status()
    return upload


def promoted(made: Rig, upload: ledger.Upload) -> Any:
    found = parts.complete(made.parts, PROJECT, upload.id)
    job = jobs.store_upload(made.parts, PROJECT, found, "tests")
    assert jobs.store_upload(made.parts, PROJECT, found, "tests").id == job.id  # twice is harmless
    with inside(made) as context:
        follow(context, job.id)
    return made.row(job.id)


def uploaded(made: Rig, upload: ledger.Upload) -> ledger.Upload:
    return ledger.find(made.parts, PROJECT, upload.id)


def test_parts_become_content(in_s3: Rig, s3: S3Server) -> None:
    body = content(2 * PART + 12_345, 6)
    upload = in_parts(in_s3, body)
    first = parts.page(in_s3.parts, PROJECT, upload.id, limit=2, cursor=None)
    assert [(part.number, part.bytes, part.address) for part in first.items] == [
        (1, PART, None),
        (2, PART, None),
    ]
    rest = parts.page(in_s3.parts, PROJECT, upload.id, limit=2, cursor=first.next)
    assert ([part.bytes for part in rest.items], rest.next) == ([12_345], None)
    assert promoted(in_s3, upload).state == "passed"
    assert uploaded(in_s3, upload).state == "stored"
    assert held(in_s3, body)
    assert not [key for key in s3.keys(in_s3.settings.store.split("/")[2]) if "/uploads/" in key]  # type: ignore[union-attr]


def test_parts_of_another_digest_are_no_content(in_s3: Rig) -> None:
    body = content(PART + 1, 7)
    upload = in_parts(in_s3, body, declared=digest(b"another"))
    job = promoted(in_s3, upload)
    assert (job.state, job.error["code"]) == ("error", "wrong_content")
    found = uploaded(in_s3, upload)
    assert (found.state, found.error["code"]) == ("failed", "digest_mismatch")
    assert not held(in_s3, body)


def test_parts_that_are_missing_are_said(in_s3: Rig) -> None:
    announced = ledger.Announced(PART + 1, "weights", "0" * 64)
    upload = parts.begin(in_s3.parts, PROJECT, "tests", announced)
    with pytest.raises(parts.UploadConflict, match="2 of 2 parts are missing"):
        parts.complete(in_s3.parts, PROJECT, upload.id)
    ledger.give_up(in_s3.parts, PROJECT, upload.id)
    with in_s3.parts.database.read() as session:
        assert upload_rows.open_bytes(session, PROJECT) == 0


def test_parts_that_rested_too_long_are_removed(in_s3: Rig, s3: S3Server) -> None:
    upload = in_parts(in_s3, content(10, 8))
    with in_s3.parts.database.write() as session:
        found = upload_rows.locked(session, upload.id)
        assert found is not None
        found.expires_at = found.created_at
    clear(in_s3.parts.database, in_s3.parts.blobs, in_s3.settings)
    assert uploaded(in_s3, upload).error["code"] == "expired"
    assert not [key for key in s3.keys(in_s3.settings.store.split("/")[2]) if "/uploads/" in key]  # type: ignore[union-attr]


def test_parts_that_nobody_will_ask_for_are_removed(in_s3: Rig, s3: S3Server) -> None:
    """The process died between the end of an upload and its parts, or a part came after that; those of open ones stay."""
    bucket = str(in_s3.settings.store).split("/")[2]
    body = content(10, 9)
    done, open_ = in_parts(in_s3, body), in_parts(in_s3, content(10, 10))
    assert promoted(in_s3, done).state == "passed"
    for upload_id in (done.id, "ab" * 16):
        s3.put(bucket, f"gate/uploads/{upload_id}/00001", body)
    s3.put(bucket, "gate/uploads/somebody's/00001", body)
    clear(in_s3.parts.database, in_s3.parts.blobs, in_s3.settings)
    left = [key.split("/")[2] for key in s3.keys(bucket) if "/uploads/" in key]
    assert left == sorted([open_.id, "somebody's"])
    assert held(in_s3, body)


def test_an_upload_that_is_given_up_while_it_is_stored_is_no_import(
    in_s3: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = in_parts(in_s3, content(10, 11))
    prepare = Context.prepare

    store = store_of(in_s3.parts.blobs)
    assert store is not None

    def give_up(context: Context, *given: Any, **more: Any) -> None:
        prepare(context, *given, **more)
        ledger.give_up(in_s3.parts, PROJECT, upload.id)
        # Its parts were read to their end before they went.
        httpx.put(store.presign_put(upload.id, 1, 60), content=content(10, 11)).raise_for_status()

    monkeypatch.setattr(Context, "prepare", give_up)
    job = promoted(in_s3, upload)
    assert (job.state, job.error) == ("cancelled", None)
    with in_s3.parts.database.read() as session:
        assert upload_rows.held_bytes(session, PROJECT) == 0


@pytest.mark.parametrize("what", ["parts", "import"])
def test_cancelled_while_the_store_is_slow(
    what: str, tmp_path: Path, s3: S3Server, s3_settings: dict[str, Any]
) -> None:
    """However long it takes to put a file there: who waits for that is told within two seconds, and nothing is kept."""
    body = content(2 * (8 << 20), 12)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights").write_bytes(body)
    given = {"upload_part_bytes": 4 * PART, "import_roots": (tmp_path / "models",)}
    with rig(tmp_path / "data", **given, **s3_settings) as made:
        if what == "parts":
            upload = in_parts(made, body)
            found = parts.complete(made.parts, PROJECT, upload.id)
            job_id = jobs.store_upload(made.parts, PROJECT, found, "tests").id
        else:
            job_id = made.job(Fetch(str(tmp_path / "models")))
        slow = s3.fail(seconds=4.0, method="PUT", key="/blobs/")
        with inside(made) as bare, ThreadPoolExecutor(1) as pool:
            blobs = open_store(made.settings, bare.watch.check)  # as a worker's
            context = replace(bare, store=replace(bare.store, blobs=blobs))
            context.watch.start()
            working = pool.submit(follow, context, job_id)
            until("something is put", lambda: slow.seen > 0)
            began = time.monotonic()
            jobs.cancel(made.parts, PROJECT, job_id, "tests")
            working.result(20)
            took = time.monotonic() - began
            context.watch.stop()
        assert made.row(job_id).state == "cancelled"
        assert took < 2
        assert not made.parts.blobs.holds(digest(body).removeprefix("sha256:"), len(body))


def test_a_conversion_over_quota_makes_nothing(made: Rig, material: Material) -> None:
    job_id = made.convert(made.checkpoint(material.folder), material.document)
    with made.parts.database.write() as session:
        project = session.get(Project, PROJECT)
        assert project is not None
        project.quota_bytes = upload_rows.held_bytes(session, PROJECT) + 1
    with inside(made) as context:
        follow(context, job_id)
    job = made.row(job_id)
    assert (job.state, job.error["code"], job.artifact_id) == ("error", "quota_exceeded", None)
