"""What becomes an edge: claims within bounds, and proofs only of what was proved."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy.orm import Session

from ninfer_core.recipes import Plan
from ninfer_core.verify.report import Report
from worker import facts

NOBODY = cast(Session, None)  # no checkpoint is looked up


def report(*evidence: str | None, parity: str = "full") -> Report:
    """A report that passed, with an object for each evidence."""
    objects = [
        SimpleNamespace(name=f"o{place}", format="BF16", coverage="full", evidence=one)
        for place, one in enumerate(evidence)
    ]
    checks = [
        SimpleNamespace(name=name, outcome="passed", coverage=extent)
        for name, extent in (("values", "full"), ("parity", parity))
    ]
    told = SimpleNamespace(verdict="passed", objects=objects, checks=checks, target=None)
    return cast(Report, told)


PLAN = cast(Plan, SimpleNamespace(recipe=SimpleNamespace(digest="sha256:r"), objects=()))


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (report("copied-exact", "derived-exact", "within-bound"), {"tool_version", "format", "recipe"}),
        (report("copied-exact", "legal-only"), {"tool_version", "format"}),
        (report("copied-exact", None), {"tool_version", "format"}),
        (report("copied-exact", parity="sampled"), {"tool_version", "format"}),
        (report("copied-exact", parity="reused"), {"tool_version", "format"}),
        (report(), set()),
    ],
)
def test_a_recipe_is_verified_only_where_every_object_is_tied_to_it(given: Report, kinds: set[str]) -> None:
    assert {fact.kind for fact in facts.verified(NOBODY, "p", given, PLAN, {})} == kinds


@pytest.mark.parametrize(
    "told",
    [{"n": list(range(20_000))}, {"n": "x" * 2_000_000}, {"x" * 2_000_000: 1}],
    ids=["values", "text", "name"],
)
def test_what_an_artifact_says_is_kept_within_bounds(told: dict[str, Any]) -> None:
    assert facts.claims({"provenance": told}) == {"too_long": True}
    assert facts.claims({"provenance": {"n": [1, "x"]}}) == {"provenance": {"n": [1, "x"]}}


def test_of_many_formats_some_become_edges() -> None:
    found = facts.claimed(None, None, None, [f"F{number}" for number in range(5_000)])
    assert len(found) == 64
