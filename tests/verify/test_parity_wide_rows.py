"""FP8 rows wider than a block: one scale for the whole row, which is read once, and refusals that are said once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ninfer_core.derive import Derivation, Derived, Refused
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S
from ninfer_core.layouts.base import BLOCK_WEIGHTS
from ninfer_core.recipes.values import CastRefused
from tests.verify import parity_objects as objects

ROWS, WIDTH, WEIGHTS = 3, 5000, 1024


def made(words: np.ndarray) -> tuple[objects.Held, Derivation, list]:
    held = objects.Held(words, "BF16")
    plan = objects.plan(FP8_E4M3FN_ROW_BF16S, held, objects.FP8)
    blocks = objects.blocks(plan, WEIGHTS)
    assert len(blocks) == ROWS * 5
    return held, Derivation(plan), blocks


@pytest.fixture
def words() -> np.ndarray:
    return objects.bf16(np.random.default_rng(7).standard_normal((ROWS, WIDTH)))


def test_blocks_in_any_order_make_the_whole(words: np.ndarray) -> None:
    _, derivation, blocks = made(words)
    (whole,) = objects.blocks(derivation.plan, BLOCK_WEIGHTS)
    codes, scales = objects.planes_of(derivation.plan, whole)
    for number in np.random.default_rng(1).permutation(len(blocks)):
        block = blocks[number]
        for one in (
            derivation,
            Derivation(derivation.plan),
        ):  # with what was kept, and as another process would
            derived = one.block(block)
            assert isinstance(derived, Derived)
            columns = slice(block.column, block.column + block.columns)
            assert np.array_equal(derived.planes[0], codes.reshape(ROWS, WIDTH)[block.row, columns])
            assert derived.planes[1].tolist() == [scales[block.row]]


def test_a_row_is_not_read_again_for_each_of_its_blocks(words: np.ndarray) -> None:
    held, derivation, blocks = made(words)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(derivation.block, blocks))
    assert held.read_words == 2 * ROWS * WIDTH  # once for the magnitudes, once for the codes


def test_a_row_of_more_than_a_block_of_weights_is_read_in_pieces() -> None:
    width = BLOCK_WEIGHTS + 4096
    row = np.full((1, width), 0x3F80, np.uint16)
    row[0, -1] = 0x43E0  # 448, in the last piece
    plan = objects.plan(FP8_E4M3FN_ROW_BF16S, objects.Held(row, "BF16"), objects.FP8)
    first, last = objects.blocks(plan)
    derivation = Derivation(plan)
    for block, code in ((first, 0x38), (last, 0x7E)):
        derived = derivation.block(block)
        assert isinstance(derived, Derived)
        assert (derived.planes[0][-1], derived.planes[1][0]) == (code, 0x3F80)


def test_a_word_that_is_not_finite_is_reported_by_the_block_that_holds_it(words: np.ndarray) -> None:
    words[1, 4321] = 0x7F80
    _, derivation, blocks = made(words)
    refused = [outcome for outcome in map(derivation.block, blocks) if isinstance(outcome, Refused)]
    assert len(refused) == 5
    assert all(dict(one.where) == {"row": 1, "column": 4321, "word": "0x7f80"} for one in refused)
    (here,) = [block for block, one in zip(blocks[5:10], refused, strict=True) if one.here]
    assert here.column <= 4321 < here.column + here.columns


def test_a_scale_without_reciprocal_is_reported_once(words: np.ndarray) -> None:
    words[2] = 0
    words[2, 4999] = 0x0001
    _, derivation, blocks = made(words)
    refused = [derivation.block(block) for block in blocks[10:]]
    assert all(isinstance(one, Refused) and one.kind == "scale_underflow" for one in refused)
    assert [one.here for one in refused if isinstance(one, Refused)] == [True, False, False, False, False]


def test_refusals_are_findings_of_parity_once_and_leave_it_incomplete(words: np.ndarray) -> None:
    words[0, 4000] = 0xFFC0
    _, derivation, blocks = made(words)
    planes = [np.zeros(blocks[0].columns, np.uint8), np.zeros(1, np.uint16)]
    outcomes = [
        objects.compare(derivation.plan, block, [np.zeros(block.columns, np.uint8), planes[1]])
        for block in blocks[:5]
    ]
    assert not any(outcome.complete for outcome in outcomes)
    (fault,) = [fault for outcome in outcomes for fault in outcome.faults]
    assert (fault.code, fault.count) == ("parity.source_refused", 1)
    assert fault.where["column"] == 4000


class Casting(objects.Held):
    """A value whose cast refuses one element."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """See `Value.read`."""
        if begin <= 2 * WIDTH + 3000 < end:
            raise CastRefused(2 * WIDTH + 3000, 0x7FC00000, "F32", "is NaN")
        return super().read(begin, end)


def test_a_refused_cast_is_reported_by_the_block_that_holds_the_word(words: np.ndarray) -> None:
    plan = objects.plan(FP8_E4M3FN_ROW_BF16S, Casting(words, "BF16"), objects.FP8)
    outcomes = [Derivation(plan).block(block) for block in objects.blocks(plan, WEIGHTS)]
    refused = [one for one in outcomes if isinstance(one, Refused)]
    assert len(refused) == 5  # every block of the third row needs the whole row
    assert {one.kind for one in refused} == {"cast_refused"}
    assert [one.here for one in refused] == [False, False, True, False, False]
