"""Reasons why a job could not be worked on that are nobody's file's fault."""

from ninfer_core.errors import NinferError


class RowMissing(NinferError):
    """A row that the job refers to and that is not there."""

    code = "internal"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"the {what} {name} is not in the database")


class SegmentDamaged(NinferError):
    """What a shard of a conversion wrote, and what now lies there, are two things."""

    code = "segment_damaged"

    def __init__(self, number: int, wanted: str, found: str) -> None:
        super().__init__(f"shard {number} wrote a segment with sha256 {wanted}, its file now has {found}")
