"""What has to go together in what a kernel is handed: compiled code and devices look beyond the end of an array without a word."""

from typing import Any

from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES, GroupedPlanes
from ninfer_core.layouts.block_scale import TILE_COLUMNS, TILE_ROWS
from ninfer_core.layouts.row_split import BASE_BYTES, groups_per_row, high_bytes

Words = NDArray[Any]


def grouped_rows(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
    """Rows that the planes hold. Raises: ValueError."""
    if columns < 1:
        raise ValueError(f"there are no rows of {columns} columns")
    groups = planes.scales.size
    rows, rest = divmod(groups, groups_per_row(fmt, columns))
    if rest or planes.base.size != groups * BASE_BYTES or planes.high.size != groups * high_bytes(fmt):
        raise ValueError(f"planes of {groups} groups do not hold rows of {columns} columns of {fmt.name}")
    return rows


def require_row_scales(codes: Words, scales: Words) -> None:
    """FP8 rows: codes [rows, columns] and scales [rows]. Raises: ValueError."""
    if codes.ndim != 2 or scales.shape != codes.shape[:1]:
        raise ValueError(f"{codes.shape[0]} rows need as many scales")


def require_block_scales(codes: Words, scales: Words) -> None:
    """NVFP4: eight bytes of codes for every scale. Raises: ValueError."""
    if scales.size * 8 != codes.size:
        raise ValueError(f"{codes.size} code bytes do not go with {scales.size} scales")


def require_tiles(codes: Words, scales: Words, rows: int, columns: int) -> None:
    """NVFP4 as it is stored, in whole tiles of scales. Raises: ValueError."""
    whole = rows % TILE_ROWS == 0 and columns % TILE_COLUMNS == 0
    if not whole or codes.size * 2 != rows * columns or scales.size * 16 != rows * columns:
        raise ValueError(
            f"{codes.size} code bytes and {scales.size} scales do not hold {rows} rows of {columns}"
        )


def require_source(words: Words, dtype: str) -> None:
    """Source words of a type. Raises: ValueError."""
    if words.dtype.itemsize * 8 != SOURCE_DTYPES[dtype].bits or words.dtype.kind != "u":
        raise ValueError(f"source words of {dtype} cannot be {words.dtype}")


def writable(out: Words, size: int) -> Words:
    """The output, flat. Raises: ValueError."""
    if out.size != size or not out.flags.c_contiguous:
        raise ValueError(f"the output must be contiguous and hold {size} elements")
    return out.reshape(-1)
