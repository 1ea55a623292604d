"""Objects as the directory lists them: any name, any size, found by exact name and prefix."""

from typing import Any

import pytest

from service.records import content
from service.records.database import Database
from service.records.errors import BadCursor
from service.records.models import Object
from tests.service.records.build import HOSTILE, HUGE, artifact, listed, objects

LISTED: dict[str, Any] = {"listing": "listed", "revision": 3, "model_id": "m", "weights_id": "w"}


def test_listed_once(database: Database) -> None:
    with database.write() as session:
        made, _ = content.add_artifact(session, artifact(), [])
    for count, facts in (
        (2_500, LISTED),
        (3, LISTED | {"revision": 2}),
        (0, LISTED | {"listing": "unreadable"}),
    ):
        with database.write() as session:
            content.list_objects(session, made.id, rows=objects(count), **facts)
    with database.read() as session:
        found = content.artifact(session, made.id)
        assert (found.listing, found.object_count, found.revision) == ("listed", 2_500, 3)
        assert (found.model_id, found.weights_id) == ("m", "w")
        page = content.objects(session, made.id, limit=3_000)
        assert [row.ordinal for row in page.items] == list(range(2_500))
        assert page.next is None
        assert page.items[7].entry == {"shape": [7, HUGE], "bytes": HUGE + 7}


def test_unreadable(database: Database) -> None:
    with database.write() as session:
        made, _ = content.add_artifact(session, artifact(), [])
        facts = {"listing": "unreadable", "revision": None, "model_id": None, "weights_id": None}
        content.list_objects(session, made.id, rows=[], **facts)
        content.list_objects(session, "0" * 32, rows=[], **facts)  # nobody's: nothing
        assert content.artifact(session, made.id).object_count == 0
        assert content.unlisted(session, 9) == []


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_are_found(database: Database, name: str) -> None:
    with database.write() as session:
        made, _ = content.add_artifact(session, artifact(), [])
        rows = [
            Object(ordinal=0, name=name, kind=name, format=name, layout=name, entry={name[:100]: name[:100]}),
            Object(ordinal=1, name=name + "more", entry={}),
            Object(ordinal=2, name="!" + name, entry={}),
        ]
        content.list_objects(session, made.id, rows=rows, **LISTED)
    with database.read() as session:

        def found(**wanted: str) -> list[int]:
            return [row.ordinal for row in content.objects(session, made.id, limit=9, **wanted).items]

        read = content.object_at(session, made.id, 0)
        assert (read.name, read.kind, read.format, read.layout) == (name, name, name, name)
        assert read.entry == {name[:100]: name[:100]}
        assert found(name=name) == found(kind=name) == found(format=name) == found(layout=name) == [0]
        assert found(prefix=name) == ([0, 1] if name else [0, 1, 2])
        assert found(prefix=name + "m") == [1]
        assert found(prefix="!" + name) == [2]
        assert found(name=name + "m") == []


def test_prefixes(database: Database) -> None:
    names = ["a", "A", "ab", "a%", "a_", "\x1a", "\x1a0", "\0", "\0\0", ""]
    with database.write() as session:
        made, _ = content.add_artifact(session, artifact(), [])
        rows = [Object(ordinal=n, name=name, entry={}) for n, name in enumerate(names)]
        content.list_objects(session, made.id, rows=rows, **LISTED)
    with database.read() as session:
        for prefix in names:
            page = content.objects(session, made.id, limit=99, prefix=prefix)
            assert [row.name for row in page.items] == [name for name in names if name.startswith(prefix)]


def test_filters_and_pages(database: Database) -> None:
    with database.write() as session:
        made = listed(session, 50)
        listed(session, 5, "b")
    with database.read() as session:
        for wanted, expected in (
            ({}, list(range(50))),
            ({"kind": "resource"}, list(range(0, 50, 3))),
            ({"format": "Q4G64_F16S"}, list(range(1, 50, 2))),
            ({"layout": "row-split-k128-v1", "kind": "resource"}, list(range(3, 50, 6))),
            ({"prefix": "model.layers.1"}, [1, *range(10, 20)]),
            ({"prefix": "MODEL"}, []),
            ({"name": "model.layers.7.weight"}, [7]),
            ({"name": "model.layers.7.weigh"}, []),
        ):
            seen: list[int] = []
            cursor = None
            while True:
                page = content.objects(session, made.id, limit=4, cursor=cursor, **wanted)
                assert len(page.items) == 4 or page.next is None
                seen += [row.ordinal for row in page.items]
                cursor = page.next
                if cursor is None:
                    break
            assert seen == expected
        with pytest.raises(BadCursor):
            content.objects(session, made.id, limit=4, cursor="x")


@pytest.mark.parametrize("ordinal", [-1, 3, 2**31, 10**30])
def test_no_object_there(database: Database, ordinal: int) -> None:
    with database.write() as session:
        assert content.object_at(session, listed(session).id, ordinal) is None


def test_a_directory_that_could_be_read_overrules_an_attempt_at_which_it_could_not(
    database: Database,
) -> None:
    with database.write() as session:
        made, _ = content.add_artifact(session, artifact(), [])
        unreadable = {"listing": "unreadable", "revision": None, "model_id": None, "weights_id": None}
        content.list_objects(session, made.id, rows=[], **unreadable)
        content.list_objects(session, made.id, rows=objects(3), **LISTED)
        content.list_objects(session, made.id, rows=[], **unreadable)
        found = content.artifact(session, made.id)
        assert (found.listing, found.object_count, found.model_id) == ("listed", 3, "m")
        content.add_objects(session, made.id, [*objects(2), Object(ordinal=3, name="more", entry={})])
        names = [row.name for row in content.objects(session, made.id, limit=9).items]
        assert names == [*(row.name for row in objects(3)), "more"]


def test_unlisted_artifacts_are_paged(database: Database) -> None:
    with database.write() as session:
        ids = sorted(content.add_artifact(session, artifact(n), [])[0].id for n in range(3))
        assert [row.id for row in content.unlisted(session, 2)] == ids[:2]
        assert [row.id for row in content.unlisted(session, 2, ids[1])] == ids[2:]
