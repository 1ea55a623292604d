"""A small client of the HTTP API, for scripts, the demo and tests: push files, start jobs, wait, read reports."""

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from ninfer_core.errors import NinferError, Usage
from ninfer_core.io import CHUNK_BYTES

FINAL = frozenset(("passed", "failed", "incomplete", "error", "cancelled"))
_PIECE_BYTES = 1 << 20
_PLAIN = re.compile(r"[!-~]+", re.ASCII)

Document = dict[str, Any]
Progress = Callable[[Document], None]


class Refused(NinferError):
    """The service answered with a problem document; `problem` holds it."""

    code = "refused"

    def __init__(self, status: int, problem: Document) -> None:
        super().__init__(
            f"{status} {problem.get('code', '')}: {problem.get('detail') or problem.get('title')}"
        )
        self.status = status
        self.problem = problem

    @property
    def advice(self) -> str | None:
        """What the service says to do next; None where it says nothing."""
        if self.status == httpx.codes.UNAUTHORIZED:
            return "The token opens nothing there: it may have ended, or be of another service."
        help_ = self.problem.get("help")
        if self.problem.get("code") == "invalid_request" or not isinstance(help_, str):
            return None  # that speaks of the document, which is not what was typed
        return help_ or None


class Damaged(NinferError):
    """Content that arrived is not what was asked for."""

    code = "damaged"


class Client:
    """One service at `address`, one token."""

    def __init__(self, address: str, token: str, timeout_seconds: float = 60.0) -> None:
        """Raises: Usage for an address or a token that cannot be one; neither is said again."""
        self.address = _address(address)
        self.http = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {_token(token)}"},
            timeout=timeout_seconds,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def request(self, method: str, path: str, **more: Any) -> Document:
        """The JSON document of an answer. Raises: Refused, httpx.TransportError."""
        response = self.http.request(method, path, **more)
        if response.is_error:
            raise refused(response)
        document: Document = response.json()
        return document

    def push_file(self, path: Path) -> str:
        """The digest of a file that the project holds now; content that it held before is not sent again."""
        digest = _sha256(path)
        if self.http.head(f"/v1/blobs/{digest}").is_success:
            return digest
        declared = httpx.Headers(
            {"Repr-Digest": _repr_digest(digest), "Content-Length": str(path.stat().st_size)}
        )
        # The answer comes when all of it is on the disk, which may be long after the last byte was sent.
        patience = httpx.Timeout(60.0, read=3600.0)
        answer = self.request("POST", "/v1/blobs", content=_pieces(path), headers=declared, timeout=patience)
        return str(answer["digest"])

    def push_artifact(self, paths: Sequence[Path], kind: str = "ninfer") -> Document:
        """The artifact of these files, which keep their names."""
        files = [{"name": path.name, "digest": self.push_file(path)} for path in paths]
        return self.request("POST", "/v1/artifacts", json={"kind": kind, "files": files})

    def push_checkpoint(
        self, folder: Path, repository: str | None = None, revision: str | None = None
    ) -> Document:
        """The checkpoint of every file directly inside a folder, with what is claimed of its origin."""
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        claims = {"repository": repository, "revision": revision}
        files = [{"name": path.name, "digest": self.push_file(path)} for path in paths]
        return self.request(
            "POST",
            "/v1/checkpoints",
            json={"files": files, **{name: value for name, value in claims.items() if value is not None}},
        )

    def push_recipe(self, path: Path) -> Document:
        """The recipe in a file."""
        return self.request(
            "POST", "/v1/recipes", content=path.read_bytes(), headers={"Content-Type": "application/json"}
        )

    def start(self, job: Mapping[str, Any], idempotency_key: str | None = None) -> Document:
        """A new job, or the one that this key started before."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self.request("POST", "/v1/jobs", json=dict(job), headers=headers)

    def cancel(self, job: str) -> Document:
        """Ask for a job to stop; one that is final stays as it is."""
        return self.request("POST", f"/v1/jobs/{job}/cancel")

    def wait(
        self, job: str, progress: Progress = lambda _: None, timeout_seconds: float = 3600.0
    ) -> Document:
        """The job once its state is final; `progress` hears of it on the way. Raises: TimeoutError."""
        end = time.monotonic() + timeout_seconds
        while time.monotonic() < end:
            document = self.request("GET", f"/v1/jobs/{job}")
            progress(document)
            if document["state"] in FINAL:
                return document
            time.sleep(0.2)
        raise TimeoutError(f"job {job} is not done after {timeout_seconds:g} s")

    def report(self, run: str) -> Document:
        """The report of a run, as `ninfer-gate verify --json` writes it."""
        return self.request("GET", f"/v1/runs/{run}/report")

    def fetch(self, digest: str, path: Path) -> None:
        """Write the content of this digest to a new file, which is there only when it is whole and right.

        Raises: Refused, FileExistsError, Damaged.
        """
        partial = path.with_name(f".{path.name}.partial")
        found = hashlib.sha256()
        try:
            with self.http.stream("GET", f"/v1/blobs/{digest}") as response, partial.open("wb") as file:
                if response.is_error:
                    response.read()
                    raise refused(response)
                for piece in response.iter_bytes(_PIECE_BYTES):
                    found.update(piece)
                    file.write(piece)
            if f"sha256:{found.hexdigest()}" != digest:
                raise Damaged(f"what arrived has sha256 {found.hexdigest()}, not {digest}")
            os.link(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def items(self, path: str, **filters: str) -> Iterator[Document]:
        """Every item of a list, page by page."""
        parameters: dict[str, str] = dict(filters)
        while True:
            page = self.request("GET", path, params=parameters)
            yield from page["items"]
            if page.get("next") is None:
                return
            parameters["cursor"] = page["next"]


def refused(response: httpx.Response) -> Refused:
    """What an answer that is an error says."""
    return Refused(response.status_code, _problem(response))


def _address(given: str) -> str:
    address = given.strip().rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _PLAIN.fullmatch(address):
        raise Usage("the address of the service begins with http:// or https:// and names its host")
    if parts.username is not None or parts.password is not None:
        raise Usage(
            "the address of the service holds a user or a password; a token goes into NINFER_GATE_TOKEN"
        )
    return address


def _token(given: str) -> str:
    token = given.strip()  # a file that it was read from ends with a newline
    if not _PLAIN.fullmatch(token):
        raise Usage("the token is empty or holds characters that no token has; it is not shown here")
    return token


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _repr_digest(digest: str) -> str:
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest.removeprefix('sha256:'))).decode()}:"


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=CHUNK_BYTES) as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _problem(response: httpx.Response) -> Document:
    try:
        document = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        document = None
    return document if isinstance(document, dict) else {"title": response.reason_phrase, "code": "not_ours"}
