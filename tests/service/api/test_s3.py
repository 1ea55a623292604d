"""The API of a service whose content lies in a bucket, while that answers and while it does not."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.blobs import bucket as buckets
from service.records import content
from service.records.models import DEFAULT_PROJECT
from tests.s3 import S3Server
from tests.service.api.world import World, world

CONTENT = b"weights" * 100


@pytest.fixture
def made(
    tmp_path: Path, sqlite_url: str, s3_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A service with little patience."""
    monkeypatch.setattr(buckets, "_RETRIES", {"max_retries": 1})
    with world(tmp_path / "data", sqlite_url, **s3_settings) as service:
        yield service


def test_content_in_a_bucket(made: World, s3: S3Server) -> None:
    digest = made.push(CONTENT)
    path = f"/v1/blobs/{digest}"
    assert made.call("HEAD", path).headers["content-length"] == str(len(CONTENT))
    assert made.call("GET", path).content == CONTENT
    part = made.call("GET", path, headers={"Range": "bytes=7-20"})
    assert (part.status_code, part.content) == (206, CONTENT[7:21])
    assert made.call("GET", "/readyz").status_code == 200

    s3.fail(status=503)
    for method, where in (("GET", path), ("HEAD", path)):
        answer = made.call(method, where)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    answer = made.call("POST", "/v1/blobs", content=b"more")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    for text in (answer.text, made.call("GET", "/readyz").text):
        assert "127.0.0.1" not in text
        assert "bucket" not in text
    s3.mend()
    assert made.call("POST", "/v1/blobs", content=b"more").status_code == 201

    s3.fail(status=503, method="GET", key="/blobs/")  # after it was looked for
    answer = made.call("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    s3.mend()
    s3.fail(status=404, method="GET", key="/blobs/")
    answer = made.call("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (410, "content_lost")


def test_many_files_are_named_at_once(made: World, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked before the transaction, about many at a time: nobody else waits for it in order to write."""
    one, count = made.push(CONTENT), 40
    shas = [f"{number:064x}" for number in range(count)]
    with made.parts.database.write() as session:
        for sha256 in shas:
            content.add_blob(session, DEFAULT_PROJECT, sha256, len(CONTENT))
    store: Any = made.parts.blobs
    key = store.key(one.removeprefix("sha256:"))
    monkeypatch.setattr(store, "key", lambda sha256: key if sha256 in shas else f"blobs/{sha256}")
    s3.fail(seconds=0.2, times=count, method="HEAD", key="/blobs/")
    files = [{"name": f"{sha256}.bin", "digest": f"sha256:{sha256}"} for sha256 in shas]
    with made.with_settings(max_files=count), ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        answer = pool.submit(made.call, "POST", "/v1/checkpoints", json={"files": files})
        waited = 0.0
        while not answer.done():
            asked = time.monotonic()
            with made.parts.database.write() as session:
                content.add_blob(session, DEFAULT_PROJECT, shas[0], len(CONTENT))
            waited = max(waited, time.monotonic() - asked)
            time.sleep(0.01)
        took = time.monotonic() - began
    assert answer.result().status_code == 201, answer.result().text
    assert took < count * 0.2
    assert waited < took / 2


def test_what_is_asked_of_content_is_not_answered_without_it(made: World, s3: S3Server) -> None:
    digest = made.push(CONTENT)
    artifact = {"kind": "ninfer", "files": [{"name": "a.ninfer", "digest": digest}]}
    made.call("POST", "/v1/artifacts", json=artifact).raise_for_status()
    asked = {"type": "verify", "artifact": digest, "target": "auto"}
    s3.fail(status=500, key="/blobs/")
    answer = made.call("POST", "/v1/jobs", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert made.call("GET", "/v1/jobs").json()["items"] == []
    s3.mend()
    assert made.call("POST", "/v1/jobs", json=asked).status_code == 202
