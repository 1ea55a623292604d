"""What lies ahead of a pass, for a progress bar."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Totals:
    """Objects, and bytes that will be read or hashed; a byte that is read twice counts twice."""

    objects: int
    bytes: int
