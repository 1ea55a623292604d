"""Edges, identities and targets: written once, found again from either side, page by page, in one project only."""

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from service.records import content, identities, provenance, targets
from service.records.database import Database
from service.records.errors import BadCursor
from service.records.models import Artifact, Target
from service.records.provenance import Fact
from service.records.types import now
from tests.service.records.build import HOSTILE, P, artifact, digest, files, listed, other_project, sha


def stored(session: Session, *names: str) -> list[Artifact]:
    """Artifacts in the order in which they were stored."""
    rows = [artifact(name, id=f"{number:032x}") for number, name in enumerate(names, 1)]
    return [content.add_artifact(session, row, files("a.ninfer"))[0] for row in rows]


def found(session: Session, *, limit: int = 10, **conditions: str) -> list[str]:
    """Entries of the artifacts of every page, in order."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = provenance.derived(session, P, conditions, limit=limit, cursor=cursor)  # type: ignore[arg-type]
        names += [item.artifact.entry for item in page.items]
        cursor = page.next
        if cursor is None:
            return names


def test_a_fact_is_kept_once_for_each_basis_with_who_was_first(database: Database) -> None:
    with database.write() as session:
        (one,) = stored(session, "a")
        fact = Fact("recipe", digest("r"))
        provenance.save(session, one, "claimed", one.id, [fact, fact])
        provenance.save(session, one, "verified", "1" * 32, [fact])
        provenance.save(session, one, "verified", "2" * 32, [fact])
    with database.read() as session:
        edges = provenance.of_artifact(session, one.id)
    assert [(edge.basis, edge.origin_id) for edge in edges] == [("claimed", one.id), ("verified", "1" * 32)]


def test_one_checkpoint_in_two_roles_is_two_facts(database: Database) -> None:
    with database.write() as session:
        (one,) = stored(session, "a")
        roles = [Fact("checkpoint", digest("c"), role) for role in ("base", "nvfp4")]
        provenance.save(session, one, "verified", "1" * 32, roles)
    with database.read() as session:
        assert [edge.role for edge in provenance.of_artifact(session, one.id)] == ["base", "nvfp4"]
        assert found(session, checkpoint=digest("c")) == ["a.ninfer"]


def test_every_condition_must_hold_and_pages_go_on_where_they_ended(database: Database) -> None:
    with database.write() as session:
        rows = stored(session, "a", "b", "c", "d")
        for row in rows:
            provenance.save(session, row, "converted", "1" * 32, [Fact("encoder_profile", "P")])
            provenance.save(session, row, "verified", "2" * 32, [Fact("encoder_profile", "P")])
        for row in rows[::2]:
            provenance.save(session, row, "claimed", row.id, [Fact("format", "Q4"), Fact("recipe", "P")])
    with database.read() as session:
        for limit in (1, 2, 3, 10):
            assert found(session, encoder_profile="P", limit=limit) == [f"{name}.ninfer" for name in "dcba"]
        assert found(session, encoder_profile="P", format="Q4", limit=1) == ["c.ninfer", "a.ninfer"]
        assert found(session, recipe="P", encoder_profile="P", format="Q4") == ["c.ninfer", "a.ninfer"]
        assert found(session, format="Q5") == found(session, encoder_profile="P", target="P") == []
        page = provenance.derived(session, P, {"encoder_profile": "P", "format": "Q4"}, limit=1)
        assert [(edge.kind, edge.value, edge.basis) for edge in page.items[0].edges] == [
            ("encoder_profile", "P", "converted"),
            ("encoder_profile", "P", "verified"),
            ("format", "Q4", "claimed"),
        ]


def test_what_few_artifacts_have_is_looked_up_before_what_most_have(database: Database) -> None:
    with database.write() as session:
        rows = stored(session, *"abcdefgh")
        for row in rows:
            provenance.save(session, row, "converted", "1" * 32, [Fact("recipe", "r"), Fact("target", "t")])
        provenance.save(session, rows[2], "claimed", rows[2].id, [Fact("format", "rare")])
    told: list[str] = []
    with database.read() as session:
        event.listen(database.engine, "before_cursor_execute", lambda *given: told.append(str(given[3])))
        assert found(session, recipe="r", target="t", format="rare") == ["c.ninfer"]
    driving = next(given for given in told[3:] if "rare" in given)
    assert driving.index("rare") < driving.index("recipe") < driving.index("target")


def test_a_basis_leaves_the_others_out(database: Database) -> None:
    with database.write() as session:
        one, two = stored(session, "a", "b")
        provenance.save(session, one, "claimed", one.id, [Fact("recipe", "r")])
        provenance.save(session, two, "verified", "1" * 32, [Fact("recipe", "r")])
    with database.read() as session:
        verified = provenance.derived(session, P, {"recipe": "r"}, basis="verified", limit=5)
        assert [item.artifact.entry for item in verified.items] == ["b.ninfer"]
        assert found(session, recipe="r") == ["b.ninfer", "a.ninfer"]


def test_a_query_without_a_condition_and_a_foreign_cursor_are_refused(database: Database) -> None:
    with database.read() as session:
        with pytest.raises(ValueError, match="condition"):
            provenance.derived(session, P, {}, limit=1)
        with pytest.raises(BadCursor):
            provenance.derived(session, P, {"recipe": "r"}, limit=1, cursor="bm8")


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_values_may_be_anything(database: Database, value: str) -> None:
    with database.write() as session:
        (one,) = stored(session, "a")
        provenance.save(session, one, "claimed", one.id, [Fact("checkpoint", value, value)])
    with database.read() as session:
        assert [(edge.value, edge.role) for edge in provenance.of_artifact(session, one.id)] == [
            (value, value)
        ]
        assert found(session, checkpoint=value) == ["a.ninfer"]
        assert found(session, checkpoint=value + "x") == []


def test_where_else_a_tensor_lies(database: Database) -> None:
    with database.write() as session:
        first, second = listed(session, 4, "a"), listed(session, 3, "b")
        identities.save(session, first, [(0, digest("t")), (1, digest("u")), (3, digest("t"))])
        identities.save(session, second, [(2, digest("t"))])
        identities.save(session, second, [(2, digest("another"))])  # what is known of a place stands
    with database.read() as session:
        assert identities.of_artifact(session, first.id) == {0: digest("t"), 1: digest("u"), 3: digest("t")}
        assert identities.identity(session, second.id, 2) == digest("t")
        assert identities.identity(session, second.id, 0) is None
        places: list[tuple[str, int]] = []
        cursor: str | None = None
        for _ in range(3):
            page = identities.occurrences(session, P, digest("t"), limit=1, cursor=cursor)
            places += [(item.artifact.id, item.object.ordinal) for item in page.items]
            cursor = page.next
        assert cursor is None
        assert places == sorted([(first.id, 0), (first.id, 3), (second.id, 2)])
        assert identities.occurrences(session, P, digest("another"), limit=5).items == []


def test_another_project_sees_nothing(database: Database) -> None:
    with database.write() as session:
        other = other_project(session)
        one = listed(session, 1, "a")
        identities.save(session, one, [(0, digest("t"))])
        provenance.save(session, one, "verified", "1" * 32, [Fact("recipe", "r")])
        targets.add_target(session, target("t"))
    with database.read() as session:
        assert identities.occurrences(session, other, digest("t"), limit=5).items == []
        assert provenance.derived(session, other, {"recipe": "r"}, limit=5).items == []
        assert targets.target(session, other, digest("t")) is None
        assert targets.targets(session, other, limit=5).items == []


def target(name: str) -> Target:
    """A stored target."""
    return Target(
        project_id=P,
        digest=digest(name),
        model_id="m",
        weights_id="w",
        key=None,
        inventory_sha256=sha(name),
        object_count=3,
        document="{}",
        created_at=now(),
    )


def test_targets_newest_first(database: Database) -> None:
    with database.write() as session:
        for name in ("a", "b", "c"):
            assert targets.add_target(session, target(name))
        assert not targets.add_target(session, target("a"))
    with database.read() as session:
        first = targets.targets(session, P, limit=2)
        rest = targets.targets(session, P, limit=2, cursor=first.next)
        assert [row.digest for row in (*first.items, *rest.items)] == [digest(name) for name in "cba"]
        assert rest.next is None
        assert len(targets.of_identity(session, P, "m", "w", 2)) == 2
        assert targets.of_identity(session, P, "m", "other", 2) == []
