"""The end of an upload: its bytes become content of the project, at once or by a thread beside the requests.

At once where this process has hashed every byte while it came and the store lies on the same disk: then it is a link.
After a crash, and where content travels to the store, the last request does not wait for it: the upload is `storing`.
What a dead process left so is taken up again, here by its file; doing it twice, or at the same time, is harmless.
"""

import hashlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core.errors import CannotWrite, NinferError
from ninfer_core.identity import DIGEST_PREFIX
from service import contents
from service.contents import Collected
from service.errors import DigestMismatch, Fault, QuotaExceeded, UploadBusy, UploadGone
from service.records import uploads
from service.uploads import files
from service.uploads.clearing import clear_files
from service.uploads.files import Held
from service.uploads.hashes import Hashes
from service.uploads.times import expiry

if TYPE_CHECKING:
    from service.parts import Parts

log = structlog.get_logger()

_THREADS: Final = 2
_IDLE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 15.0  # between two looks for what a dead process, or a store that was away, has left
_CLEAR_SECONDS: Final = 3600.0  # a worker does it too, but perhaps on another machine
_AT_ONCE: Final = 100
_TRIES: Final = 3


class Storing:
    """What this process knows of uploads: digests so far, and the threads that store what is whole."""

    def __init__(self) -> None:
        self.hashes = Hashes()
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def submit(self, parts: "Parts", upload_id: str) -> None:
        """Store this upload soon; one that is not whole, or over, is left as it is."""
        self._waiting.put(upload_id)
        self.start(parts)

    def start(self, parts: "Parts") -> None:
        """Look for uploads to be stored, from now until the service stops."""
        with self._lock:
            if self._threads:
                return
            self._threads = [
                threading.Thread(target=self._run, args=(parts, number == 0), daemon=True, name="storing")
                for number in range(_THREADS)
            ]
            for thread in self._threads:
                thread.start()

    def _run(self, parts: "Parts", looks: bool) -> None:
        look_at = clear_at = 0.0
        while not parts.closing.is_set():
            try:
                if looks and time.monotonic() >= look_at:
                    look_at = time.monotonic() + _LOOK_SECONDS
                    self._look(parts)
                if looks and time.monotonic() >= clear_at:
                    clear_at = time.monotonic() + _CLEAR_SECONDS
                    clear_files(parts.database, parts.blobs.scratch)
                _hash_and_store(parts, self._waiting.get(timeout=_IDLE_SECONDS))
            except queue.Empty:
                continue
            except SQLAlchemyError as error:
                log.warning("upload.database_away", error=str(error).partition("\n")[0])
            except Exception:
                log.exception("upload.storing_broke")

    def _look(self, parts: "Parts") -> None:
        after = uploads.FIRST
        while not parts.closing.is_set():
            with parts.database.read() as session:
                found = uploads.storing(session, "tus", _AT_ONCE, after)
            for upload in found:
                if files.size(parts.blobs.scratch, upload.id) is not None:
                    _hash_and_store(parts, upload.id)
            if len(found) < _AT_ONCE:
                return
            after = found[-1].project_id, found[-1].id


def begin(parts: "Parts", upload_id: str) -> None:
    """All bytes are here: from now on it is being stored. Nothing happens to one that is over."""
    with parts.database.write() as session:
        upload = uploads.locked(session, upload_id)
        if upload is None or upload.state != "receiving":
            return
        upload.state = "storing"
        upload.expires_at = expiry(parts.settings)
    parts.storing.submit(parts, upload_id)


def store(parts: "Parts", upload_id: str, held: Held, sha256: str) -> None:
    """Make the held file content of the upload's project.

    Raises: UploadGone, DigestMismatch, QuotaExceeded, CannotWrite; after the last it can be tried again.
    """
    for _ in range(_TRIES):
        with parts.database.read() as session:
            upload = uploads.get(session, upload_id)
        if upload is None or upload.state not in uploads.OPEN:
            raise UploadGone("The upload was ended meanwhile.")
        if upload.sha256 is not None and upload.sha256 != sha256:
            raise _mismatch(parts, upload_id, upload.sha256, sha256)
        # Its own bytes have room since it was begun.
        contents.prepare(parts.database, parts.settings, upload.project_id, sha256, held.size, has_room=True)
        parts.blobs.take(held.path, sha256)
        try:
            _conclude(parts, upload_id, sha256, held.size)
        except Collected:
            continue
        except QuotaExceeded as error:  # the bound was made tighter meanwhile
            fail(parts, upload_id, error.code, error.detail)
            raise
        forget(parts, upload_id)
        log.info("upload.stored", upload=upload_id, bytes=upload.bytes)
        return
    raise CannotWrite(f"content with sha256 {sha256} was removed each time that it was put in place")


def fail(parts: "Parts", upload_id: str, code: str, detail: str) -> None:
    """The upload is over without content; one that is over stays as it is."""
    with parts.database.write() as session:
        upload = uploads.locked(session, upload_id)
        if upload is not None and upload.state in uploads.OPEN:
            uploads.end(upload, "failed", error={"code": code, "detail": detail})
    forget(parts, upload_id)
    log.info("upload.failed", upload=upload_id, code=code)


def forget(parts: "Parts", upload_id: str) -> None:
    """Let go of the bytes of an upload that is over."""
    files.remove(parts.blobs.scratch, upload_id)
    parts.storing.hashes.forget(upload_id)


def _conclude(parts: "Parts", upload_id: str, sha256: str, size: int) -> None:
    with parts.database.write() as session:
        upload = uploads.locked(session, upload_id)
        if upload is None or upload.state not in uploads.OPEN:
            raise UploadGone("The upload was ended meanwhile.")
        uploads.end(upload, "stored", sha256=sha256)
        session.flush()  # it takes no room as an upload any more when room for its content is looked for
        contents.hold(session, parts.blobs, parts.settings, upload.project_id, sha256, size)


def _hash_and_store(parts: "Parts", upload_id: str) -> None:
    try:
        with Held(parts.blobs.scratch, upload_id, write=False) as held:
            with parts.database.read() as session:
                upload = uploads.get(session, upload_id)
            if upload is None or upload.state not in uploads.OPEN or held.size != upload.bytes:
                return
            known = parts.storing.hashes.take(upload_id, held.size)
            if known is None:
                known = hashlib.sha256()
                for piece in held.pieces():
                    known.update(piece)
                    if parts.closing.is_set():
                        return  # whoever looks next begins anew
            # Kept for the next try, when the store is away this time: it is the digest of a large file.
            parts.storing.hashes.put(upload_id, held.size, known)
            store(parts, upload_id, held, known.hexdigest())
    except (UploadBusy, UploadGone, DigestMismatch, QuotaExceeded):
        return  # another does it, it is over, or its row says why it failed
    except (NinferError, OSError) as error:
        log.warning("upload.not_stored_yet", upload=upload_id, error=str(error))


def _mismatch(parts: "Parts", upload_id: str, expected: str, found: str) -> DigestMismatch:
    detail = f"The content that arrived has sha256 {found}, not {expected} as was declared."
    fail(parts, upload_id, DigestMismatch.code, detail)
    fault = Fault("header", "Upload-Metadata", "another sha256 was declared")
    return DigestMismatch(detail, fault, expected=DIGEST_PREFIX + expected, found=DIGEST_PREFIX + found)
