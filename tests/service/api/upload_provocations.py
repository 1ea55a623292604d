"""How to get every error that the OpenAPI document declares of uploads and imports."""

import resource
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from service.api import examples
from service.blobs import open_store
from service.records import uploads
from service.records.models import DEFAULT_PROJECT, Project
from service.uploads import ledger
from tests.service.api.tussing import BYTES, VERSION, create, patch
from tests.service.api.world import World

Provocation = Callable[[World], httpx.Response]

NO_ID: Final = "0" * 32
_NO_SUCH: Final = "a file that nobody has sent before"
ONE: Final = "/v1/uploads/{upload}"
PARTS: Final = "/v1/uploads/{upload}/parts"
COMPLETE: Final = "/v1/uploads/{upload}/complete"


def _begin(content: bytes = b"", **headers: str) -> Provocation:
    given = {**VERSION, "Upload-Length": "10", **({"Content-Type": BYTES["Content-Type"]} if content else {})}
    return lambda api: api.call("POST", "/v1/uploads", content=content, headers={**given, **headers})


begin_upload: Final = _begin()


@contextmanager
def _quota(api: World, size: int) -> Iterator[None]:
    """A bound of the project, for a moment."""

    def bound(value: int | None) -> None:
        with api.parts.database.write() as session:
            project = session.get(Project, DEFAULT_PROJECT)
            assert project is not None
            project.quota_bytes = value

    bound(size)
    try:
        yield
    finally:
        bound(None)


def over_quota(send: Provocation) -> Provocation:
    """The same, where the project may hold one byte."""

    def provoke(api: World) -> httpx.Response:
        with _quota(api, 1):
            return send(api)

    return provoke


def _tighter_meanwhile(api: World) -> httpx.Response:
    place = create(api, 13)
    with _quota(api, 1):
        return patch(api, place, 0, b"never seen it")


def _patch(offset: int = 0, body: bytes = b"x", **headers: str) -> Provocation:
    return lambda api: patch(api, create(api, 10), offset, body, **headers)


def _file(api: World, place: str) -> Path:
    return api.parts.blobs.scratch / "incoming" / Path(place).name


def _patch_of_nothing(api: World) -> httpx.Response:
    place = create(api, 10)
    _file(api, place).unlink()
    return patch(api, place, 0, b"x")


def _full_disk(api: World) -> httpx.Response:
    """Files of this process, which is the service's too, end at five megabytes."""
    place = create(api, 6 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 << 20, hard))
    try:
        return patch(api, place, 0, bytes(6 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _busy(api: World) -> httpx.Response:
    place = create(api, 10)
    with uploads_held(api, place):
        return patch(api, place, 0, b"x")


@contextmanager
def uploads_held(api: World, place: str) -> Iterator[None]:
    """Somebody writes."""
    from service.uploads.files import Held

    with Held(api.parts.blobs.scratch, Path(place).name, write=True):
        yield


def _wrong_digest(api: World) -> httpx.Response:
    return patch(api, create(api, 3, sha256="0" * 64), 0, b"abc")


def _paused(method: str, place: Callable[[World], str], **headers: str) -> Provocation:
    def provoke(api: World) -> httpx.Response:
        at = urlsplit(api.address)
        path = place(api)
        with closing(HTTPConnection(at.hostname or "", at.port, timeout=30)) as connection:
            connection.putrequest(method, path)
            connection.putheader("Authorization", f"Bearer {api.token}")
            for name, value in {**BYTES, **headers, "Content-Length": "10"}.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(b" ")
            answer = connection.getresponse()
            return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())

    return provoke


def _in_parts(api: World, failed: bool = False) -> str:
    """An upload in parts, as a store in S3 has them."""
    announced = ledger.Announced(20, "a", examples.CONTENT_DIGEST.removeprefix("sha256:"))
    upload = ledger.begin(api.parts, DEFAULT_PROJECT, "somebody", announced, part_bytes=10)
    if failed:
        with api.parts.database.write() as session:
            found = uploads.locked(session, upload.id)
            assert found is not None
            uploads.end(found, "failed", error={"code": "expired", "detail": "It expired."})
    return f"/v1/uploads/{upload.id}"


def _of_parts(method: str, suffix: str = "", failed: bool = False) -> Provocation:
    return lambda api: api.call(method, _in_parts(api, failed) + suffix, headers=VERSION)


def _patch_of_parts(api: World) -> httpx.Response:
    return patch(api, _in_parts(api), 0, b"x")


def _of_tus(method: str, suffix: str) -> Provocation:
    return lambda api: api.call(method, create(api, 10) + suffix)


def _gone(api: World) -> httpx.Response:
    place = create(api, 10)
    _file(api, place).unlink()
    return api.call("HEAD", place, headers=VERSION)


def _elsewhere(method: str) -> Provocation:
    """Of an upload whose file is on another machine."""

    def provoke(api: World) -> httpx.Response:
        place = create(api, 10)
        with api.parts.database.write() as session:
            upload = uploads.locked(session, Path(place).name)
            assert upload is not None
            upload.place = NO_ID
        given = {**BYTES, "Upload-Offset": "0"} if method == "PATCH" else VERSION
        return api.call(method, place, headers=given, content=b"x" if method == "PATCH" else None)

    return provoke


def _one_too_many(begin: Provocation) -> Provocation:
    """Where one upload may be open, and is."""

    def provoke(api: World) -> httpx.Response:
        create(api, 10)
        changed = api.parts.settings.model_copy(update={"max_open_uploads": 1})
        before = api.app.state.parts
        api.app.state.parts = replace(before, settings=changed)
        try:
            return begin(api)
        finally:
            api.app.state.parts = before

    return provoke


def _full_in_s3(api: World) -> httpx.Response:
    """The quota is looked at before anything is asked of the store, which is not there."""
    return over_quota(_parts_in_s3)(api)


def _parts_in_s3(api: World) -> httpx.Response:
    """Parts, where the store takes them."""
    settings = api.parts.settings.model_copy(
        update={"store": "s3://not-there/gate", "s3_endpoint": "http://127.0.0.1:9"}
    )
    before = api.app.state.parts
    api.app.state.parts = replace(before, blobs=open_store(settings))
    try:
        return api.call("POST", "/v1/uploads/parts", json=examples.PARTS)
    finally:
        api.app.state.parts = before


def _named(
    method: str, path: str, code: str, headers: dict[str, str] | None = None
) -> dict[Any, Provocation]:
    """Of an id that nothing has, and of a word that is no id."""
    begin, _, rest = path.partition("{")
    end = rest.partition("}")[2]
    given = {"headers": headers or {}}
    return {
        (method, path, code): lambda api: api.call(method.upper(), f"{begin}{NO_ID}{end}", **given),
        (method, path, "invalid_request"): lambda api: api.call(
            method.upper(), f"{begin}nothing{end}", **given
        ),
    }


_PATCHING: Final = {**BYTES, "Upload-Offset": "0"}

UPLOADS: Final[dict[tuple[str, str, str], Provocation]] = {
    ("post", "/v1/uploads", "tus_version_unsupported"): _begin(**{"Tus-Resumable": "0.2"}),
    ("post", "/v1/uploads", "upload_header_malformed"): _begin(**{"Upload-Length": "ten"}),
    ("post", "/v1/uploads", "media_type_unsupported"): _begin(b"abc", **{"Content-Type": "text/plain"}),
    ("post", "/v1/uploads", "body_too_large"): _begin(**{"Upload-Length": str(1 << 40)}),
    ("post", "/v1/uploads", "quota_exceeded"): over_quota(_begin()),
    ("post", "/v1/uploads", "too_many_uploads"): _one_too_many(_begin()),
    ("post", "/v1/uploads/parts", "too_many_uploads"): _one_too_many(_parts_in_s3),
    ("post", "/v1/uploads", "upload_checksum_mismatch"): _begin(
        b"x", **{"Upload-Checksum": examples.UPLOAD_CHECKSUM}
    ),
    ("post", "/v1/uploads", "digest_mismatch"): _begin(
        b"0123456789", **{"Upload-Metadata": examples.UPLOAD_METADATA}
    ),
    ("post", "/v1/uploads", "too_slow"): _paused("POST", lambda _: "/v1/uploads", **{"Upload-Length": "10"}),
    **_named("patch", ONE, "upload_not_found", _PATCHING),
    ("patch", ONE, "tus_version_unsupported"): _patch(**{"Tus-Resumable": "0.2"}),
    ("patch", ONE, "upload_header_malformed"): _patch(**{"Upload-Offset": "x"}),
    ("patch", ONE, "media_type_unsupported"): _patch(**{"Content-Type": "text/plain"}),
    ("patch", ONE, "upload_gone"): _patch_of_nothing,
    ("patch", ONE, "upload_busy"): _busy,
    ("patch", ONE, "upload_offset_conflict"): _patch(5),
    ("patch", ONE, "upload_conflict"): _patch_of_parts,
    ("patch", ONE, "body_too_large"): _patch(0, b"01234567890"),
    ("patch", ONE, "quota_exceeded"): _tighter_meanwhile,
    ("patch", ONE, "upload_checksum_mismatch"): _patch(**{"Upload-Checksum": examples.UPLOAD_CHECKSUM}),
    ("patch", ONE, "digest_mismatch"): _wrong_digest,
    ("patch", ONE, "storage_failed"): _full_disk,
    ("patch", ONE, "too_slow"): _paused("PATCH", lambda api: create(api, 10), **{"Upload-Offset": "0"}),
    **_named("head", ONE, "upload_not_found", VERSION),
    ("head", ONE, "tus_version_unsupported"): lambda api: api.call("HEAD", create(api, 10)),
    ("head", ONE, "upload_gone"): _gone,
    **{(method.lower(), ONE, "upload_elsewhere"): _elsewhere(method) for method in ("HEAD", "GET", "PATCH")},
    ("head", ONE, "upload_conflict"): _of_parts("HEAD"),
    **_named("get", ONE, "upload_not_found"),
    **_named("delete", ONE, "upload_not_found"),
    ("delete", ONE, "tus_version_unsupported"): lambda api: api.call(
        "DELETE", create(api, 10), headers={"Tus-Resumable": "0.2"}
    ),
    ("options", ONE, "invalid_request"): lambda api: api.call("OPTIONS", "/v1/uploads/nothing"),
    ("post", "/v1/uploads/parts", "parts_unavailable"): lambda api: api.call(
        "POST", "/v1/uploads/parts", json=examples.PARTS
    ),
    ("post", "/v1/uploads/parts", "quota_exceeded"): _full_in_s3,
    ("post", "/v1/uploads/parts", "too_slow"): _paused(
        "POST", lambda _: "/v1/uploads/parts", **{"Content-Type": "application/json"}
    ),
    **{
        key: provoke
        for method, path, suffix in (("get", PARTS, "/parts"), ("post", COMPLETE, "/complete"))
        for key, provoke in {
            **_named(method, path, "upload_not_found"),
            (method, path, "upload_gone"): _of_parts(method.upper(), suffix, failed=True),
            (method, path, "upload_conflict"): _of_tus(method.upper(), suffix),
            (method, path, "parts_unavailable"): _of_parts(method.upper(), suffix),
        }.items()
    },
    **_named("get", "/v1/imports/{id}", "import_not_found"),
    ("post", "/v1/jobs", "import_refused"): lambda api: api.call(
        "POST", "/v1/jobs", json={"type": "import", "source": "/etc/passwd"}
    ),
    ("post", "/v1/blobs", "quota_exceeded"): over_quota(
        lambda api: api.call("POST", "/v1/blobs", content=_NO_SUCH)
    ),
    ("post", "/v1/artifacts", "quota_exceeded"): over_quota(
        partial(World.call, method="POST", path="/v1/artifacts?kind=ninfer&name=a.ninfer", content=_NO_SUCH)
    ),
}
