"""Sending files to a service over whatever link there is: nothing that is held is sent, and what broke off goes on.

Which upload to go on with is asked of the service, by the digest of the file: nothing is remembered here, so that a
killed push is continued by the same command, on this machine or another.
"""

import base64
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

import httpx

from ninfer_core.errors import NinferError
from service.client import Client, Document, Refused, refused
from service.links import ANSWER_SECONDS, PASSING, Link, Passing, Stopped, Unfinished, checked, code_of
from service.text import size

Via = Literal["auto", "tus", "parts"]

TUS: Final = {"Tus-Resumable": "1.0.0"}
_REQUEST_BYTES: Final = 256 << 20  # of one PATCH: a proxy between may have a bound
_PIECE_BYTES: Final = 1 << 20
_POLL_SECONDS: Final = 0.3
_STORE_SECONDS: Final = (
    3600.0  # a large file is hashed again after a crash of the service, or travels on to its store
)
_ELSEWHERE_SECONDS: Final = 60.0  # for which the machine that has an upload is looked for; it may be gone
_TURNS: Final = 3  # in which it is met, where a balancer has few machines
_LARGE_BYTES: Final = 1 << 30  # of a file whose hashing takes long enough to wonder
_ASK_SECONDS: Final = 5.0  # between two questions whether the service can store at all
_ANEW: Final = 3  # how often an upload that is gone is begun again


class Changed(NinferError):
    """The file is not what it was when it was hashed."""

    code = "changed"


class NotStored(NinferError):
    """All bytes are there and the service says that they are not what was declared, or that it can't store them."""

    code = "not_stored"


@dataclass(frozen=True, slots=True)
class Pushed:
    """A file whose content the project holds now."""

    path: Path
    digest: str
    bytes: int
    sent_bytes: int
    how: Literal["held", "tus", "parts"]


@dataclass(slots=True)
class How:
    """How files are sent. `progress` hears of bytes that need not be sent any more, also of a negative count."""

    via: Via = "auto"
    patience_seconds: float = 300.0  # without a byte getting on
    progress: Callable[[int], None] = lambda _: None
    told: Callable[[str], None] = lambda _: None  # of a link that broke, in words
    stop: threading.Event = field(default_factory=threading.Event)


def push(client: Client, path: Path, how: How) -> Pushed:
    """Raises: Refused, Unfinished, NotStored, Changed, Stopped, OSError."""
    return _Sending(client, path, how).run()


class _Sending:
    """One file on its way."""

    def __init__(self, client: Client, path: Path, how: How) -> None:
        self._path, self._how = path, how
        status = path.stat()
        self._size, self._changed_at = status.st_size, status.st_mtime_ns
        if self._size >= _LARGE_BYTES:  # no byte gets on meanwhile
            how.told(
                f"{path.name}: {size(self._size)} are hashed first, so that nothing is sent that is held"
            )
        self._digest = _digest(path, how.stop)
        self._shown = 0  # bytes that progress has been told
        self._confirmed = self._furthest = 0  # of this upload: bytes that are there, and that were sent once
        self._sent = 0
        self._left: set[str] = set()  # uploads of machines that are not met
        self._link = Link(client, path.name, how.patience_seconds, how.stop, how.told)

    def run(self) -> Pushed:
        """Until the project holds it."""
        if self._held():
            self._show(self._size)
            return self._pushed("held")
        if self._how.via != "tus" and (parts := self._link.patiently(self._begin_parts)) is not None:
            self._link.patiently(lambda: self._send_parts(parts))
            self._await_stored(parts["id"])
            return self._pushed("parts")
        for _ in range(_ANEW):
            upload = self._link.patiently(self._upload)
            self._confirmed = self._furthest = 0
            if self._link.patiently(lambda upload=upload: self._send(upload)):  # type: ignore[misc]  # bound now
                self._await_stored(upload)
                return self._pushed("tus")
        raise Unfinished(
            f"the upload of {self._path} was ended {_ANEW} times by the service or by somebody else"
        )

    def _pushed(self, how: Literal["held", "tus", "parts"]) -> Pushed:
        return Pushed(self._path, self._digest, self._size, self._sent, how)

    def _held(self) -> bool:
        answer = self._link.patiently(lambda: self._link.ask("HEAD", f"/v1/blobs/{self._digest}"))
        if answer.is_error and answer.status_code not in (404, 410):
            # Such an answer has no words; one to the same caller that has them says why.
            self._link.patiently(lambda: self._link.success("GET", "/v1/uploads", params={"limit": "1"}))
            raise refused(answer)
        return answer.is_success

    def _upload(self) -> str:
        """The id of the upload to go on with, or of a new one."""
        answer = self._link.success("GET", "/v1/uploads", params={"digest": self._digest})
        for known in answer.json()["items"]:
            fits = known["protocol"] == "tus" and known["bytes"] == self._size
            somewhere = known["offset"] is not None or known["state"] == "storing" or known["elsewhere"]
            if fits and somewhere and known["id"] not in self._left:
                return str(known["id"])
        said = {"filename": self._path.name, "sha256": self._digest.removeprefix("sha256:")}
        pairs = ",".join(f"{key} {_base64(value)}" for key, value in said.items())
        headers = {**TUS, "Upload-Length": str(self._size), "Upload-Metadata": pairs}
        made = self._link.success("POST", "/v1/uploads", headers=headers)
        return str(made.headers["Location"]).rsplit("/", 1)[-1]

    def _send(self, upload: str) -> bool:
        """Everything that the upload lacks; False when it is over, and has to be begun again."""
        try:
            return self._send_on(upload)
        except Passing as passing:
            if code_of(passing.answer) != "upload_elsewhere":
                raise
            patience = min(_ELSEWHERE_SECONDS, self._how.patience_seconds / 2)
            if self._link.idle_seconds < patience:
                raise
            self._how.told(f"{self._path.name}: the machine that has its upload is not met; it is begun anew")
            self._left.add(upload)  # another push may meet it yet
            return False

    def _send_on(self, upload: str) -> bool:
        path = f"/v1/uploads/{upload}"
        while True:
            try:
                answer = self._met(lambda: self._link.ask("HEAD", path, headers=TUS))
            except Passing:
                self._link.ask("GET", path)  # which says why, where the other has no words
                raise
            if answer.status_code in (404, 410):
                seen = self._link.ask("GET", path)
                if seen.is_success and seen.json()["state"] == "failed":
                    raise _not_stored(self._path, seen.json())
                self._link.ask("DELETE", path)  # its room is of use to the next one
                return False
            offset = int(checked(answer).headers["Upload-Offset"])
            if offset > self._confirmed:
                self._confirmed = self._furthest = offset
                self._link.got_on()
            self._show(offset)
            if offset >= self._size:
                return True
            stop = min(self._size, offset + _REQUEST_BYTES)
            answer = self._met(partial(self._patch, path, offset, stop))
            if answer.status_code not in (404, 409, 410):
                checked(answer)
                self._link.got_on()

    def _patch(self, path: str, offset: int, stop: int) -> httpx.Response:
        headers = {
            **TUS,
            "Content-Type": "application/offset+octet-stream",
            "Upload-Offset": str(offset),
            "Content-Length": str(stop - offset),
        }
        return self._link.ask("PATCH", path, content=self._pieces(offset, stop), headers=headers)

    def _met(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """What the machine that has the upload answers. A balancer that takes turns must not meet the others forever."""
        for _ in range(_TURNS):
            try:
                return ask()
            except Passing as passing:
                if passing.answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    raise
                self._link.wait(_POLL_SECONDS)
        return ask()

    def _begin_parts(self) -> Document | None:
        """An upload in parts, where the store takes them and the file is worth it; None where tus is the way."""
        offered = self._link.success("OPTIONS", "/v1/uploads").headers.get("Upload-Part-Bytes")
        if offered is None or (self._how.via == "auto" and self._size <= int(offered)) or not self._size:
            return None
        known = self._link.success("GET", "/v1/uploads", params={"digest": self._digest}).json()["items"]
        for upload in known:
            if upload["protocol"] == "parts" and upload["bytes"] == self._size:
                found: Document = upload
                return found
        sent = {"bytes": self._size, "digest": self._digest, "name": self._path.name}
        made: Document = self._link.success("POST", "/v1/uploads/parts", json=sent).json()
        return made

    def _send_parts(self, upload: Document) -> None:
        """Every part that is not there, and then the word that all are."""
        own = f"/v1/uploads/{upload['id']}"
        if self._link.success("GET", own).json()["state"] != "receiving":
            self._link.success(
                "POST", f"{own}/complete"
            )  # whoever said so may have died before there was a job for it
            return
        cursor: str | None = None
        done = 0
        while True:
            query = {"limit": "100", **({"cursor": cursor} if cursor is not None else {})}
            page = self._link.success("GET", f"{own}/parts", params=query).json()
            for part in page["items"]:
                at = (part["number"] - 1) * upload["part_bytes"]
                if not part["here"]:
                    self._show(at)
                    self._put(part["url"], at, at + part["bytes"])
                done += part["bytes"]
                self._show(done)
            cursor = page["next"]
            if cursor is None:
                break
        self._link.success("POST", f"{own}/complete")

    def _put(self, address: str, start: int, stop: int) -> None:
        # Not with the token: the address itself says what may be done, and the store is another host.
        headers = {"Content-Length": str(stop - start)}
        with httpx.Client(timeout=httpx.Timeout(60.0, read=ANSWER_SECONDS), trust_env=True) as store:
            answer = store.put(address, content=self._pieces(start, stop), headers=headers)
        if answer.status_code in PASSING or answer.status_code == httpx.codes.FORBIDDEN:
            raise Passing(
                answer
            )  # an address whose hour is over is forbidden: the next time there is a new one
        if answer.is_error:
            # What the store says may hold the address, which opens it: the number has to do.
            problem = {"code": "store_refused", "detail": "The store did not take a part."}
            raise Refused(answer.status_code, problem)
        self._link.got_on()

    def _await_stored(self, upload: str) -> None:
        began = asked_at = time.monotonic()
        while time.monotonic() < began + _STORE_SECONDS:
            seen: Document = self._link.patiently(
                lambda: self._link.success("GET", f"/v1/uploads/{upload}").json()
            )
            if seen["state"] == "stored":
                return
            if seen["state"] == "failed":
                raise _not_stored(self._path, seen)
            if time.monotonic() > asked_at + _ASK_SECONDS:
                if asked_at == began:
                    self._how.told(f"{self._path.name}: all of it is there; the service stores it")
                asked_at = time.monotonic()
                self._link.patiently(self._require_able)
            self._link.wait(_POLL_SECONDS)
        raise Unfinished(f"{self._path} is all there and still being stored; the same command asks again")

    def _require_able(self) -> None:
        """Storing may take long, and then nothing is amiss unless the service says so. Raises: Passing, while it does."""
        self._link.ask("GET", "/readyz")
        self._link.got_on()

    def _pieces(self, start: int, stop: int) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:
            file.seek(start)
            at = start
            while at < stop:
                if self._how.stop.is_set():
                    raise Stopped
                status = os.fstat(file.fileno())
                if (status.st_size, status.st_mtime_ns) != (self._size, self._changed_at):
                    raise Changed(f"{self._path} was changed while it was sent")
                piece = file.read(min(_PIECE_BYTES, stop - at))
                if not piece:
                    raise Changed(f"{self._path} became shorter while it was sent")
                yield piece
                at += len(piece)
                self._sent += len(piece)
                self._show(at)

    def _show(self, at: int) -> None:
        if at > self._furthest:
            # Bytes that are sent again get nothing on: else an answer that refuses them would be waited out forever.
            self._furthest = at
            self._link.got_on()
        self._how.progress(at - self._shown)
        self._shown = at


def _not_stored(path: Path, seen: Document) -> NotStored:
    return NotStored(f"{path} was sent and not stored: {seen['error']['detail']}")


def _base64(value: str) -> str:
    return base64.b64encode(value.encode(errors="replace")).decode()  # a name may be no UTF-8


def _digest(path: Path, stop: threading.Event) -> str:
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(8 << 20):
            if stop.is_set():
                raise Stopped
            found.update(piece)
    return f"sha256:{found.hexdigest()}"
