"""Pages of runs: the list by verdict, and one run with everything that it found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response

from service import targets
from service.dashboard.access import Visiting, Visitor
from service.dashboard.against import against
from service.dashboard.artifacts import ObjectKind, Text, Word, formats_of
from service.dashboard.failures import PageRoute, missing
from service.dashboard.progress import progress_line
from service.dashboard.render import page
from service.dashboard.states import STATES
from service.dashboard.verdicts import Seen, check_rows, detects, taken_over, why
from service.jobs import JobState
from service.records import answers, content, jobs, runs, views
from service.records.models import Finding, Object, Recipe, Result, Run
from service.records.pages import Page
from service.workforce import SOMEBODY, workforce

router = APIRouter(route_class=PageRoute)
RUNS, OBJECTS, FINDINGS = 50, 100, 20
Outcome = Literal["all", "passed", "failed", "not_checked"]
Order = Literal["worst", "ordinal"]
OfArtifact = Annotated[str | None, Query(pattern="^sha256:[0-9a-f]{64}$")]
RunId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.get("/runs")
def listing(
    visiting: Visiting,
    request: Request,
    state: JobState | None = None,
    artifact: OfArtifact = None,
    cursor: Text = None,
) -> Response:
    """The runs, newest first, of every artifact or of one. A verify job's state is its run's verdict once there is one, so jobs are what is listed."""
    with visiting.parts.database.read() as session:
        of = content.find_artifact(session, visiting.project_id, artifact) if artifact is not None else None
        if artifact is not None and of is None:
            raise missing("artifact")
        listed = jobs.jobs(
            session,
            visiting.project_id,
            limit=RUNS,
            cursor=cursor,
            state=state,
            type="verify",
            artifact_id=of.id if of is not None else None,
        )
        by_job = answers.of_jobs(session, Run, visiting.project_id, [job.id for job in listed.items])
        held = views.artifacts(session, visiting.project_id, {run.artifact_id for run in by_job.values()})
        words = against(session, visiting.project_id, by_job.values())
    seen = [
        Seen(by_job[job.id], job, held[by_job[job.id].artifact_id], words[job.id])
        for job in listed.items
        if job.id in by_job
    ]
    return page(
        request, "runs.html", runs=seen, listed=listed, state=state, of=of, choices=get_args(JobState)
    )


@dataclass(frozen=True, slots=True)
class Filters:
    """What of a run's findings and objects is asked for."""

    outcome: Outcome | None = None
    kind: ObjectKind | None = None
    format: Text = None
    name: Text = None
    order: Order | None = None
    objects: Text = None  # where in the list of objects
    severity: Literal["error", "advisory"] | None = None
    code: Word = None
    check: Word = None
    object: Text = None
    errors: Text = None  # where in the list of errors
    advisories: Text = None

    @property
    def of_findings(self) -> bool:
        """Whether only some findings are asked for."""
        return any((self.severity, self.code, self.check, self.object))

    @property
    def of_objects(self) -> bool:
        """Whether only some objects are asked for."""
        return any((self.kind, self.format, self.name))

    def ordered(self, shown: str | None) -> Order:
        """The order of the objects; the few that did not pass stand as in the file, which an index knows."""
        return self.order or ("ordinal" if shown in ("failed", "not_checked") else "worst")

    def shown(self, counts: Mapping[str, int]) -> str | None:
        """The outcome whose objects are shown: without a wish, those that a person would look at first."""
        if self.outcome is None and not self.of_objects:
            return next((outcome for outcome in ("failed", "not_checked") if counts.get(outcome)), None)
        return None if self.outcome == "all" else self.outcome


@router.get("/runs/{run_id}")
def run(
    visiting: Visiting, request: Request, run_id: RunId, asked: Annotated[Filters, Depends()]
) -> Response:
    """One run."""
    with visiting.parts.database.read() as session:
        seen = find(session, visiting, run_id)
        progress = jobs.progress(session, seen.job.id)
        alive = workforce(session, visiting.parts) if seen.state == "queued" else SOMEBODY
        counts = runs.counts(session, seen.run.id) if seen.coverage is not None else {}
        first = runs.findings(session, run_id, limit=1, cursor=None, severity="error").items
        context: dict[str, Any] = {
            "errors": _findings(session, run_id, asked, "error", asked.errors),
            "advisories": _findings(session, run_id, asked, "advisory", asked.advisories),
            "counts": counts,
            "shown": asked.shown(counts),
            "order": asked.ordered(asked.shown(counts)),
            "files": content.files(session, seen.artifact.id),
            "results": None,
        }
        if seen.report is not None:
            context["results"] = results = _results(session, run_id, asked, asked.shown(counts))
            context["made"] = views.made(
                session, seen.artifact.id, [item.ordinal for item, _ in results.items]
            )
        recipe = seen.run.recipe_digest
        row = content.recipe(session, visiting.project_id, recipe) if recipe else None
        context["recipe_id"] = row.recipe_id if row is not None else None
        context["profiles"] = _profiles(seen, row)
        target = seen.run.target_digest
        context["target"] = targets.listed(session, visiting.project_id, target) if target else None
        context["checkpoints"] = views.checkpoints(
            session, visiting.project_id, (seen.run.checkpoints or {}).values()
        )
    return page(
        request,
        "run.html",
        seen=seen,
        state=STATES[seen.shown],
        why=why(seen, first[0] if first else None, progress, alive),
        progress=progress_line(seen.job, progress),
        checks=check_rows(seen),
        taken=taken_over(seen),
        detects=detects(seen),
        asked=asked,
        formats=formats_of(seen.artifact.kind, asked.format),
        live=f"{seen.address}/events" if seen.is_open else None,
        **context,
    )


def _profiles(seen: Seen, recipe: Recipe | None) -> dict[str, int]:
    """The encoder profiles that objects were derived with, and their versions: those that the recipe encodes by."""
    known = (seen.report or {}).get("versions", {}).get("encoder_profiles", {})
    rules = json.loads(recipe.document).get("rules", ()) if recipe is not None and known else ()
    used = {rule.get("encode") for rule in rules}
    return {name: version for name, version in known.items() if name in used}


def find(session: Session, visiting: Visitor, run_id: str) -> Seen:
    """A run of the visitor's project. Raises: Problem."""
    found = runs.run(session, visiting.project_id, run_id)
    if found is None:
        raise missing("run")
    job = jobs.job(session, visiting.project_id, found.job_id)
    artifact = content.artifact(session, found.artifact_id)
    if job is None or artifact is None:
        raise missing("run")
    return Seen(found, job, artifact)


def _findings(
    session: Session, run_id: str, asked: Filters, severity: str, cursor: str | None
) -> Page[Finding]:
    if asked.severity not in (None, severity):
        return Page([], None)
    return runs.findings(
        session,
        run_id,
        limit=FINDINGS,
        cursor=cursor,
        severity=severity,
        code=asked.code,
        check=asked.check,
        object=asked.object,
    )


def _results(
    session: Session, run_id: str, asked: Filters, outcome: str | None
) -> Page[tuple[Object, Result]]:
    return runs.results(
        session,
        run_id,
        limit=OBJECTS,
        cursor=asked.objects,
        outcome=outcome,
        format=asked.format,
        kind=asked.kind,
        name=asked.name,
        order=asked.ordered(outcome),
    )
