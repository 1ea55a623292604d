"""Uploads in parts over the API, and `push` by them: the store is a bucket, and a worker makes content of the parts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.api import examples
from service.client import Client
from service.pushing import How, push
from tests.s3 import S3Server
from tests.service.api.provocations import NO_DIGEST
from tests.service.api.test_push import digest, file, held
from tests.service.api.tussing import ended
from tests.service.api.world import World, world
from tests.worker.inside import follow, inside
from tests.worker.rig import Rig

MIB = 1 << 20


@pytest.fixture
def in_s3(tmp_path: Path, sqlite_url: str, s3_settings: dict[str, Any]) -> Iterator[World]:
    more = {"upload_part_bytes": 5 * MIB, "max_blob_bytes": 32 * MIB, "idle_seconds": 10.0}
    with world(tmp_path / "data", sqlite_url, **{**more, **s3_settings}) as made:
        yield made


@contextmanager
def working(made: World) -> Iterator[None]:
    """What the queue remembers is done in this process."""
    stop, failed = threading.Event(), list[Exception]()

    def run() -> None:
        done: set[str] = set()
        with inside(Rig(made.parts.settings, made.parts, made.queue)) as context:  # type: ignore[arg-type]  # a twin
            while not stop.wait(0.02):
                for job_id, (workflow, _) in list(made.queue.enqueued.items()):
                    if workflow == "import" and job_id not in done:
                        done.add(job_id)
                        try:
                            follow(context, job_id)
                        except Exception as error:  # noqa: BLE001  told by the thread that waits
                            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed


def test_what_a_client_does(in_s3: World) -> None:
    offered = in_s3.call("OPTIONS", "/v1/uploads").headers
    assert offered["upload-part-bytes"] == str(5 * MIB)
    made = in_s3.call("POST", "/v1/uploads/parts", json=examples.PARTS)
    assert made.status_code == 201, made.text
    own = made.headers["location"]
    assert (made.json()["protocol"], made.json()["offset"]) == ("parts", None)
    page = in_s3.call("GET", f"{own}/parts")
    assert page.status_code == 200, page.text
    part = page.json()["items"][0]
    assert (part["number"], part["bytes"], part["here"]) == (1, len(examples.CONTENT), False)
    early = in_s3.call("POST", f"{own}/complete")
    assert (early.status_code, early.json()["code"]) == (409, "upload_conflict")
    httpx.put(part["url"], content=examples.CONTENT).raise_for_status()
    assert in_s3.call("GET", f"{own}/parts").json()["items"][0] == {**part, "here": True, "url": None}
    for _ in range(2):
        complete = in_s3.call("POST", f"{own}/complete")
        assert (complete.status_code, complete.json()["state"]) == (202, "storing")
    with working(in_s3):
        seen = ended(in_s3, own, 30)
    assert (seen["state"], seen["error"]) == ("stored", None)
    assert in_s3.call("GET", seen["links"]["content"]).text == examples.CONTENT
    found = in_s3.call("GET", "/v1/imports").json()["items"]
    assert [item["files"][0]["digest"] for item in found] == [examples.CONTENT_DIGEST]
    assert in_s3.call("GET", f"/v1/jobs/{found[0]['job']}").json()["import"] == found[0]["id"]


def test_push_by_parts(in_s3: World, s3: S3Server, tmp_path: Path) -> None:
    path = file(tmp_path, 11 * MIB, 1)
    with Client(in_s3.address, in_s3.token) as client, working(in_s3):
        s3.fail(times=2, method="PUT", key="/uploads/", status=503)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("service.links._SOONEST", 0.01)
            pushed = push(client, path, How())
        assert pushed.how == "parts"
        assert held(in_s3, path)
        small = file(tmp_path, 1_000, 2, "small")
        assert push(client, small, How()).how == "tus"  # through the service, and then on to the store
        assert held(in_s3, small)


def test_bytes_that_are_not_what_was_declared(in_s3: World) -> None:
    sent = {**examples.PARTS, "digest": NO_DIGEST}
    own = in_s3.call("POST", "/v1/uploads/parts", json=sent).headers["location"]
    httpx.put(in_s3.call("GET", f"{own}/parts").json()["items"][0]["url"], content=examples.CONTENT)
    with working(in_s3):
        in_s3.call("POST", f"{own}/complete")
        seen = ended(in_s3, own, 30)
    assert (seen["state"], seen["error"]["code"]) == ("failed", "digest_mismatch")
    assert in_s3.call("HEAD", f"/v1/blobs/{NO_DIGEST}").status_code == 404


def test_a_store_on_disk_takes_no_parts(tmp_path: Path, sqlite_url: str) -> None:
    path = file(tmp_path, 3 * MIB, 3)
    with world(tmp_path / "data", sqlite_url) as made, Client(made.address, made.token) as client:
        assert "upload-part-bytes" not in made.call("OPTIONS", "/v1/uploads").headers
        assert push(client, path, How(via="parts")).how == "tus"
        assert digest(path).removeprefix("sha256:") in made.kept()
