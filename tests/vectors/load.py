"""Readers of the stored encoder vectors; nothing here writes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat

HERE = Path(__file__).parent


@dataclass(frozen=True)
class EncodeCase:
    """One group of binary32 words and what the encoder must make of it; no scale means it must refuse."""

    category: str
    words: tuple[int, ...]
    scale: int | None
    codes: tuple[int, ...]
    raw_scale: int
    rescued: bool
    clamped: int


@cache
def _arrays(name: str) -> dict[str, NDArray[Any]]:
    with np.load(HERE / "encoder" / name) as stored:
        return {key: stored[key] for key in stored.files}


@cache
def encode_cases(fmt: GroupedFormat) -> tuple[EncodeCase, ...]:
    """Every stored group of a format, the ones to be refused last."""
    arrays = _arrays(f"{fmt.name}.npz")
    cases = []
    for i, lanes in enumerate(map(int, arrays["k"])):
        cases.append(
            EncodeCase(
                str(arrays["categories"][arrays["category"][i]]),
                tuple(map(int, arrays["x_bits"][i, :lanes])),
                int(arrays["scale"][i]),
                tuple(map(int, arrays["codes"][i, :lanes])),
                int(arrays["raw_scale_bits"][i]),
                bool(arrays["rescued"][i]),
                int(arrays["lanes_clamped"][i]),
            )
        )
    for i, lanes in enumerate(map(int, arrays["fail_k"])):
        category = str(arrays["fail_categories"][arrays["fail_category"][i]])
        cases.append(
            EncodeCase(category, tuple(map(int, arrays["fail_x_bits"][i, :lanes])), None, (), 0, False, 0)
        )
    return tuple(cases)


@dataclass(frozen=True)
class MatrixCase:
    """A whole matrix of source words, its codes, its scales and its row-split payload."""

    key: str
    dtype: str
    source: NDArray[Any]
    codes: NDArray[np.int8]
    scales: NDArray[np.uint16]
    payload: bytes


def matrix_cases(fmt: GroupedFormat) -> Iterator[MatrixCase]:
    """Every stored matrix of a format."""
    arrays = _arrays(f"{fmt.name}.matrices.npz")
    for entry in json.loads((HERE / "encoder" / f"{fmt.name}.matrices.json").read_text()):
        key = entry["key"]
        yield MatrixCase(
            key,
            entry["source_dtype"].upper(),
            arrays[f"{key}_source"],
            arrays[f"{key}_codes"],
            arrays[f"{key}_scales"],
            arrays[f"{key}_payload"].tobytes(),
        )


def case_file(name: str) -> Any:
    """A stored case file, parsed."""
    return json.loads((HERE / "cases" / name).read_text())
