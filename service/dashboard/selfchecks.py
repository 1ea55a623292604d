"""Pages of self-checks: what stands of every format on every device, and one self-check kernel by kernel."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ninfer_core.formats import FORMATS
from ninfer_core.selfcheck.result import KernelOutcome, Level
from service import jobs as job_cases
from service import selfchecks as cases
from service.dashboard.access import Form, SameOrigin, Submitting, Visiting
from service.dashboard.artifacts import Text
from service.dashboard.failures import PageRoute, Problem
from service.dashboard.format import clipped, duration, plural
from service.dashboard.progress import progress_line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES
from service.errors import SelfCheckNotFound
from service.evidence import Evidence, standing
from service.jobs import Sent
from service.records import jobs, selfchecks
from service.records.models import Job, SelfCheck, SelfCheckResult
from service.records.selfchecks import Wanted
from service.records.types import new_id, now
from service.selfchecks import Check, SelfCheckView
from service.workforce import SOMEBODY, Workforce, workforce

router = APIRouter(route_class=PageRoute)
CHECKS, DEVICES, WRONG = 20, 12, 8
Full = dict[tuple[str, str], SelfCheck]
LEVELS: Final = get_args(Level)
_DAY: Final = 86_400
# How old evidence may be, in days, to look like this; what is older looks like the last.
AGES: Final = ((1, "a day"), (7, "a week"), (30, "a month"), (None, "longer ago"))
_WORST: Final = ("failed", "error", "not_checked", "passed")


@dataclass(frozen=True, slots=True)
class Proof:
    """The evidence of one kernel as a square; `age` is the number of its shade."""

    evidence: Evidence
    age: int
    full: SelfCheck | None  # the full check whose pass stands, a later quick one notwithstanding

    @property
    def level(self) -> str:
        """How thoroughly it was proved: a full pass outlives later quick ones."""
        return "full" if self.full is not None else self.evidence.check.level

    @property
    def href(self) -> str:
        """The check that it rests on: the full one, where one stands."""
        return f"/selfchecks/{(self.full or self.evidence.check).id}?format={self.evidence.result.format}"

    @property
    def says(self) -> str:
        """What hovering over it says."""
        row = self.evidence.result
        words = row.operation if row.dtype is None else f"{row.operation} {row.dtype}"
        state = STATES[row.outcome if row.outcome != "error" else "kernel_error"].word
        return f"{words}: {state} ({self.level}){'' if self.evidence.current else ', no longer current'}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One format on one device; `checked_at` is the oldest of its evidence, `href` leads to the worst."""

    proofs: tuple[Proof, ...]
    state: str
    says: str
    href: str
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class Column:
    """A device, as it was checked last."""

    check: SelfCheck
    cells: dict[str, Cell]
    state: str  # the worst of all of its evidence


@router.get("/selfchecks")
def listing(visiting: Visiting, request: Request, cursor: Text = None) -> Response:
    """The matrix of formats and devices, then the self-checks, newest first."""
    with visiting.parts.database.read() as session:
        found = standing(session, visiting.project_id)
        full = _in_full(standing(session, visiting.project_id, Wanted(level="full")))
        listed = selfchecks.page(session, visiting.project_id, limit=CHECKS, cursor=cursor)
        counts = selfchecks.counts(session, [row.id for row in listed.items])
        alive = workforce(session, visiting.parts)
        waiting = [] if cursor else jobs.open_of_type(session, visiting.project_id, Check.type, CHECKS)
        progress = jobs.progress_of(session, [job.id for job in waiting])
    columns = _columns(found, full)
    shown = columns[:DEVICES]
    names = {name for column in shown for name in column.cells}
    wrong = [item for item in found if item.current and item.result.outcome in ("failed", "error")]
    return page(
        request,
        "selfchecks.html",
        columns=shown,
        more=len(columns) - len(shown),
        formats=[fmt.name for fmt in FORMATS if fmt.name in names],
        wrong=wrong[:WRONG],
        more_wrong=max(0, len(wrong) - WRONG),
        summary=_summary(found, full),
        waiting=[(job, progress_line(job, progress[job.id])) for job in waiting],
        live="/jobs/events?" + "&".join(f"job={job.id}" for job in waiting) if waiting else None,
        ages=[(number, words) for number, (_, words) in enumerate(AGES)],
        checks=[SelfCheckView(row, counts[row.id]) for row in listed.items],
        listed=listed,
        devices=_choices(columns),
        levels=LEVELS,
        alive=alive,
    )


@router.post("/selfchecks", dependencies=[SameOrigin])
def start(visiting: Submitting, sent: Form) -> Response:
    """Ask for a self-check."""
    device, level = sent.get("device") or cases.AUTO, sent.get("level", "")
    if level not in LEVELS or not cases.is_device(device):
        raise Problem(
            422, "Say which device, auto, cpu or cuda:0 and so on, and how thoroughly: quick or full."
        )
    request = Check(device, "quick" if level == "quick" else "full")
    job = job_cases.create(visiting.parts, visiting.project_id, request, Sent.of(new_id(), None))
    return RedirectResponse(f"/selfchecks/{job.id}", 303, HEADERS)


@router.get("/selfchecks/{selfcheck_id}")
def one(
    visiting: Visiting,
    request: Request,
    selfcheck_id: str,
    outcome: KernelOutcome | None = None,
    format: Text = None,  # noqa: A002  the member of the address
) -> Response:
    """A self-check, or the job that is to make it."""
    with visiting.parts.database.read() as session:
        check = selfchecks.get(session, visiting.project_id, _id(selfcheck_id))
        job = jobs.job(session, visiting.project_id, selfcheck_id)
        if check is None and (job is None or job.type != Check.type):
            raise _none()
        view = None if check is None else cases.viewed(session, check)
        is_open = job is not None and job.state not in jobs.FINAL
        progress = jobs.progress(session, selfcheck_id) if is_open else None
        alive = workforce(session, visiting.parts) if is_open else SOMEBODY
    rows: Sequence[SelfCheckResult] = () if view is None else view.results
    state = job.state if view is None and job is not None else check.outcome if check is not None else "error"
    return page(
        request,
        "selfcheck.html",
        id=selfcheck_id,
        check=check,
        view=view,
        job=job,
        state=STATES[state],
        why=_why(view, job, alive),
        took=None if job is None else duration(job.started_at, job.finished_at),
        is_open=is_open,
        progress=progress_line(job, progress) if job is not None and progress is not None else None,
        rows=_worst_first(
            row for row in rows if outcome in (None, row.outcome) and format in (None, "", row.format)
        ),
        formats=list(dict.fromkeys(row.format for row in rows)),
        outcome=outcome,
        format=format,
        live=f"/jobs/events?job={selfcheck_id}" if is_open else None,
    )


@router.get("/selfchecks/{selfcheck_id}/document.json")
def document(visiting: Visiting, selfcheck_id: str) -> Response:
    """The document, as the command line writes it."""
    try:
        view = cases.one(visiting.parts, visiting.project_id, _id(selfcheck_id))
    except SelfCheckNotFound:
        raise _none() from None
    disposition = f'attachment; filename="selfcheck-{selfcheck_id}.json"'
    return JSONResponse(cases.document(view), headers=dict(HEADERS) | {"Content-Disposition": disposition})


def _id(text: str) -> str:
    """Itself. Raises: Problem for what is no id, which leads nowhere."""
    if re.fullmatch("[0-9a-f]{32}", text) is None:
        raise _none()
    return text


def _none() -> Problem:
    return Problem(404, "There is no such self-check.")


def _in_full(found: Iterable[Evidence]) -> Full:
    """The full checks whose pass stands, by device and key of the kernel's evidence."""
    return {
        (item.check.device_key, item.result.key): item.check
        for item in found
        if item.result.outcome == "passed"
    }


def _proved_by(item: Evidence, full: Full) -> SelfCheck | None:
    """The full check that stands behind a pass."""
    if item.result.outcome != "passed":
        return None
    return full.get((item.check.device_key, item.result.key))


def _columns(found: Iterable[Evidence], full: Full) -> list[Column]:
    """The devices, those checked last first."""
    by_device: dict[str, list[Evidence]] = {}
    for item in found:
        by_device.setdefault(item.check.device_key, []).append(item)
    columns = []
    for items in by_device.values():
        by_format: dict[str, list[Evidence]] = {}
        for item in items:
            by_format.setdefault(item.result.format, []).append(item)
        cells = {name: _cell(name, some, full) for name, some in by_format.items()}
        newest = max((item.check for item in items), key=lambda check: check.created_at)
        columns.append(Column(newest, cells, _worst(cell.state for cell in cells.values())))
    return sorted(columns, key=lambda column: column.check.created_at, reverse=True)


def _cell(name: str, items: Sequence[Evidence], full: Full) -> Cell:
    moment = now()
    proofs = tuple(
        Proof(item, _age((moment - item.check.created_at).total_seconds()), _proved_by(item, full))
        for item in items
    )
    outcomes = Counter(item.result.outcome for item in items if item.current)
    said = [f"{outcomes[word]} {STATES[_state(word)].word}" for word in _WORST if outcomes[word]]
    passed = [proof for proof in proofs if proof.evidence.passed]
    if passed:
        said[-1] += f" ({_levels(sum(proof.level == 'full' for proof in passed), len(passed))})"
    expired = len(items) - outcomes.total()
    if expired:
        said.append(f"{expired} no longer current")
    worst = min(items, key=lambda item: (_WORST.index(item.result.outcome), item.check.created_at))
    return Cell(
        proofs,
        _worst(map(_state, outcomes)) if outcomes else "expired",
        ", ".join(said),
        f"/selfchecks/{worst.check.id}?format={name}",
        min(item.check.created_at for item in items),
    )


def _levels(full: int, passed: int) -> str:
    if full == passed:
        return "full"
    return f"{full:,} in full" if full else "quick"


def _state(outcome: str) -> str:
    return "kernel_error" if outcome == "error" else outcome


def _worst(states: Iterable[str]) -> str:
    order = (*map(_state, _WORST[:3]), "expired", "passed")
    return min(states, key=order.index)


def _age(seconds: float) -> int:
    return next(number for number, (days, _) in enumerate(AGES) if days is None or seconds <= days * _DAY)


def _summary(found: Sequence[Evidence], full: Full) -> str:
    if not found:
        return "No device has been checked yet. A worker checks its own as it starts."
    current = [item for item in found if item.current]
    wrong = sum(item.result.outcome in ("failed", "error") for item in current)
    if wrong:
        return f"{wrong:,} of {plural(len(current), 'kernel')} gave a wrong answer, or none."
    devices = len({item.check.device_key for item in current})
    if not current:
        return "Nothing that was proved is current: kernels or devices have changed since. A worker checks its own as it starts."
    unchecked = sum(item.result.outcome == "not_checked" for item in current)
    rest = f"; {plural(unchecked, 'kernel')} could not be checked" if unchecked else ""
    thorough = sum(_proved_by(item, full) is not None for item in current)
    proved = f"{plural(len(current) - unchecked, 'kernel')} on {plural(devices, 'device')} proved right as they are now"
    return f"{proved}, {f'{thorough:,} in full' if thorough else 'none in full'}{rest}."


def _choices(columns: Sequence[Column]) -> list[str]:
    """Devices that some check has seen; the processor is always there."""
    return [cases.AUTO, "cpu", *sorted({column.check.device for column in columns} - {"cpu"})]


def _worst_first(rows: Iterable[SelfCheckResult]) -> list[SelfCheckResult]:
    return sorted(rows, key=lambda row: (_WORST.index(row.outcome), row.ordinal))


def _why(view: SelfCheckView | None, job: Job | None, alive: Workforce) -> str:
    if view is not None:
        return _found(view)
    match None if job is None else job.state:
        case "queued":
            return alive.waits
        case "cancelled":
            return "It was stopped before it was done; a part of it proves nothing."
        case "error":
            detail = clipped(((job and job.error) or {}).get("detail") or "no reason was recorded")
            return f"It could not be done: {detail}" + ("" if detail.endswith(".") else ".")
    return "A worker checks its device now. This page follows along."


def _found(view: SelfCheckView) -> str:
    counts = view.counts
    wrong = [row for row in view.results if row.outcome in ("failed", "error")]
    if wrong:
        named = ", ".join(row.kernel for row in wrong[:3]) + (" and others" if len(wrong) > 3 else "")
        return f"{plural(len(wrong), 'kernel')} gave a wrong answer, or none: {named}."
    passed = counts.get("passed", 0)
    if counts.get("not_checked"):
        return f"{plural(passed, 'kernel')} gave every answer right; {plural(counts['not_checked'], 'kernel')} could not be checked."
    return f"{plural(passed, 'kernel')} gave every answer right, bit for bit or within the named criterion."
