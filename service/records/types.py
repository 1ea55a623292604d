"""Column types that keep whatever a hostile file or a client said, on SQLite and PostgreSQL alike."""

import hashlib
import json
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, String, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

_ESCAPE = "\x1a"


class _Hostile(TypeDecorator[str]):
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """NUL becomes SUB 0, and SUB itself SUB 1."""
        if value is None:
            return None
        return value.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it was."""
        if value is None:
            return None
        return value.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)


class HostileText(_Hostile):
    """Any text, also with NUL, which PostgreSQL refuses; comparing with `==` works, since parameters are spelled alike."""

    impl = Text
    cache_ok = True


class HostileString(_Hostile):
    """A text of a given length; what a client asks for with a NUL in it is simply not found."""

    impl = String
    cache_ok = True


class Json(TypeDecorator[Any]):
    """A JSON document kept as text: integers of any size, escaped NULs, and members in their order survive."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Strict JSON in ASCII."""
        return None if value is None else json.dumps(value, allow_nan=False, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """The document."""
        return None if value is None else json.loads(value)


class Utc(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets time zones, so they are taken off and put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Raises: ValueError for a moment without a time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment, in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """32 hex digits: milliseconds since 1970 (12 digits), then chance (20). Later ids sort later."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


class ChanceId(FunctionElement[str]):
    """32 hex digits out of the database's own chance, for rows of writers that know no ids."""

    inherit_cache = True
    type = String(32)


@compiles(ChanceId, "sqlite")
def _chance_on_sqlite(*_: Any, **__: Any) -> str:
    return "lower(hex(randomblob(16)))"


@compiles(ChanceId, "postgresql")
def _chance_on_postgresql(*_: Any, **__: Any) -> str:
    return "md5(random()::text || clock_timestamp()::text)"


def first_id(moment: datetime) -> str:
    """What every id sorts before that was made before a moment, and no later one."""
    return f"{max(0, int(moment.timestamp() * 1_000)):012x}"


def name_key(name: str) -> str:
    """32 hex digits for a name of any length: PostgreSQL refuses an index entry beyond 2,704 bytes."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
