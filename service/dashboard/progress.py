"""How far a job is: one line in words and the two numbers of its bar, for the first look and for the live stream alike."""

from dataclasses import dataclass

from service.dashboard.format import left, number, share, size
from service.records.jobs import Progress
from service.records.models import Job
from service.records.types import now


@dataclass(frozen=True, slots=True)
class Line:
    """`value` of `most` is the bar; `most` is None while nobody knows how much there is to do."""

    value: int
    most: int | None
    text: str


def progress_line(job: Job, progress: Progress) -> Line:
    """The progress of a job that is not final."""
    if job.state == "queued":
        return Line(0, None, "waiting for a worker")
    if job.type == "selfcheck" and progress.objects:
        text = f"{number(progress.objects_done)} of {number(progress.objects)} kernels"
        return Line(
            progress.objects_done, progress.objects, text + (" · stopping" if job.cancel_requested else "")
        )
    if not progress.bytes:
        return Line(0, None, "reading what there is to do")
    parts = [
        share(progress.bytes_done, progress.bytes),
        f"{size(progress.bytes_done)} of {size(progress.bytes)}",
    ]
    if progress.objects:
        parts.append(f"{number(progress.objects_done)} of {number(progress.objects)} objects")
    if job.cancel_requested:
        parts.append("stopping")
    elif progress.bytes_done >= progress.bytes:
        parts.append("putting it together")
    elif job.started_at and (rest := left(progress.bytes_done, progress.bytes, now() - job.started_at)):
        parts.append(rest)
    return Line(progress.bytes_done, progress.bytes, " · ".join(parts))
