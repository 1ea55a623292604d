"""Content on its way out: whole, by range, unchanged, and only to whose it is."""

import pytest

from tests.service.api.world import World

BODY = bytes(range(256)) * 1000


@pytest.fixture
def place(api: World) -> str:
    """Where the content is."""
    return str(api.call("POST", "/v1/blobs", content=BODY).headers["location"])


def test_whole(api: World, place: str) -> None:
    answer = api.call("GET", place)
    assert (answer.status_code, answer.content) == (200, BODY)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "immutable" in answer.headers["cache-control"]
    again = api.call("GET", place, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("given", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=255999-", 255_999, 256_000),
        ("bytes=100-99999999", 100, 256_000),
        ("bytes=-7", 255_993, 256_000),
        ("bytes=-99999999", 0, 256_000),
    ],
)
def test_ranges(api: World, place: str, given: str, begin: int, end: int) -> None:
    answer = api.call("GET", place, headers={"Range": given})
    assert (answer.status_code, answer.content) == (206, BODY[begin:end])
    assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(BODY)}"


@pytest.mark.parametrize("given", ["bytes=256000-", "bytes=-0", "bytes=9999999999999999999-"])
def test_ranges_past_the_end(api: World, place: str, given: str) -> None:
    answer = api.call("GET", place, headers={"Range": given})
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer.headers["content-range"] == "bytes */256000"


@pytest.mark.parametrize("given", ["bytes=9-3", "lines=1-2", "bytes=", "bytes=0-1,5-6", "bytes=a-b"])
def test_other_ranges_are_left_alone(api: World, place: str, given: str) -> None:
    answer = api.call("GET", place, headers={"Range": given})
    assert (answer.status_code, answer.content) == (200, BODY)
