"""Rows in the wrong places: what a block's differences say when whole rows differ and others do not."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ninfer_core.verify.faults import MAX_SAMPLES

_MOST_ROWS = 1 << 14  # that are looked for one by one


@dataclass(frozen=True, slots=True)
class RowMap:
    """Samples of rows for a fault, and a note for its message; both empty where rows tell nothing."""

    samples: dict[str, tuple[int, ...]] = field(default_factory=dict)
    note: str = ""


def row_map(
    differing: NDArray[np.integer],
    width: int,
    first_row: int,
    all_rows: int,
    stored: NDArray[np.uint8],
    derived: NDArray[np.uint8],
) -> RowMap:
    """What a block of whole rows shows: `differing` [rows] words of `width` each differ; `stored`, `derived` are bytes
    [rows, bytes a row]; the rows are those from `first_row` on, of `all_rows` in the tensor.
    """
    rows = np.flatnonzero(differing)
    equal = np.flatnonzero(differing == 0)
    # A wrong row shares few words with the right one; single words that differ are another kind of fault.
    if differing.size < 2 or rows.size == 0 or bool((2 * differing[rows] < width).any()):
        return RowMap()
    moved = _are_moved(stored[rows], derived)
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
    last = first_row + differing.size - 1
    among = "" if differing.size == all_rows else f" from {first_row} to {last}"
    return RowMap(samples, f"; {rows.size:,} of {differing.size:,} rows{among} differ{why}")


def _are_moved(stored: NDArray[np.uint8], derived: NDArray[np.uint8]) -> bool:
    """Whether every stored row is some derived row; a first look spares the work where it is not so at all."""
    if len(derived) > _MOST_ROWS or not (derived == stored[0]).all(axis=1).any():
        return False
    known = {row.tobytes() for row in derived}
    return all(row.tobytes() in known for row in stored)
