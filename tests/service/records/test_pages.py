"""Cursors: what goes in comes out, and anything else is refused."""

import base64
import json
from typing import Any

import pytest

from service.records import pages
from service.records.errors import BadCursor
from service.records.pages import decode, encode
from service.records.types import now


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (pages.ordinal, 0),
        (pages.ordinal, 2**31 - 1),
        (pages.identifier, "0" * 32),
        (pages.identifier, "sha256:" + "f" * 64),
        (pages.metric, None),
        (pages.metric, 0.0),
        (pages.metric, 5e-324),
        (pages.metric, 0.1 + 0.2),
        (pages.metric, float("inf")),
    ],
)
def test_round_trip(key: pages.Key, value: Any) -> None:
    cursor = encode("list", value)
    assert decode(cursor, "list", key) == (value,)
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_moments() -> None:
    moment = now()
    assert decode(encode("list", moment.isoformat()), "list", pages.moment) == (moment,)


def test_no_cursor_begins_at_the_start() -> None:
    assert decode(None, "list", pages.ordinal) is None


def spelled(value: Any) -> str:
    """A cursor holding any JSON value."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "\0",
        "é",
        "a",
        "AAAA",
        "A" * 100_000,
        spelled(None),
        spelled({}),
        spelled([]),
        spelled(["list"]),
        spelled(["list", 1, 2]),
        spelled(["other", 1]),
        spelled(["list", "1"]),
        spelled(["list", True]),
        spelled(["list", 1.0]),
        spelled(["list", None]),
        spelled(["list", -1]),
        spelled(["list", 2**31]),
        spelled(["list", 10**30]),
        base64.urlsafe_b64encode(b"[" * 370).decode(),
        base64.urlsafe_b64encode(b'["list", 1' + b"0" * 300 + b"]").decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        spelled(["list", 1]) + "\n",
    ],
)
def test_malformed(cursor: str) -> None:
    with pytest.raises(BadCursor):
        decode(cursor, "list", pages.ordinal)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (pages.identifier, 1),
        (pages.identifier, ""),
        (pages.identifier, "a\0"),
        (pages.identifier, "0" * 72),
        (pages.identifier, "x'; DROP TABLE jobs"),
        (pages.metric, "1"),
        (pages.metric, True),
        (pages.metric, 10**320),
        (pages.metric, float("nan")),
        (pages.moment, 1),
        (pages.moment, "yesterday"),
        (pages.moment, "2026-11-30T00:00:00"),
        (pages.moment, "0001-01-01T00:00:00+14:00"),
        (pages.moment, "9999-12-31T23:59:59-14:00"),
    ],
)
def test_keys_of_another_kind(key: pages.Key, value: Any) -> None:
    with pytest.raises(BadCursor):
        decode(encode("list", value), "list", key)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_holds_something(limit: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        pages.fetched(limit)
