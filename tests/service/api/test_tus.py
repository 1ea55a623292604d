"""tus 1.0.0: every way to say yes, every way to say no, and what lies on the disk meanwhile."""

import hashlib
import os
import random
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from tusclient.client import TusClient
from tusclient.exceptions import TusUploadFailed

from service.blobs import StoreFull
from service.errors import UploadBusy
from service.records import uploads
from service.records.models import DEFAULT_PROJECT
from service.records.types import now
from service.uploads import ledger
from service.uploads.clearing import clear
from service.uploads.files import Held
from service.uploads.receiving import Checksum, Receipt
from tests.service.api.tussing import (
    BYTES,
    VERSION,
    begun,
    checksum,
    create,
    ended,
    incoming,
    metadata,
    offset,
    patch,
    until,
)
from tests.service.api.world import World, world

MIB = 1 << 20
PATIENT: dict[str, Any] = {"idle_seconds": 30.0}
NO_ID = "0" * 32


def random_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_chunks_that_race_repeat_or_arrive_late(api: World) -> None:
    """B84, step by step."""
    first, second = random_bytes(4 * MIB, 1), random_bytes(4 * MIB, 2)
    rest = random_bytes(4 * MIB, 3)
    # 1: created with a digest, once it is known who wins; 2: two writers at once, with different bytes
    place = create(api, 8 * MIB)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda body: patch(api, place, 0, body), (first, second)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses in ([204, 409], [204, 423])
    won = first if answers[0].status_code == 204 else second
    refused = next(answer for answer in answers if answer.status_code != 204)
    assert refused.status_code == 423 or refused.headers["upload-offset"] == str(4 * MIB)
    assert incoming_bytes(api, place) == won
    # 3, 4: an old offset, a future one
    for wrong in (0, 5 * MIB):
        answer = patch(api, place, wrong, b"x")
        assert (answer.status_code, answer.json()["code"]) == (409, "upload_offset_conflict")
        assert answer.headers["upload-offset"] == str(4 * MIB)
    assert incoming_bytes(api, place) == won
    # 5, 6: the connection breaks in the middle of a chunk; the offset counts exactly the bytes kept
    begun(api, place, 4 * MIB, 4 * MIB, rest[:1_500_001]).close()
    at = until(lambda: offset(api, place), lambda found: found == 4 * MIB + 1_500_001)
    assert incoming_bytes(api, place) == won + rest[:1_500_001]
    # 7, 8: it goes on from there; the last chunk once more changes nothing
    last = rest[at - 4 * MIB :]
    answer = until(lambda: patch(api, place, at, last), lambda found: found.status_code != 423)
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(8 * MIB))
    assert patch(api, place, at, last).status_code == 409
    # 9: the whole is what was sent
    whole = won + rest
    seen = ended(api, place)
    assert (seen["state"], seen["digest"]) == ("stored", f"sha256:{sha256(whole)}")
    assert api.call("GET", f"/v1/blobs/{seen['digest']}").content == whole
    assert offset(api, place) == 8 * MIB


def test_a_wrong_digest_ends_the_upload_without_content(api: World) -> None:
    place = create(api, 3, sha256=sha256(b"another"), filename="a.ninfer")
    before = api.kept()
    answer = patch(api, place, 0, b"abc")
    assert (answer.status_code, answer.json()["code"]) == (422, "digest_mismatch")
    assert answer.json()["expected"] == f"sha256:{sha256(b'another')}"
    seen = api.call("GET", place).json()
    assert (seen["state"], seen["error"]["code"], seen["name"]) == ("failed", "digest_mismatch", "a.ninfer")
    assert api.kept() == before
    assert Path(place).name not in {path.name for path in incoming(api)}
    assert api.call("HEAD", place, headers=VERSION).status_code == 410
    assert patch(api, place, 3, b"").status_code == 410


def test_what_options_says(api: World) -> None:
    for path in ("/v1/uploads", f"/v1/uploads/{NO_ID}"):
        answer = api.call("OPTIONS", path)
        assert answer.status_code == 204
        assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
        said = set(answer.headers["tus-extension"].split(","))
        assert said == {"creation", "creation-with-upload", "checksum", "termination", "expiration"}
        assert answer.headers["tus-max-size"] == str(9 * MIB)
        assert answer.headers["tus-checksum-algorithm"].split(",") == ["sha256", "sha512", "sha1", "md5"]


def test_what_head_says(api: World) -> None:
    said = metadata(filename="weights.ninfer", anything="else")
    answer = api.call("POST", "/v1/uploads", headers={**VERSION, "Upload-Length": "7", **said})
    place = answer.headers["location"]
    assert answer.headers["upload-expires"].endswith(" GMT")
    patch(api, place, 0, b"abc")
    seen = api.call("HEAD", place, headers=VERSION)
    assert seen.headers["upload-offset"] == "3"
    assert seen.headers["upload-length"] == "7"
    assert seen.headers["upload-metadata"] == said["Upload-Metadata"]
    assert seen.headers["cache-control"] == "no-store"
    assert seen.headers["upload-expires"].endswith(" GMT")


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "sha1", "md5"])
def test_checksums(api: World, algorithm: str) -> None:
    place = create(api, 10)
    wrong = patch(api, place, 0, b"12345", **checksum(algorithm, b"54321"))
    assert (wrong.status_code, wrong.json()["code"]) == (460, "upload_checksum_mismatch")
    assert (offset(api, place), incoming_bytes(api, place)) == (0, b"")
    assert patch(api, place, 0, b"12345", **checksum(algorithm, b"12345")).status_code == 204
    assert patch(api, place, 5, b"67890", **checksum(algorithm, b"67890")).status_code == 204
    assert api.call("GET", place).json()["digest"] == f"sha256:{sha256(b'1234567890')}"


def test_nothing_counts_of_bytes_with_a_checksum_that_broke_off(api: World) -> None:
    place = create(api, 100)
    header = checksum("sha1", b"x" * 100)["Upload-Checksum"]
    sender = begun(api, place, 0, 100, b"")
    sender.close()
    # by hand: the checksum has to be in the head
    with httpx.Client(base_url=api.address, headers=api.http.headers) as client:
        headers = {**BYTES, "Upload-Offset": "0", "Upload-Checksum": header, "Content-Length": "100"}

        def half() -> Any:
            yield b"x" * 50
            raise RuntimeError("the link broke")

        with pytest.raises(RuntimeError):
            until(lambda: client.patch(place, content=half(), headers=headers), lambda _: False)
    answer = until(lambda: patch(api, place, 0, b"y" * 100), lambda found: found.status_code != 423)
    assert answer.status_code == 204
    assert api.parts.blobs.holds(sha256(b"y" * 100), 100)


def test_creation_with_the_first_bytes(api: World) -> None:
    answer = api.call("POST", "/v1/uploads", content=b"first", headers={**BYTES, "Upload-Length": "9"})
    assert (answer.status_code, answer.headers["upload-offset"]) == (201, "5")
    place = answer.headers["location"]
    assert patch(api, place, 5, b"last").status_code == 204
    assert api.call("GET", place).json()["state"] == "stored"
    whole = api.call("POST", "/v1/uploads", content=b"all of it", headers={**BYTES, "Upload-Length": "9"})
    assert whole.headers["upload-offset"] == "9"
    assert api.parts.blobs.holds(sha256(b"all of it"), 9)
    before = incoming(api)
    wrong = {**BYTES, "Upload-Length": "9", **checksum("md5", b"x")}
    assert api.call("POST", "/v1/uploads", content=b"first", headers=wrong).status_code == 460
    assert incoming(api) == before


def test_a_creation_that_comes_to_nothing_keeps_no_room(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_ones() -> set[str]:
        return {item["id"] for item in api.call("GET", "/v1/uploads?limit=100").json()["items"]}

    before = open_ones()
    with begun(api, "/v1/uploads", 0, 9, b"abc", "POST", **{"Upload-Length": "9"}):
        until(open_ones, lambda found: found != before)
    until(open_ones, lambda found: found == before)  # its sender went, and never heard where it is

    def full(*_: object) -> None:
        raise StoreFull("cannot store content: no space left")

    monkeypatch.setattr(ledger.files, "create", full)
    answer = api.call("POST", "/v1/uploads", headers={**VERSION, "Upload-Length": "9"})
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_failed")
    assert open_ones() == before


def test_nothing_at_all_is_content_too(api: World) -> None:
    place = create(api, 0)
    assert api.call("GET", place).json()["digest"] == f"sha256:{sha256(b'')}"


def test_termination(api: World) -> None:
    place = create(api, 10)
    patch(api, place, 0, b"abc")
    assert api.call("DELETE", place, headers=VERSION).status_code == 204
    assert Path(place).name not in {path.name for path in incoming(api)}
    for method in ("HEAD", "DELETE"):
        assert api.call(method, place, headers=VERSION).status_code == 404
    assert patch(api, place, 3, b"x").status_code == 404
    done = create(api, 3)
    patch(api, done, 0, b"xyz")
    assert api.call("DELETE", done).status_code == 204
    assert api.call("HEAD", f"/v1/blobs/sha256:{sha256(b'xyz')}").status_code == 200


def test_given_up_while_it_is_written(api: World) -> None:
    place = create(api, 100)
    with begun(api, place, 0, 100, b"a" * 99) as sender:
        until(lambda: is_held(api, place), bool)
        assert api.call("DELETE", place).status_code == 204
        sender.sendall(b"a")
        assert sender.recv(1000).split(b" ", 2)[1] in (b"410", b"408")  # 408 where this test was not quick
    assert not api.parts.blobs.holds(sha256(b"a" * 100), 100)


def test_a_method_in_a_header_is_the_method(api: World) -> None:
    place = create(api, 3)
    headers = {**BYTES, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    assert api.call("POST", place, content=b"abc", headers=headers).status_code == 204
    assert api.call("GET", place).json()["state"] == "stored"
    deleting = {**VERSION, "X-HTTP-Method-Override": "DELETE"}
    assert api.call("POST", place, headers=deleting).status_code == 204
    assert api.call("GET", place).status_code == 404
    assert api.call("POST", "/v1/blobs", content=b"x", headers=deleting).is_success  # nowhere else


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 412),
        ({"Tus-Resumable": ""}, 412),
        ({"Upload-Offset": "-1"}, 400),
        ({"Upload-Offset": "1e1"}, 400),
        ({"Upload-Offset": "9" * 30}, 400),
        ({"Content-Type": "application/octet-stream"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Upload-Checksum": "crc32 AAAA"}, 400),
        ({"Upload-Checksum": "sha1"}, 400),
        ({"Upload-Checksum": "sha1 AAAA"}, 400),
        ({"Upload-Checksum": "sha1 ????"}, 400),
    ],
)
def test_what_patch_refuses(api: World, headers: dict[str, str], status: int) -> None:
    place = create(api, 10)
    answer = patch(api, place, 0, b"abc", **headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["tus-resumable"] == "1.0.0"
    if status == 412:
        assert answer.headers["tus-version"] == "1.0.0"
    assert offset(api, place) == 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"Upload-Length": "-1"}, 400),
        ({"Upload-Length": "10", "Upload-Defer-Length": "1"}, 400),
        ({"Upload-Length": str(9 * MIB + 1)}, 413),
        ({"Upload-Length": "9" * 18}, 413),
        ({"Upload-Length": "10", "Tus-Resumable": "2.0.0"}, 412),
        ({"Upload-Length": "10", "Upload-Metadata": "a YQ==,a YQ=="}, 400),
        ({"Upload-Length": "10", "Upload-Metadata": "a not-base64"}, 400),
        ({"Upload-Length": "10", "Upload-Metadata": ","}, 400),
        ({"Upload-Length": "10", "Upload-Metadata": "sha256 YQ=="}, 400),
        ({"Upload-Length": "10", "Upload-Metadata": "filename /w=="}, 400),
        ({"Upload-Length": "10", "Upload-Metadata": f"a {'A' * 4096}"}, 400),
    ],
)
def test_what_creation_refuses(api: World, headers: dict[str, str], status: int) -> None:
    before = incoming(api)
    answer = api.call("POST", "/v1/uploads", headers={**VERSION, **headers})
    assert answer.status_code == status, answer.text
    assert answer.headers["tus-resumable"] == "1.0.0"
    assert incoming(api) == before


def test_more_than_was_announced_is_refused_and_nothing_of_it_kept(api: World) -> None:
    place = create(api, 10)
    patch(api, place, 0, b"12345")
    assert patch(api, place, 5, b"123456").status_code == 413
    pieces = iter([b"123", b"456"])  # of unknown length
    assert patch(api, place, 5, pieces).status_code == 413
    assert (offset(api, place), incoming_bytes(api, place)) == (5, b"12345")
    assert patch(api, place, 5, b"67890").status_code == 204


def test_bytes_of_nobody_never_reach_the_disk(api: World) -> None:
    place = create(api, 8 * MIB)
    before = {path.name: path.stat().st_size for path in incoming(api)}
    seen: set[int] = set()
    stop = threading.Event()
    folder = api.parts.blobs.scratch / "incoming"

    def look() -> None:
        while not stop.is_set():
            seen.update(entry.stat().st_size for entry in os.scandir(folder) if entry.name not in before)
            seen.add((folder / Path(place).name).stat().st_size)
            stop.wait(0.001)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for token in ("", "Bearer wrong", f"Bearer {api.token}x"):
            headers = {"Authorization": token, "Upload-Offset": "0", **BYTES}
            with httpx.Client(base_url=api.address, headers=headers, timeout=10) as nobody:
                assert nobody.patch(place, content=bytes(8 * MIB)).status_code == 401
                made = nobody.post("/v1/uploads", content=bytes(MIB), headers={"Upload-Length": str(MIB)})
                assert made.status_code == 401
    finally:
        stop.set()
        watcher.join()
    assert seen == {0}
    # What an earlier test began may be stored meanwhile: then its file goes.
    assert {path.name: path.stat().st_size for path in incoming(api)}.items() <= before.items()


def test_the_stock_client(api: World, tmp_path: Path) -> None:
    content = random_bytes(5 * MIB + 17, 4)
    path = tmp_path / "weights.ninfer"
    path.write_bytes(content)
    client = TusClient(f"{api.address}/v1/uploads", headers={"Authorization": f"Bearer {api.token}"})
    said = {"filename": path.name, "sha256": sha256(content)}
    with path.open("rb") as file:  # the client itself does not close what it opens
        up = client.uploader(file_stream=file, chunk_size=2 * MIB, metadata=said, upload_checksum=True)
        up.upload_chunk()
        assert up.offset == 2 * MIB
        again = client.uploader(file_stream=file, url=up.url, chunk_size=2 * MIB)
        assert again.offset == 2 * MIB  # asked of the server
        again.upload()
        assert api.call("GET", f"/v1/blobs/sha256:{sha256(content)}").content == content
        wrong = client.uploader(file_stream=file, metadata={"sha256": "0" * 64})
        with pytest.raises(TusUploadFailed) as caught:
            wrong.upload()
        assert caught.value.status_code == 422
    with BytesIO() as nothing:
        client.uploader(file_stream=nothing, metadata={}).upload()


def test_after_a_crash_the_rest_is_hashed_beside_the_last_request(api: World) -> None:
    content = random_bytes(3 * MIB, 5)
    place = create(api, len(content), sha256=sha256(content))
    patch(api, place, 0, content[:MIB])
    api.parts.storing.hashes.forget(Path(place).name)  # a process that died knows nothing
    assert patch(api, place, MIB, content[MIB:]).status_code == 204
    assert ended(api, place)["state"] == "stored"
    bad = create(api, 6, sha256=sha256(b"abcdef"))
    patch(api, bad, 0, b"abc")
    api.parts.storing.hashes.forget(Path(bad).name)
    assert patch(api, bad, 3, b"xyz").status_code == 204  # what is wrong is found afterwards
    seen = ended(api, bad)
    assert (seen["state"], seen["error"]["code"]) == ("failed", "digest_mismatch")
    assert not api.parts.blobs.holds(sha256(b"abcxyz"), 6)


def test_one_that_is_whole_and_forgotten_is_stored_when_it_is_asked_for(api: World) -> None:
    """A process died between the last byte and the row."""
    place = create(api, 4)
    (api.parts.blobs.scratch / "incoming" / Path(place).name).write_bytes(b"left")
    assert offset(api, place) == 4
    assert ended(api, place)["digest"] == f"sha256:{sha256(b'left')}"
    place = create(api, 5)
    file = api.parts.blobs.scratch / "incoming" / Path(place).name
    file.write_bytes(b"taken")
    api.parts.blobs.take(file, sha256(b"taken"))  # and another one between the store and the row
    assert ended(api, place)["state"] in ("receiving", "storing", "stored")
    assert ended(api, place)["digest"] == f"sha256:{sha256(b'taken')}"
    assert not file.exists()


def test_a_full_disk_is_said_and_the_upload_goes_on_later(api: World) -> None:
    content = random_bytes(6 * MIB, 6)
    place = create(api, len(content), sha256=sha256(content))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 * MIB, hard))
    try:
        answer = patch(api, place, 0, content)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_failed")
    at = offset(api, place)
    assert 4 * MIB <= at <= 5 * MIB
    assert patch(api, place, at, content[at:]).status_code == 204
    assert ended(api, place)["digest"] == f"sha256:{sha256(content)}"


def test_one_that_rested_too_long_is_gone(fresh: World) -> None:
    place = create(fresh, 10)
    patch(fresh, place, 0, b"abc")
    stored = create(fresh, 3)
    patch(fresh, stored, 0, b"abc")
    with fresh.parts.database.write() as session:
        for name in (Path(place).name, Path(stored).name):
            upload = uploads.locked(session, name)
            assert upload is not None
            upload.expires_at = now() - timedelta(seconds=1)
    assert fresh.call("HEAD", place, headers=VERSION).status_code == 410
    assert patch(fresh, place, 3, b"x").status_code == 410
    stray = fresh.parts.blobs.scratch / "incoming" / NO_ID
    stray.write_bytes(b"of a row that was never there")
    open_one = create(fresh, 10)
    clear(fresh.parts.database, fresh.parts.blobs, fresh.parts.settings)
    assert [path.name for path in incoming(fresh)] == [Path(open_one).name]
    assert fresh.call("GET", place).json()["error"]["code"] == "expired"
    assert fresh.call("GET", stored).json()["state"] == "stored"
    late = fresh.parts.settings.model_copy(update={"keep_uploads_seconds": 0.000001})
    clear(fresh.parts.database, fresh.parts.blobs, late)
    assert fresh.call("GET", stored).status_code == 404
    assert fresh.call("GET", open_one).status_code == 200


def test_lists(fresh: World) -> None:
    content = random_bytes(10, 7)
    places = [create(fresh, 10, sha256=sha256(content)) for _ in range(3)]
    patch(fresh, places[0], 0, content)
    patch(fresh, places[1], 0, content[:4])
    found = fresh.call("GET", "/v1/uploads").json()["items"]
    assert [(item["links"]["self"], item["offset"]) for item in found] == [(places[2], 0), (places[1], 4)]
    page = fresh.call("GET", "/v1/uploads?limit=1").json()
    assert fresh.call("GET", f"/v1/uploads?cursor={page['next']}").json()["items"][0]["id"] in places[1]
    done = fresh.call("GET", "/v1/uploads?state=stored").json()["items"]
    assert [item["links"]["content"] for item in done] == [f"/v1/blobs/sha256:{sha256(content)}"]
    query = f"/v1/uploads?digest=sha256:{sha256(content)}"
    assert len(fresh.call("GET", query).json()["items"]) == 2
    assert fresh.call("GET", f"/v1/uploads?digest=sha256:{'0' * 64}").json()["items"] == []


def test_several_processes_on_one_folder(tmp_path: Path, sqlite_url: str) -> None:
    """The lock is the kernel's: what one process hashed, another goes on with, and then all of it is hashed again."""
    content, data = random_bytes(2 * MIB, 8), tmp_path / "data"
    with world(data, sqlite_url, **PATIENT) as one, world(data, sqlite_url, **PATIENT) as other:
        one.token = other.token  # made anew by the second one
        one.http.headers["Authorization"] = other.http.headers["Authorization"]
        place = create(one, len(content))
        with begun(one, place, 0, len(content), content[:100]):
            until(lambda: is_held(one, place), bool)
            for writer in (one, other):
                busy = patch(writer, place, 0, content)
                assert (busy.status_code, busy.json()["code"]) == (423, "upload_busy")
                assert busy.headers["tus-resumable"] == "1.0.0"
        until(lambda: offset(other, place), lambda found: found == 100)
        until(lambda: is_held(one, place), lambda held: not held)
        assert patch(other, place, 100, content[100:MIB]).status_code == 204
        assert patch(one, place, MIB, content[MIB:]).status_code == 204
        assert ended(one, place)["digest"] == f"sha256:{sha256(content)}"


def test_machines_that_share_no_folder(tmp_path: Path, sqlite_url: str) -> None:
    """Only the machine that has the file knows how far it is; another one says so, and takes nothing for lost."""
    with world(tmp_path / "one", sqlite_url) as one, world(tmp_path / "other", sqlite_url) as other:
        one.http.headers["Authorization"] = other.http.headers["Authorization"]
        place = create(one, 10)
        patch(one, place, 0, b"abcd")
        for answer in (other.call("HEAD", place, headers=VERSION), patch(other, place, 4, b"x")):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert other.call("GET", place).json()["code"] == "upload_elsewhere"
        clear(other.parts.database, other.parts.blobs, other.parts.settings)
        assert offset(one, place) == 4
        listed = other.call("GET", "/v1/uploads").json()["items"]
        assert [(item["offset"], item["elsewhere"]) for item in listed] == [(None, True)]
        with one.parts.database.write() as session:
            upload = uploads.locked(session, Path(place).name)
            assert upload is not None
            upload.state = "storing"  # it has all of its bytes, wherever they are
        assert offset(other, place) == 10
        assert other.call("GET", place).json()["state"] == "storing"
        with one.parts.database.write() as session:
            upload = uploads.locked(session, Path(place).name)
            assert upload is not None
            upload.expires_at = now() - timedelta(seconds=1)
        clear(other.parts.database, other.parts.blobs, other.parts.settings)
        assert other.call("GET", place).json()["error"]["code"] == "expired"
        assert len(incoming(one)) == 1
        clear(one.parts.database, one.parts.blobs, one.parts.settings)
        assert incoming(one) == []


def is_held(api: World, place: str) -> bool:
    """Whether somebody writes to the file."""
    try:
        Held(api.parts.blobs.scratch, Path(place).name, write=False).close()
    except UploadBusy:
        return True
    return False


def incoming_bytes(api: World, place: str) -> bytes:
    """What has come in of an upload."""
    return (api.parts.blobs.scratch / "incoming" / Path(place).name).read_bytes()


def test_a_process_that_dies_inside_a_request_with_a_checksum_leaves_nothing_of_it(api: World) -> None:
    place = create(api, 10)
    patch(api, place, 0, b"abc")
    upload = ledger.find(api.parts, DEFAULT_PROJECT, Path(place).name)
    receipt = Receipt(api.parts, upload, 3, Checksum("md5", hashlib.md5(b"defgh").digest()))  # noqa: S324  no secret
    receipt.absorb(memoryview(b"defgh"))
    assert incoming_bytes(api, place) == b"abc"  # all that another process would find
    receipt.close()
    assert offset(api, place) == 3
