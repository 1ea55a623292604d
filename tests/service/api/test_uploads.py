"""Content on its way in: every size, broken connections, limits, other projects, memory."""

import base64
import hashlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service import auth
from service.api.upload import BATCH_BYTES
from service.records import content, tokens
from service.records.models import Project
from service.records.types import now
from tests.service.api.world import World, world


@pytest.mark.parametrize(
    "size", [0, 1, 65_537, BATCH_BYTES - 1, BATCH_BYTES, BATCH_BYTES + 1, 2 * BATCH_BYTES, 9 << 20]
)
def test_every_size(api: World, size: int) -> None:
    body = (f"{size}".encode() * (size // max(1, len(f"{size}")) + 1))[:size]
    sha256 = hashlib.sha256(body).hexdigest()
    announced = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"
    answer = api.call("POST", "/v1/blobs", content=body, headers={"Repr-Digest": announced})
    assert answer.status_code == 201, answer.text
    assert answer.json() == {"digest": f"sha256:{sha256}", "bytes": size}
    assert answer.headers["location"] == f"/v1/blobs/sha256:{sha256}"
    assert api.parts.blobs.path(sha256).read_bytes() == body
    again = api.call("POST", "/v1/blobs", content=body)
    assert (again.status_code, again.json()) == (200, answer.json())
    look = api.call("HEAD", answer.headers["location"])
    assert (look.status_code, look.headers["content-length"], look.content) == (200, str(size), b"")


def test_a_body_of_unknown_length_is_counted(api: World) -> None:
    def pieces(total: int) -> Iterator[bytes]:
        for _ in range(total >> 16):
            yield bytes(1 << 16)

    assert api.call("POST", "/v1/blobs", content=pieces(8 << 20)).status_code == 201
    before = api.kept()
    refused = api.call("POST", "/v1/blobs", content=pieces(16 << 20))
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert api.kept() == before


def test_a_declared_length_over_the_limit_is_refused_before_a_byte_is_sent(api: World) -> None:
    answer = raw(api, f"Content-Length: {(9 << 20) + 1}", "Expect: 100-continue")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


def test_nobody_may_send_a_byte_without_a_token(api: World) -> None:
    answer = raw(api, "Content-Length: 1000", "Expect: 100-continue", token="wrong")  # noqa: S106  not a secret
    assert answer.startswith(b"HTTP/1.1 401 ")  # and no 100 Continue came first
    assert b"www-authenticate: bearer" in answer.lower()


def test_a_refusal_reaches_a_client_that_keeps_sending(api: World) -> None:
    answer = api.http.post("/v1/blobs", content=bytes(8 << 20), headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401


def test_a_connection_that_breaks_off_leaves_nothing(api: World) -> None:
    before, lying = api.kept(), sorted((api.parts.blobs.root / "incoming").iterdir())
    with connection(api) as sender:
        head = request_head(api, f"Content-Length: {8 << 20}")
        sender.sendall(head + b"unfinished" * 600_000)
        time.sleep(0.2)
    time.sleep(0.3)
    assert api.kept() == before
    assert sorted((api.parts.blobs.root / "incoming").iterdir()) == lying
    with api.parts.database.read() as session:
        assert (
            content.find_blob(session, "default", hashlib.sha256(b"unfinished" * 600_000).hexdigest()) is None
        )


def test_a_wrong_digest_leaves_nothing(api: World) -> None:
    body = b"not what was announced"
    announced = base64.b64encode(hashlib.sha256(b"this").digest()).decode()
    for header in ("Repr-Digest", "Content-Digest"):
        answer = api.call("POST", "/v1/blobs", content=body, headers={header: f"sha-256=:{announced}:"})
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "digest_mismatch")
        assert problem["expected"] == f"sha256:{hashlib.sha256(b'this').hexdigest()}"
        assert problem["found"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
        assert problem["where"] == {"in": "header", "path": header}
    assert hashlib.sha256(body).hexdigest() not in api.kept()


def test_what_another_project_holds_is_not_known_here(fresh: World) -> None:
    with fresh.parts.database.write() as session:
        session.add(Project(id="other", name="other", created_at=now()))
        session.flush()
        how = {"name": "theirs", "scopes": "submit", "created_by": "tests"}
        tokens.add(session, "other", auth.hashed("other's"), "api", **how)
    theirs = {"Authorization": "Bearer other's"}
    body = b"known to one"
    path = f"/v1/blobs/{fresh.push(body)}"
    assert fresh.call("HEAD", path).status_code == 200
    assert fresh.call("HEAD", path, headers=theirs).status_code == 404
    assert fresh.call("POST", "/v1/blobs", content=body, headers=theirs).status_code == 201
    assert fresh.call("HEAD", path, headers=theirs).status_code == 200


def test_uploads_at_once(tmp_path: Path, sqlite_url: str) -> None:
    import concurrent.futures

    with world(tmp_path / "data", sqlite_url) as made, concurrent.futures.ThreadPoolExecutor(8) as pool:
        bodies = [bytes([number]) * (5 << 20) for number in range(12)]
        digests = list(pool.map(made.push, bodies))
        assert digests == [f"sha256:{hashlib.sha256(body).hexdigest()}" for body in bodies]
        assert made.kept() == {digest.removeprefix("sha256:") for digest in digests}


def test_one_file_is_an_artifact_at_once(api: World) -> None:
    body = b"NINFER of one file"
    path = "/v1/artifacts?kind=ninfer&name=one.ninfer"
    answer = api.call("POST", path, content=body)
    artifact = answer.json()
    assert answer.status_code == 201, artifact
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    assert (artifact["digest"], artifact["entry"], artifact["listing"]) == (digest, "one.ninfer", "pending")
    assert artifact["files"] == [{"name": "one.ninfer", "bytes": len(body), "digest": digest}]
    assert api.call("POST", path, content=body).status_code == 200
    listed = [args for id_, (_, args) in api.queue.enqueued.items() if id_ == f"list-{args[0]}"]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("kind=ninfer", "invalid_request"),
        ("name=x.ninfer", "invalid_request"),
        ("kind=gguf&name=x", "invalid_request"),
        ("kind=ninfer&name=a/b", "invalid_request"),
        ("kind=ninfer&name=..", "invalid_request"),
        ("kind=ninfer&name=", "invalid_request"),
        ("kind=safetensors&name=x.bin", "entry_unclear"),
        ("kind=ninfer&name=x.safetensors", "entry_unclear"),
    ],
)
def test_the_shortcut_refuses_names_before_the_bytes_come(api: World, query: str, code: str) -> None:
    before = api.kept()
    answer = api.call("POST", f"/v1/artifacts?{query}", content=b"bytes of " + query.encode())
    assert answer.json()["code"] == code
    assert api.kept() == before


def test_the_shortcut_takes_no_json(api: World) -> None:
    headers = {"Content-Type": "application/json"}
    answer = api.call("POST", "/v1/artifacts?kind=ninfer&name=a.ninfer", content=b"{}", headers=headers)
    assert answer.json()["code"] == "media_type_unsupported"


def connection(api: World) -> socket.socket:
    """A connection of our own."""
    host, port = api.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def request_head(api: World, *lines: str, token: str | None = None) -> bytes:
    """The head of an upload."""
    head = ["POST /v1/blobs HTTP/1.1", "Host: here", f"Authorization: Bearer {token or api.token}", *lines]
    return "\r\n".join([*head, "", ""]).encode()


def raw(api: World, *lines: str, token: str | None = None) -> bytes:
    """What comes back when only the head is sent."""
    with connection(api) as sender:
        sender.sendall(request_head(api, *lines, token=token))
        answer = b""
        while piece := sender.recv(65_536):
            answer += piece
        return answer
