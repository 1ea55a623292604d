"""`ninfer-gate push`: files to a service, several at a time, then an artifact or a checkpoint of them."""

import stat
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ninfer_core.errors import CannotRead, Usage
from service import text
from service.cli.failures import Task, guarded, tell
from service.cli.output import PUSH_SCHEMA, JsonTarget, json_target, no_document, not_empty
from service.cli.progress import watching
from service.cli.remote import connected

if TYPE_CHECKING:
    from service.client import Client, Document
    from service.pushing import How, Pushed

EXIT_CODES = {"passed": 0, "failed": 1, "error": 2, "incomplete": 3, "cancelled": 2}
_KEPT = "What was sent stays: the same command goes on where this stopped."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    paths: Sequence[str]
    kind: Literal["ninfer", "safetensors"] | None
    checkpoint: bool
    repository: str | None
    revision: str | None
    verify: bool
    parallel: int
    via: Literal["auto", "tus", "parts"]
    patience_seconds: float
    address: str | None
    json: str | None


@dataclass(frozen=True, slots=True)
class _Ahead:
    bytes: int


def push(request: Request) -> int:
    """The exit code: 0, or what the verification says."""
    failed = partial(no_document, PUSH_SCHEMA)
    stdout = JsonTarget(None) if request.json == "-" else None
    task = Task("push", "pushing", _KEPT, failed, stdout)

    def work() -> int:
        _require_sense(request)
        files = _files(request.paths, named=request.kind is not None or request.checkpoint)
        target = json_target(request.json, files)
        return guarded(replace(task, target=target), lambda: _push(request, files, target))

    return guarded(task, work)


def _push(request: Request, files: Sequence[Path], target: JsonTarget | None) -> int:
    began = time.monotonic()
    with connected(request.address) as client:
        pushed = _send(client, request, files)
        document: dict[str, Any] = {
            "schema": PUSH_SCHEMA,
            "files": [
                {
                    "name": item.path.name,
                    "digest": item.digest,
                    "bytes": item.bytes,
                    "sent_bytes": item.sent_bytes,
                    "how": item.how,
                }
                for item in pushed
            ],
            "artifact": None,
            "checkpoint": None,
            "job": None,
            "verdict": None,
        }
        quiet = target is not None and target.alone
        if not quiet:
            _show(pushed, time.monotonic() - began)
        code = _make(client, request, pushed, document, quiet)
    if target is not None:
        target.write(document)
    return code


def _send(client: "Client", request: Request, files: Sequence[Path]) -> "list[Pushed]":
    from service import pushing

    sizes = sum(path.stat().st_size for path in files)
    with watching("Pushing", compiled=False) as watch:
        watch.started(_Ahead(sizes))
        lock = threading.Lock()

        def progress(count: int) -> None:
            with lock:
                watch.progress(count)

        told = tell if sys.stderr.isatty() else (lambda _: None)
        how = pushing.How(request.via, request.patience_seconds, progress, told)
        with _sending(how, request.parallel) as pool:
            running = [pool.submit(pushing.push, client, path, how) for path in files]
            _await(running)
        return [one.result() for one in running]


@contextmanager
def _sending(how: "How", parallel: int) -> Iterator[ThreadPoolExecutor]:
    """A pool that ends at once when one file failed, or somebody interrupts."""
    pool = ThreadPoolExecutor(parallel, thread_name_prefix="push")
    try:
        yield pool
    finally:
        how.stop.set()
        pool.shutdown(cancel_futures=True)


def _await(running: "Sequence[Future[Pushed]]") -> None:
    """Until all are done, or one has failed. Raises: what that one did."""
    done, _ = wait(running, return_when=FIRST_EXCEPTION)
    for one in running:
        if one in done and (error := one.exception()) is not None:
            raise error


def _make(
    client: "Client", request: Request, pushed: "Sequence[Pushed]", document: dict[str, Any], quiet: bool
) -> int:
    """What the files are to become, into `document`; the exit code."""
    files = [{"name": item.path.name, "digest": item.digest} for item in pushed]
    if request.checkpoint:
        claims = {"repository": request.repository, "revision": request.revision}
        said = {name: value for name, value in claims.items() if value is not None}
        made = client.request("POST", "/v1/checkpoints", json={"files": files, **said})
        document["checkpoint"] = made["id"]
        _say(quiet, f"checkpoint  {made['id']}")
    if request.kind is None:
        return 0
    made = client.request("POST", "/v1/artifacts", json={"kind": request.kind, "files": files})
    document["artifact"] = made["digest"]
    _say(quiet, f"artifact    {made['digest']}")
    if not request.verify:
        return 0
    job = _verified(client, str(made["digest"]))
    document |= {"job": job["id"], "verdict": job["state"]}
    error = f": {job['error']['detail']}" if job["error"] else ""
    _say(quiet, f"verdict     {job['state']}{error}  (job {job['id']})")
    return EXIT_CODES[job["state"]]


def _verified(client: "Client", artifact: str) -> "Document":
    job = client.start({"type": "verify", "artifact": artifact})
    with watching("Verifying", compiled=False) as watch:
        told = 0
        began = False

        def hear(seen: "Document") -> None:
            nonlocal told, began
            whole, done = seen["progress"]["bytes"], seen["progress"]["bytes_done"]
            if whole is not None and not began:
                began = True
                watch.started(_Ahead(whole))
            watch.progress(done - told)
            told = done

        return client.wait(job["id"], hear, timeout_seconds=float("inf"))


def _show(pushed: "Sequence[Pushed]", seconds: float) -> None:
    for item in pushed:
        how = "held already" if item.how == "held" else f"sent {text.size(item.sent_bytes)}"
        print(f"{item.digest}  {text.clean(item.path.name)}  {text.size(item.bytes)}, {how}")
    sent = sum(item.sent_bytes for item in pushed)
    whole = sum(item.bytes for item in pushed)
    rate = f", {text.size(int(sent / seconds))}/s" if sent and seconds > 0 else ""
    print(
        f"{text.plural(len(pushed), 'file')}, {text.size(whole)}; sent {text.size(sent)} in {text.seconds(seconds)}{rate}"
    )


def _say(quiet: bool, line: str) -> None:
    if not quiet:
        print(line, flush=True)


def _require_sense(request: Request) -> None:
    """Raises: Usage for options that say nothing together."""
    if request.kind is not None and request.checkpoint:
        raise Usage("--kind makes an artifact and --checkpoint a checkpoint: give one of them")
    if request.verify and request.kind is None:
        raise Usage("--verify needs an artifact: say its --kind")
    if not request.checkpoint and (request.repository is not None or request.revision is not None):
        raise Usage("--repository and --revision are claims of a checkpoint: give --checkpoint")


def _files(paths: Sequence[str], named: bool) -> list[Path]:
    """The files that are meant, folders as the files directly in them. Raises: Usage, CannotRead, OSError."""
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(not_empty("PATHS", given))
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            if not inside:
                raise CannotRead(f"there is no file in {path}")
            found.update(dict.fromkeys(inside))
        elif stat.S_ISREG(path.stat().st_mode):
            found[path] = None
        else:
            raise CannotRead(f"{path} is no file")
    names = [path.name for path in found]
    if named and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Usage(f"two files are called {twice!r}; what is made of files needs different names")
    return list(found)
