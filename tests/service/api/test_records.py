"""The provenance record of a conversion over HTTP: the stored bytes, with their digest as the entity tag."""

import hashlib

from service.api import examples
from tests.service.api.world import RECORD, World

ADDRESS = f"/v1/conversions/{examples.CONVERSION_ID}/provenance"


def test_the_stored_bytes(api: World) -> None:
    answer = api.call("GET", ADDRESS)
    assert answer.content == RECORD.encode()
    assert answer.headers["content-type"] == "application/json"
    digest = f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    assert answer.headers["etag"] == f'"{digest}"'
    assert api.call("GET", ADDRESS, headers={"If-None-Match": f'"{digest}"'}).status_code == 304
    assert api.call("GET", f"/v1/blobs/{digest}").content == answer.content
    head = api.call("HEAD", ADDRESS)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "content-type", "content-length", "cache-control"):
        assert head.headers[name] == answer.headers.get(name, str(len(RECORD))), name


def test_a_record_that_is_lost(api: World) -> None:
    path = api.parts.blobs.path(hashlib.sha256(RECORD.encode()).hexdigest())
    aside = path.with_suffix(".aside")
    path.rename(aside)
    try:
        answer = api.call("GET", ADDRESS)
    finally:
        aside.rename(path)
    assert (answer.status_code, answer.json()["code"]) == (409, "no_report")
    assert answer.json()["detail"] == "The record is no longer in the content store."
