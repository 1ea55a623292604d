"""Reasons why a job could not be worked on that are nobody's file's fault."""

from ninfer_core.errors import NinferError


class RowMissing(NinferError):
    """A row that the job refers to and that is not there."""

    code = "internal"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"the {what} {name} is not in the database")


class MayPass(Exception):
    """Reading failed in a way that may be over soon; no `NinferError`, which a pass would make a finding of."""

    passing = True

    def __init__(self, error: NinferError) -> None:
        super().__init__(str(error))
        self.error = error


class LeftToOthers(BaseException):
    """Work that a newer ninfer-gate has planned while one is alive: it goes back in line, and nobody records that it failed."""


class PlanChanged(NinferError):
    """A job whose shards were cut from another list of tasks than this worker makes; it is begun anew, for some times."""

    code = "plan_changed"

    def __init__(self, planned: str | None, found: str) -> None:
        super().__init__(
            "the job was planned by another version of ninfer-gate, or over other content, and cannot go on: "
            f"start it again (planned {planned}, here {found})"
        )
        self.planned = planned
        self.found = found


class SegmentMissing(NinferError):
    """A shard of a conversion that is done and has left no word of what it wrote."""

    code = "segment_missing"

    def __init__(self, number: int) -> None:
        super().__init__(f"shard {number} is done, but what it wrote is not known")


class SegmentDamaged(NinferError):
    """What a shard of a conversion wrote, and what now lies there, are two things."""

    code = "segment_damaged"

    def __init__(self, number: int, wanted: str, found: str) -> None:
        super().__init__(f"shard {number} wrote a segment with sha256 {wanted}, its file now has {found}")


class ContentDamaged(NinferError):
    """Content that is no longer what was stored."""

    code = "content_damaged"

    def __init__(self, name: str, change: str) -> None:
        super().__init__(f"{name} is damaged in the store: {change}")


class ContentMisread(NinferError):
    """Content that a pass read otherwise than it lies in the store, damaged on its way; the job is begun anew, for some times."""

    code = "content_misread"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} was read with bytes that the store does not have; nothing of what was found counts"
        )
