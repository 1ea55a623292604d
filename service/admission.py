"""Which jobs go into the engine's line: as many of a project as it has room for, so that no project waits behind all of another's.

A job is stored first, and admitted at once where there is room; else when one before it begins or ends. Room is what a
project may have running, where it has such a bound, and never more than some jobs of a lane in line at a time.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Final

from sqlalchemy.orm import Session

from service.artifacts import start
from service.lanes import BULK, LANES
from service.parts import Parts
from service.queue import job_workflow_id
from service.records import lanes
from service.records.models import Job, Project
from service.settings import Settings

Counts = Mapping[tuple[str, str], int]  # admitted jobs by lane and state

IN_LINE: Final = 100  # jobs of one project in one lane that are in line and have not begun
_AT_ONCE: Final = IN_LINE // 4  # the line is filled up some at a time: each filling is a transaction


def admit(session: Session, settings: Settings, project_id: str) -> list[Job]:
    """Admit what the project has room for; these are to be put in line once the transaction has ended."""
    project = lanes.project(session, project_id)
    if project is None or project.deleted_at is not None:
        return []
    if bound_of(settings, project) is not None:
        # Two that count at once would both find the room that only one of them has.
        project = lanes.project(session, project_id, hold=True)
    found: list[Job] = []
    for lane in LANES:
        room = _room(lane, lanes.admitted(session, project_id), bound_of(settings, project))
        if room > 0:
            found += lanes.admit(session, project_id, lane, room)
    return found


def has_room(session: Session, settings: Settings, project_id: str, lane: str) -> bool:
    """Whether a new job may go in line at once: there is room for it, and no other of its lane waits."""
    project = lanes.project(session, project_id)
    if project is None or project.deleted_at is not None:
        return False
    if bound_of(settings, project) is not None:
        project = lanes.project(session, project_id, hold=True)  # as in `admit`
    room = _room(lane, lanes.admitted(session, project_id), bound_of(settings, project))
    return room > 0 and not lanes.waits(session, project_id, lane)


def admit_waiting(parts: Parts, project_id: str | None = None) -> None:
    """Admit what waits and now has room, of one project or of all: in turns, so that theirs come to be mixed in the line.

    Anybody may do it at any time, and several at once. Raises: SQLAlchemyError.
    """
    with parts.database.read() as session:
        waiting = lanes.waiting_projects(session) if project_id is None else [project_id]
        roomy = [found for found in waiting if _worth(session, parts.settings, found)]
    admitted = []
    for found in roomy:
        with parts.database.write() as session:
            admitted.append(admit(session, parts.settings, found))
    put_in_line(parts, (job for job in chain.from_iterable(zip_longest(*admitted)) if job is not None))


def put_in_line(parts: Parts, jobs: Iterable[Job]) -> None:
    """Tell the engine of admitted jobs; what it does not hear now, it hears of by the workers' sweep."""
    for job in jobs:
        epoch = (job.epoch,) if job.epoch else ()
        start(
            parts,
            job.type,
            job_workflow_id(job.id, job.epoch),
            job.id,
            *epoch,
            lane=job.lane,
            priority=job.priority,
        )


def waits_for_room(session: Session, settings: Settings, project_id: str) -> str:
    """What a job that is not admitted waits for."""
    most = bound_of(settings, lanes.project(session, project_id))
    if most is None:
        return "It waits behind other jobs of its project."
    return f"It waits until fewer jobs of its project run; {most:,} may at a time, and bulk work leaves one place to others."


def bound_of(settings: Settings, project: Project | None) -> int | None:
    """How many jobs of a project run at a time; None for no bound."""
    if project is not None and project.max_running_jobs is not None:
        return project.max_running_jobs
    return settings.max_running_jobs


def _room(lane: str, counts: Counts, bound: int | None) -> int:
    room = IN_LINE - counts.get((lane, "queued"), 0)
    if bound is None:
        return room
    room = min(room, bound - sum(counts.values()))
    if lane == BULK:
        # The last place is kept for somebody who waits: bulk work may hold its places for hours.
        most = max(1, bound - 1)
        room = min(room, most - sum(count for (of, _state), count in counts.items() if of == BULK))
    return room


def _worth(session: Session, settings: Settings, project_id: str) -> bool:
    """Whether jobs wait for which there is enough room now."""
    most = bound_of(settings, lanes.project(session, project_id))
    counts = lanes.admitted(session, project_id)
    enough = 1 if most is not None else _AT_ONCE
    return any(
        _room(lane, counts, most) >= enough and lanes.waits(session, project_id, lane) for lane in LANES
    )
