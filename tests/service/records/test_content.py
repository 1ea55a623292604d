"""Contents, artifacts, checkpoints, recipes: said twice is said once, and only within a project."""

from datetime import timedelta

import pytest

from service.records import content
from service.records.database import Database
from service.records.errors import BadCursor
from service.records.types import now
from tests.service.records.build import (
    HOSTILE,
    OTHER,
    P,
    artifact,
    checkpoint,
    checkpoint_files,
    digest,
    files,
    listed,
    other_project,
    recipe,
    sha,
)


def test_blobs(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        assert content.add_blob(session, P, sha(1), 5)
        assert not content.add_blob(session, P, sha(1), 5)
        assert content.add_blob(session, P, sha(2), 1 << 62)
        assert content.add_blob(session, OTHER, sha(1), 5)  # known there is not known here
        assert content.find_blob(session, OTHER, sha(2)) is None
    with database.read() as session:
        found = content.find_blobs(session, P, [sha(1), sha(1), sha(2), sha(3), "no\0digest"])
        assert {key: blob.bytes for key, blob in found.items()} == {sha(1): 5, sha(2): 1 << 62}
        assert content.find_blobs(session, P, []) == {}
        assert len(content.find_blobs(session, P, map(sha, range(3_000)))) == 2


def test_an_artifact_is_stored_once(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        first, new = content.add_artifact(session, artifact(), files("a.ninfer", "a.part-1"))
        assert new
    with database.write() as session:
        again, new = content.add_artifact(session, artifact(entry="other.ninfer"), files("other.ninfer"))
        assert not new
        assert (again.id, again.entry) == (first.id, "a.ninfer")
        elsewhere, new = content.add_artifact(session, artifact(project_id=OTHER), files("a.ninfer"))
        assert new
        assert elsewhere.id != first.id
    with database.read() as session:
        assert [(f.ordinal, f.name, f.project_id) for f in content.files(session, first.id)] == [
            (0, "a.ninfer", P),
            (1, "a.part-1", P),
        ]
        assert content.find_artifact(session, P, digest("a")).id == first.id
        assert content.find_artifact(session, "nobody", digest("a")) is None
        assert content.find_artifact(session, P, "sha256:\0") is None
        assert content.artifact(session, elsewhere.id).project_id == OTHER
        assert content.artifact(session, "0" * 32) is None


def test_artifacts_in_pages(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        content.add_artifact(session, artifact("x", project_id=OTHER), [])
        made = [content.add_artifact(session, artifact(n), [])[0].id for n in range(7)]
    newest = sorted(made, reverse=True)
    seen: list[str] = []
    cursor = None
    while True:
        with database.write() as session:
            page = content.artifacts(session, P, limit=3, cursor=cursor)
            content.add_artifact(session, artifact(f"later {len(seen)}"), [])  # in front of what was seen
        seen += [row.id for row in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert seen == newest


def test_artifacts_are_found(database: Database) -> None:
    with database.write() as session:
        content.add_artifact(session, artifact("Large", model_id="Model%"), [])
        content.add_artifact(session, artifact("small", kind="safetensors", weights_id="w_1\0"), [])

        def found(**wanted: str) -> list[str]:
            return [row.entry for row in content.artifacts(session, P, limit=9, **wanted).items]

        assert found(kind="ninfer") == ["Large.ninfer"]
        assert found(kind="nin\0fer") == []
        assert (
            found(q="LARGE") == found(q="large.n") == found(q="del%") == found(q="model") == ["Large.ninfer"]
        )
        assert found(q=digest("small")[10:30]) == found(q="w_1\0") == ["small.ninfer"]
        assert found(q="%") == ["Large.ninfer"]
        assert found(q="_") == ["small.ninfer"]
        assert found(q="\0") == ["small.ninfer"]
        assert found(q="l\\") == found(q="x" * 200_000) == []
        assert len(found(q="")) == 2
        assert found(kind="safetensors", q="large") == []


def test_unlisted(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        listed(session)
        waiting = [
            content.add_artifact(session, artifact(n, project_id=p), [])[0].id
            for n, p in ((1, P), (2, OTHER))
        ]
        assert [row.id for row in content.unlisted(session, 9)] == sorted(waiting)
        assert len(content.unlisted(session, 1)) == 1


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_come_back(database: Database, name: str) -> None:
    with database.write() as session:
        made, _ = content.add_artifact(
            session, artifact(entry=name, model_id=name, weights_id=name), files(name)
        )
        claimed, _ = content.add_checkpoint(
            session, checkpoint(repository=name, revision=name), checkpoint_files(name)
        )
        assert content.add_recipe(session, recipe(recipe_id=name, document=name, model_id=name))
    with database.read() as session:
        found = content.artifact(session, made.id)
        assert (found.entry, found.model_id, found.weights_id) == (name, name, name)
        assert content.files(session, made.id)[0].name == name
        read = content.checkpoint(session, P, claimed.id)
        assert (read.repository, read.revision) == (name, name)
        assert content.checkpoint_files(session, claimed.id)[0].name == name
        assert content.recipe(session, P, digest("r")).document == name
    with database.write() as session:
        again, new = content.add_checkpoint(session, checkpoint(repository=name, revision=name), [])
        assert (again.id, new) == (claimed.id, False)


def test_checkpoints(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        made = [
            content.add_checkpoint(
                session, checkpoint(project_id=project, **claims), checkpoint_files("a", "b")
            )
            for project in (P, OTHER)
            for claims in ({}, {"repository": "r"}, {"repository": "r", "revision": "1"}, {"revision": "r"})
        ]
        assert all(new for _, new in made)
        again, new = content.add_checkpoint(session, checkpoint(repository="r"), checkpoint_files("a", "b"))
        assert (again.id, new) == (made[1][0].id, False)
        assert content.add_checkpoint(session, checkpoint("d"), [])[1]
    with database.read() as session:
        assert content.checkpoint(session, P, made[0][0].id).repository is None
        assert content.checkpoint(session, P, made[4][0].id) is None  # another project's
        assert content.checkpoint(session, P, "\0") is None
        assert [f.name for f in content.checkpoint_files(session, made[0][0].id)] == ["a", "b"]
        first = content.checkpoints(session, P, limit=3)
        rest = content.checkpoints(session, P, limit=3, cursor=first.next)
        ids = [row.id for row in first.items + rest.items]
        assert ids == sorted(ids, reverse=True)
        assert len(set(ids)) == 5
        assert rest.next is None
        with pytest.raises(BadCursor):
            content.artifacts(session, P, limit=3, cursor=first.next)


def test_recipes(database: Database) -> None:
    moment = now()
    with database.write() as session:
        other_project(session)
        assert content.add_recipe(session, recipe(target_digest=digest("t")))
        assert not content.add_recipe(session, recipe(document="changed"))
        assert content.add_recipe(session, recipe(project_id=OTHER))
        for number in range(5):  # of one moment, and older ones
            content.add_recipe(
                session, recipe(number, created_at=moment - timedelta(microseconds=number // 2))
            )
    with database.read() as session:
        found = content.recipe(session, P, digest("r"))
        assert (found.document, found.target_digest) == ("{}", digest("t"))
        assert content.recipe(session, "nobody", digest("r")) is None
        seen = []
        cursor = None
        while True:
            page = content.recipes(session, P, limit=2, cursor=cursor)
            seen += [(row.created_at, row.digest) for row in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert seen == sorted(seen, reverse=True)
        assert len(set(seen)) == 6
