"""Error sums against exact rationals, and the same bits whatever the number of threads."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, Q5G64_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES as SOURCE_WORDS
from ninfer_core.kernels.values import ErrorSums, GroupedPlanes
from ninfer_core.reconstruct import reconstruct_grouped
from ninfer_core.words import BINARY32, finite_value, round_to, sign_of
from tests import strategies
from tests.kernels import oracles

FIELDS = ("squared_error", "source_squares", "value_squares", "products", "largest_error")


def assert_close(got, exact):
    for name, wanted in zip(FIELDS, exact, strict=True):
        value = Fraction(getattr(got, name))
        # A sum of products of both signs may cancel; every other sum has terms of one sign.
        scale = wanted if name != "products" else max(abs(wanted), (exact[1] + exact[2]) / 2)
        assert abs(value - wanted) <= Fraction(1, 10**12) * abs(scale), name


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize("dtype", list(SOURCE_WORDS))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_grouped_sums(fmt, dtype, data):
    source = data.draw(strategies.finite_rows(fmt, dtype, max_rows=2))
    rows, columns = source.shape
    planes = data.draw(strategies.planes(fmt, rows, columns))
    word = SOURCE_WORDS[dtype]
    pairs = []
    for group in oracles.groups(fmt, columns, planes):
        for lane in range(group.logical):
            exact = finite_value(word, int(source[group.row, group.index * fmt.group + lane]))
            x = round_to(BINARY32, abs(exact), int(exact < 0))
            pairs.append((x, reconstruct_grouped(group.codes[lane], group.scale)))
    got = cpu.error_sums_grouped(fmt, columns, planes, source, dtype)
    assert got.count == len(pairs)
    assert_close(got, oracles.error_sums(pairs))


@pytest.mark.parametrize("dtypes", [("BF16", "BF16"), ("F16", "F32"), ("F32", "BF16"), ("F32", "F32")])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_sums_over_words(dtypes, data):
    size = data.draw(st.integers(1, 150))
    x, y = (
        np.array(
            data.draw(st.lists(strategies.finite_words(SOURCE_WORDS[d]), min_size=size, max_size=size)),
            strategies.DTYPES[d],
        )
        for d in dtypes
    )

    def wide(dtype, word):
        exact = finite_value(SOURCE_WORDS[dtype], int(word))
        return round_to(BINARY32, abs(exact), sign_of(SOURCE_WORDS[dtype], int(word)))

    pairs = [(wide(dtypes[0], a), wide(dtypes[1], b)) for a, b in zip(x, y, strict=True)]
    assert_close(cpu.error_sums_words(x, y, *dtypes), oracles.error_sums(pairs))


def test_binary64_words_go_with_binary64_words_only():
    x = np.array([1.0, -2.0, 1e-3]).view(np.uint64)
    y = np.array([1.0, -2.5, 1e-3]).view(np.uint64)
    got = cpu.error_sums_words(x, y, "F64")
    assert (got.count, got.squared_error, got.largest_error) == (3, 0.25, 0.5)
    with pytest.raises(ValueError, match="do not go"):
        cpu.error_sums_words(x, np.zeros(3, np.uint32), "F64", "F32")


def test_equal_blocks_give_equal_bits_on_any_number_of_threads():
    fmt = Q5G64_F16S
    seed = np.random.default_rng(11)
    sources = [seed.standard_normal((64, 1000)).astype(np.float32).view(np.uint32) for _ in range(8)]
    blocks = []
    for source in sources:
        planes = GroupedPlanes.empty(fmt, *source.shape)
        cpu.encode(fmt, source, "F32", planes)
        blocks.append((planes, source))

    def sums(block):
        return cpu.error_sums_grouped(fmt, 1000, block[0], block[1], "F32")

    alone = [sums(block) for block in blocks]
    for threads in (1, 2, 5):
        with ThreadPoolExecutor(threads) as pool:
            assert list(pool.map(sums, blocks)) == alone
    together = ErrorSums.merge(alone)
    assert together == ErrorSums.merge(alone)
    assert together.count == 8 * 64_000


def test_identical_words_have_no_error():
    words = np.random.default_rng(2).integers(0, 0x7F80, 10_000).astype(np.uint16) & 0x7F7F
    got = cpu.error_sums_words(words, words, "BF16")
    assert (got.squared_error, got.largest_error) == (0.0, 0.0)
    assert got.source_squares == got.value_squares == got.products
