"""Quotas: room is taken when it is asked for, by one of those that ask at once, and given back."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

from service import quotas
from service.records.models import DEFAULT_PROJECT, Project
from tests.service.api.tussing import VERSION, create, patch
from tests.service.api.world import World


def bound(api: World, size: int | None) -> None:
    """Give the project a bound."""
    with api.parts.database.write() as session:
        project = session.get(Project, DEFAULT_PROJECT)
        assert project is not None
        project.quota_bytes = size


def room(api: World) -> quotas.Room:
    """What there is."""
    with api.parts.database.read() as session:
        return quotas.room(session, api.parts.settings, DEFAULT_PROJECT)


def begin(api: World, size: int) -> int:
    """The status of asking for an upload."""
    headers = {**VERSION, "Upload-Length": str(size)}
    return api.call("POST", "/v1/uploads", headers=headers).status_code


def test_room(fresh: World) -> None:
    bound(fresh, 100)
    place = create(fresh, 60)
    assert room(fresh) == quotas.Room(0, 60, 100)
    assert begin(fresh, 41) == 413
    body = b"a" * 40
    assert (
        fresh.call("POST", "/v1/blobs", content=body).status_code == 201
    )  # a body has room to the last byte
    assert room(fresh).left_bytes == 0
    assert fresh.call("POST", "/v1/blobs", content=body).status_code == 200  # what is held takes none
    refused = fresh.call("POST", "/v1/blobs", content=b"b")
    assert (refused.status_code, refused.json()["code"]) == (413, "quota_exceeded")
    assert hashlib.sha256(b"b").hexdigest() not in fresh.kept()
    assert patch(fresh, place, 0, b"c" * 60).status_code == 204  # what was promised is kept
    assert room(fresh) == quotas.Room(100, 0, 100)
    assert fresh.call("DELETE", place).status_code == 204
    assert room(fresh).held_bytes == 100  # content stays


def test_an_upload_that_is_given_up_gives_its_room_back(fresh: World) -> None:
    bound(fresh, 100)
    place = create(fresh, 100)
    assert begin(fresh, 1) == 413
    fresh.call("DELETE", place)
    assert begin(fresh, 100) == 201


def test_of_many_that_ask_at_once_no_more_than_fit_are_let_in(fresh: World) -> None:
    bound(fresh, 50)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: begin(fresh, 10), range(16)))
    assert (statuses.count(201), statuses.count(413)) == (5, 11)
    bound(fresh, 80)
    bodies = [bytes([number]) * 10 for number in range(12)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: fresh.call("POST", "/v1/blobs", content=body), bodies))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [413] * 9
    assert room(fresh) == quotas.Room(30, 50, 80)


def test_settings_bound_a_project_without_a_bound_of_its_own(fresh: World) -> None:
    with fresh.with_settings(quota_bytes=10):
        assert begin(fresh, 11) == 413
        bound(fresh, 11)
        assert begin(fresh, 11) == 201


def test_open_uploads_are_bounded_and_no_more_are_let_in_at_once(fresh: World) -> None:
    with fresh.with_settings(max_open_uploads=3):
        place = create(fresh, 1)
        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(lambda _: begin(fresh, 1), range(6)))
        assert sorted(statuses) == [201, 201, 409, 409, 409, 409]
        fresh.call("DELETE", place)
        assert begin(fresh, 1) == 201
