"""Rows in the wrong places: what a block's differences say when whole rows differ and others do not."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ninfer_core.verify.faults import MAX_SAMPLES


@dataclass(frozen=True, slots=True)
class RowMap:
    """Samples of rows for a fault, and a note for its message; both empty where rows tell nothing."""

    samples: dict[str, tuple[int, ...]] = field(default_factory=dict)
    note: str = ""


def row_map(
    differing: NDArray[np.integer],
    width: int,
    first_row: int,
    stored: NDArray[np.uint8],
    derived: NDArray[np.uint8],
) -> RowMap:
    """What a block of whole rows shows: `differing` [rows] words of `width` each differ; `stored`, `derived` are bytes
    [rows, bytes a row]; `first_row` is the number of the first.
    """
    rows = np.flatnonzero(differing)
    equal = np.flatnonzero(differing == 0)
    # A wrong row shares few words with the right one; single words that differ are another kind of fault.
    if differing.size < 2 or rows.size == 0 or bool((2 * differing[rows] < width).any()):
        return RowMap()
    known = {row.tobytes() for row in derived}
    moved = all(stored[row].tobytes() in known for row in rows)
    if not moved and equal.size == 0:
        return RowMap()
    why = (
        ", as from a wrong row order"
        if moved
        else " and the others are equal, as from a wrong choice of rows"
    )
    samples = {
        "rows_differ": tuple((rows[:MAX_SAMPLES] + first_row).tolist()),
        "rows_equal": tuple((equal[:MAX_SAMPLES] + first_row).tolist()),
    }
    return RowMap(samples, f"; {rows.size:,} of {differing.size:,} rows differ{why}")
