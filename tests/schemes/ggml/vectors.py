"""The reference vectors of block types: payloads, expected words, sources, and what the sets state about a type."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.ggml import FORMS
from ninfer_core.schemes.ggml.block import Block
from ninfer_core.schemes.ggml.forms import form_name
from ninfer_core.schemes.ggml.types import BLOCKS
from tests.schemes import vectors

FORM = {form.name: form for form in FORMS}
BLOCK: dict[str, Block] = {form_name(block): block for block in BLOCKS}


@dataclass(frozen=True)
class Case:
    """One case of a vector set."""

    name: str
    payload: NDArray[np.uint8]
    expected: NDArray[np.float32]
    source: NDArray[np.float32] | None


@cache
def cases(name: str) -> tuple[Case, ...]:
    """Every case of a set; the number of them is in its description."""
    return tuple(
        Case(case.name, case.arrays["payload"], case.arrays["expected"], case.arrays.get("source"))
        for case in vectors.cases(name)
    )


def random_blocks(block: Block, count: int, seed: int = 0) -> NDArray[np.uint8]:
    """Bytes of any value: scales that are NaN, infinite, subnormal and negative among them."""
    return np.random.default_rng(seed).integers(0, 256, count * block.bytes, np.uint8)


def words(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The stored bits, which compare as equal where NaN are the same NaN."""
    return values.view(np.uint32)


def of(form: Form) -> Block:
    """The block type of a form."""
    return BLOCK[form.name]
