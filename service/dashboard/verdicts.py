"""A run as its page says it: the state, the sentence that says why, the rows of its checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ninfer_core.verify.checks import CHECKS, MEANINGS
from service.dashboard.address import written
from service.dashboard.coverage import Bar, bar
from service.dashboard.format import clipped, duration, number, plain_name, plural, size
from service.records.jobs import FINAL, Progress
from service.records.models import Artifact, Finding, Job, Run
from service.workforce import Workforce


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a sentence; `is_name` sets it as a name, `href` makes it a link."""

    text: str
    href: str | None = None
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A run with its job and its artifact."""

    run: Run
    job: Job
    artifact: Artifact
    against: tuple[str, ...] = ()  # what it was held against, in lists

    @property
    def state(self) -> str:
        """Where the job is; at its end that is the verdict, or why there is none."""
        return self.job.state

    @property
    def shown(self) -> str:
        """The key of the state as it is shown: a pass on samples, or out of earlier runs, never looks like a plain one."""
        return shown(self.state, self.report)

    @property
    def coverage(self) -> Bar | None:
        """The bar; None until the run is final."""
        return bar(self.report)

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The report but its lists; None unless the job ended with just this verdict."""
        return self.run.report if self.run.verdict == self.job.state else None

    @property
    def address(self) -> str:
        """Where its page is."""
        return f"/runs/{self.run.id}"

    @property
    def asked(self) -> str:
        """The checks that were asked for."""
        return "all" if set(self.run.checks) == set(CHECKS) else ", ".join(self.run.checks)

    @property
    def took(self) -> str | None:
        """How long the job ran."""
        return duration(self.job.started_at, self.job.finished_at)

    @property
    def is_open(self) -> bool:
        """Whether there is something to wait for."""
        return self.state not in FINAL


def shown(state: str, report: Mapping[str, Any] | None) -> str:
    """The key of the states for a job's state and the report of its run."""
    if state != "passed" or report is None:
        return state
    extents = {check["coverage"] for check in report["checks"]}
    if "sampled" in extents:
        return "passed_sampled"
    return "passed_reused" if "reused" in extents or report["coverage"]["objects"]["reused"] else "passed"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check of a run: `state` is a key of the states; `objects` and `bytes` are what it covered.

    `extent` says how, where it did not pass and not all was read by this run.
    """

    name: str
    meaning: str
    state: str
    objects: int | None
    bytes: int | None
    reason: str
    extent: str = ""


_EXTENTS: Final = {"sampled": "on a sample", "reused": "taken over"}


def check_rows(seen: Seen) -> list[CheckRow]:
    """The checks of a final run, or those that were asked for."""
    if seen.report is None:
        state = "asked" if seen.is_open else "not_checked"
        return [CheckRow(check, MEANINGS.get(check, ""), state, None, None, "") for check in seen.run.checks]
    return [_check_row(check) for check in seen.report["checks"]]


def _check_row(check: Mapping[str, Any]) -> CheckRow:
    outcome, extent = check["outcome"], check["coverage"]
    state = "partly" if outcome == "not_checked" and extent == "partial" else outcome
    if outcome == "passed" and extent in _EXTENTS:
        state = extent
    asked = outcome != "not_asked"
    return CheckRow(
        check["name"],
        MEANINGS.get(check["name"], ""),
        state,
        check["objects"] if asked else None,
        check["bytes"] if asked else None,
        clipped(check["reason"] or ""),
        _EXTENTS.get(extent, "") if outcome != "passed" else "",
    )


def taken_over(seen: Seen) -> list[tuple[str, int]]:
    """The runs that results were taken over from, and how many objects of each."""
    decided = (seen.run.reuse or {}).get("runs", {}) if seen.report is not None else {}
    return [
        (run_id, sum(last - first + 1 for first, last in spans)) for run_id, spans in sorted(decided.items())
    ]


def detects(seen: Seen) -> str | None:
    """What a sample can find, in words; None where everything was compared."""
    sample = (seen.report or {}).get("sample")
    if not sample:
        return None
    found = sample["detects"]
    chances = (
        ("one wrong row", found["one_row"]),
        ("one wrong row in a thousand", found["one_permille"]),
        ("one in a hundred", found["one_percent"]),
    )
    return ", ".join(f"{what} with a chance of {_chance(chance)}" for what, chance in chances)


def _chance(probability: float) -> str:
    if probability >= 1:
        return "100 %"
    percent = 100 * probability
    if percent > 99.9:
        return "over 99.9 %"
    return f"{percent:.1f} %" if percent >= 0.1 else "under 0.1 %"


def why(seen: Seen, first: Finding | None, progress: Progress, workers: Workforce) -> list[Piece]:
    """The sentence under the verdict; `first` is the first error finding."""
    match seen.state:
        case "passed":
            limits = "; ".join(_limits(seen))
            lead = f"{limits[0].upper()}{limits[1:]}. " if limits else ""
            return [Piece(f"{lead}{_covered(seen)}; {_nothing_left(seen)}.")]
        case "failed":
            return _failed(seen, first)
        case "incomplete":
            return [Piece(f"Nothing wrong was found, but not everything was checked: {_open(seen)}.")]
        case "error":
            return [Piece(_error(seen.job.error))]
        case "cancelled":
            return [Piece(_stopped(progress))]
        case "running":
            return [Piece("A worker reads it now. This page follows along.")]
    return [Piece(workers.waits)]


def _failed(seen: Seen, first: Finding | None) -> list[Piece]:
    checks = [check["name"] for check in _checks(seen) if check["outcome"] == "failed"]
    lead = f"{_listed(checks).capitalize()} failed" if checks else "It failed"
    if first is None:
        return [Piece(f"{lead}.")]
    pieces = [Piece(f"{lead}: ")]
    about = first.document.get("about", "artifact")
    if first.object is not None:
        href = written(seen.address, {"object": first.object}) + "#findings"
        pieces += [Piece(plain_name(first.object), href, True), Piece(": ")]
    elif about != "artifact":
        pieces.append(Piece(f"the {about}: "))
    message = clipped(first.document["message"], 320)
    pieces.append(Piece(message if message.endswith((".", "!", "?")) else f"{message}."))
    more = (seen.run.errors or 1) - 1
    if more:
        pieces += [Piece(" "), Piece(f"{plural(more, 'more error')}.", f"{seen.address}#findings")]
    unchecked = _unchecked(seen)
    if unchecked:
        pieces.append(Piece(f" Not wholly checked: {_listed(unchecked)}."))
    return pieces


def _covered(seen: Seen) -> str:
    report = seen.report or {}
    whole = report.get("coverage", {}).get("objects", {}).get("total", 0)
    done = [check["name"] for check in _checks(seen) if check["outcome"] == "passed"]
    return f"{plural(whole, 'object')} of {size(seen.artifact.bytes)} passed {_listed(done)}"


def _limits(seen: Seen) -> list[str]:
    """What keeps a pass from being one over every byte, here and now."""
    report = seen.report or {}
    sampled, reused = (
        [check["name"] for check in _checks(seen) if check["coverage"] == extent]
        for extent in ("sampled", "reused")
    )
    said = []
    if sampled:
        sample = report.get("sample")
        rows = f" ({number(sample['rows'])} of {number(sample['of_rows'])} rows)" if sample else ""
        said.append(f"{_listed(sampled)} on a sample only{rows}")
    objects = report.get("coverage", {}).get("objects", {})
    if reused or objects.get("reused"):
        part = objects["reused"] != objects["total"]
        counted = f" ({objects['reused']:,} of {plural(objects['total'], 'object')})" if part else ""
        said.append(
            f"{_listed(reused) if reused else 'some results'} taken over from an earlier run{counted}"
        )
    return said


def _nothing_left(seen: Seen) -> str:
    left_out = [check["name"] for check in _checks(seen) if check["outcome"] == "not_asked"]
    if left_out:
        return f"nothing left unchecked of what was asked ({_listed(left_out)} not asked)"
    return "nothing left unchecked"


def _open(seen: Seen) -> str:
    reasons = [
        f"{check['name']} ({clipped(check['reason'], 300)})" if check["reason"] else check["name"]
        for check in _checks(seen)
        if check["outcome"] == "not_checked"
    ]
    if reasons:
        return "; ".join(reasons)
    coverage = bar(seen.report)
    rest = coverage.segments[-1].objects if coverage else 0
    return f"{plural(rest, 'object')} could not be wholly checked"


def _unchecked(seen: Seen) -> list[str]:
    return [
        check["name"]
        for check in _checks(seen)
        if check["outcome"] == "not_checked"
        or (check["outcome"] == "failed" and check["coverage"] not in ("full", "reused"))
    ]


def _error(error: Mapping[str, Any] | None) -> str:
    detail = clipped((error or {}).get("detail") or "no reason was recorded")
    return f"No check could run: {detail}" + ("" if detail.endswith(".") else ".")


def _stopped(progress: Progress) -> str:
    if not progress.bytes:
        return "It was stopped before it began; nothing was checked."
    return f"It was stopped after {size(progress.bytes_done)} of {size(progress.bytes)}; a part of it is no answer."


def _checks(seen: Seen) -> Sequence[Mapping[str, Any]]:
    checks: Sequence[Mapping[str, Any]] = (seen.report or {}).get("checks", ())
    return checks


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "no check"
