"""A bucket of an S3-compatible server: objects by key, each put whole or not at all, every failure with a name."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import obstore
import structlog
from obstore.exceptions import (
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store as ObjectStore

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

from ninfer_core.errors import CannotRead
from ninfer_core.io import ByteSource, read
from service.blobs.errors import StoreAway, StoreAwayForWriting
from service.blobs.sending import BLOCK_BYTES, Outgoing, require
from service.blobs.waiting import Check, answer, never

log = structlog.get_logger()

_AT_ONCE: Final = 3  # parts of one object on their way; each is in memory
_DELETED_AT_ONCE: Final = 1_000
_SEEN_SECONDS: Final = 60.0
_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]+)")
_HASTY: Final["RetryConfig"] = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=3),
    "backoff": {
        "init_backoff": timedelta(milliseconds=50),
        "max_backoff": timedelta(milliseconds=500),
        "base": 2,
    },
}
# Short waits for what passes at once; for longer ones work is done again by who asked for it.
_RETRIES: Final["RetryConfig"] = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=4),
        "base": 2,
    },
}


class Missing(CannotRead):
    """There is no object under this key."""


class Replaced(CannotRead):
    """The object is no longer the one that was opened."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object: its key below the prefix, its size, and what tells it from another under the same key."""

    key: str
    size: int
    etag: str | None


@dataclass(frozen=True, slots=True)
class Server:
    """Where buckets are; without an endpoint, AWS."""

    endpoint: str | None
    region: str
    public_endpoint: str | None = None
    patient: bool = True
    seconds: float = 300.0  # that one request may take
    silent_seconds: float = 20.0  # that an answer may keep waiting for, or pause

    def bucket(self, name: str, prefix: str, *, public: bool = False, reading: bool = False) -> ObjectStore:
        """Credentials come from the variables that S3 tools read."""
        endpoint = (self.public_endpoint if public else None) or self.endpoint
        config: S3Config = {"region": self.region, "virtual_hosted_style_request": False}
        if endpoint is not None:
            config["endpoint"] = endpoint.rstrip("/")
        waiting: ClientConfig = {
            "allow_http": endpoint is not None and endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(seconds=self.seconds),
        }
        if reading:  # while a body is sent there is no answer either, on a slow link for long
            waiting["read_timeout"] = timedelta(seconds=min(self.seconds, self.silent_seconds))
        return ObjectStore(
            name,
            prefix=prefix or None,
            config=config,
            client_options=waiting,
            retry_config=_RETRIES if self.patient else _HASTY,
        )


class Bucket:
    """What lies below one prefix of a bucket. `check` is asked while a thread waits, and may raise."""

    def __init__(self, server: Server, name: str, prefix: str, check: Check = never) -> None:
        self.name, self.prefix = name, prefix
        self._store = server.bucket(name, prefix, reading=True)
        self._writes = server.bucket(name, prefix)
        self._public = server.bucket(name, prefix, public=True)
        self._check = check
        self._seen = -_SEEN_SECONDS

    def find(self, key: str) -> Found | None:
        """The object under a key. Raises: StoreAway."""
        try:
            meta = self._ask("look", obstore.head_async, self._store, key)
        except Missing:
            self._require_bucket()
            return None
        return Found(key, meta["size"], meta["e_tag"])

    def read(self, key: str, start: int, stop: int, etag: str | None = None) -> memoryview:
        """The bytes from `start` to before `stop`. Raises: Missing, Replaced when `etag` is another now, StoreAway."""
        if start == stop:
            return memoryview(b"")
        options = {"range": (start, stop), **({} if etag is None else {"if_match": etag})}
        try:
            content = memoryview(self._ask("read", _get, self._store, key, options))
        except Missing:
            self._require_bucket()
            raise
        if len(content) != stop - start:
            raise StoreAway(f"the store sent {len(content):,} of {stop - start:,} bytes that were asked for")
        return content

    def put(self, key: str, source: ByteSource, sha256: str) -> None:
        """Put the whole of `source`, whose digest is this. Raises: WrongContent, StoreAwayForWriting; as reading it."""
        if source.size <= BLOCK_BYTES:
            content = read(source, 0, source.size)
            require(sha256, source.size, hashlib.sha256(content).hexdigest(), source.size)
            self._ask("write", obstore.put_async, self._writes, key, content, use_multipart=False)
            self._require_kept(key, source.size)
        else:
            get = partial(_read, source)
            self.put_pieces(key, Outgoing(source.size, sha256, get))

    def put_pieces(self, key: str, pieces: Outgoing) -> None:
        """Put what is sent; nothing of it is there when that fails. Raises: as `put`."""
        try:
            self._ask(
                "write",
                obstore.put_async,
                self._writes,
                key,
                pieces,
                chunk_size=pieces.piece_bytes,
                max_concurrency=_AT_ONCE,
                use_multipart=True,
            )
        finally:
            pieces.stop()
        self._require_kept(key, pieces.size)

    def remove(self, keys: Sequence[str]) -> None:
        """Forget objects; those that are not there are forgotten. Raises: StoreAwayForWriting."""
        for at in range(0, len(keys), _DELETED_AT_ONCE):
            try:
                self._ask("remove", obstore.delete_async, self._store, list(keys[at : at + _DELETED_AT_ONCE]))
            except Missing:
                self._require_bucket()

    def below(self, prefix: str) -> Iterator[Found]:
        """The objects whose keys begin with `prefix` and a slash. Raises: StoreAway."""
        stream = obstore.list(self._store, prefix, chunk_size=_DELETED_AT_ONCE)
        while some := self._ask("list", _next, aiter(stream)):
            yield from (Found(meta["path"], meta["size"], meta["e_tag"]) for meta in some)

    def folders(self, prefix: str) -> list[str]:
        """Names directly below `prefix` that have something below them. Raises: StoreAway."""
        found = self._ask("list", obstore.list_with_delimiter_async, self._store, prefix)
        return sorted(path.rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def sign(self, method: str, key: str, seconds: float) -> str:
        """An address at which anybody may do this to a key for so long. Raises: StoreAway."""
        return str(
            self._ask("sign", obstore.sign_async, self._public, method, key, timedelta(seconds=seconds))
        )

    def _require_kept(self, key: str, size: int) -> None:
        found = self.find(key)
        if found is None or found.size != size:
            raise StoreAwayForWriting("the store did not keep what it was sent")

    def _require_bucket(self) -> None:
        """Raises: StoreAway where it is the bucket that is missing: an answer to HEAD does not tell."""
        if time.monotonic() - self._seen > _SEEN_SECONDS:
            try:
                self._ask("list", obstore.list_with_delimiter_async, self._store, "none")
            except Missing as error:
                raise StoreAway(f"there is no bucket {self.name}") from error

    def _ask(self, what: str, operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
        kind = StoreAwayForWriting if what in ("write", "remove") else StoreAway
        stop = next((item.stop for item in args if isinstance(item, Outgoing)), None)
        try:
            found = answer(_awaited(operation, *args, **options), self._check, stop)
        except FileNotFoundError as error:
            if what == "write" or "NoSuchBucket" in str(error):
                raise kind(f"there is no bucket {self.name}") from error
            raise Missing("the store does not hold it") from error
        except PreconditionError as error:
            raise Replaced("the store holds something else by now") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise kind(f"the store refuses to {what}: its credentials or rights are wrong") from error
        except (BaseError, OSError) as error:
            # The rest of its text has addresses, and what the server said; neither is for a client.
            status = _STATUS.search(str(error))
            why = f"it answers {status[1].strip()}" if status else "there is no connection, or it broke off"
            log.warning("store.away", doing=what, why=why)
            raise kind(f"the store did not {what}: {why}") from error
        self._seen = time.monotonic()
        return found


async def _awaited(operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return await operation(*args, **options)  # called here, since it belongs to the loop that runs


async def _get(store: ObjectStore, key: str, options: Any) -> Any:
    return await (await obstore.get_async(store, key, options=options)).bytes_async()


async def _next(stream: Any) -> Any:
    return await anext(stream, None)


def _read(source: ByteSource, start: int, stop: int) -> bytes:
    return read(source, start, stop - start)
