"""Error sums against exact rationals and, to the last bit, the oracle of their order; blocks held to their source."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, Q5G64_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES as SOURCE_WORDS
from ninfer_core.kernels.values import EncodeCounts, ErrorSums, GroupedPlanes
from ninfer_core.oracles.parity import sum_grouped, sum_words
from ninfer_core.reconstruct import reconstruct_grouped
from ninfer_core.words import BINARY16, BINARY32, finite_value, round_to, sign_of
from tests import strategies
from tests.kernels import oracles

FIELDS = ("squared_error", "source_squares", "value_squares", "products", "largest_error")


def assert_bits(got, oracle):
    wanted = (oracle.squared_error, oracle.source_squares, oracle.value_squares, oracle.largest_error)
    assert (got.squared_error, got.source_squares, got.value_squares, got.largest_error) == wanted


def number(word):
    return float(finite_value(BINARY32, int(word)))


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
    values, codes, scales = ([[] for _ in range(rows)] for _ in range(3))
    for group in oracles.groups(fmt, columns, planes):
        codes[group.row] += group.codes[: group.logical]
        scales[group.row] += [float(finite_value(BINARY16, group.scale))] if group.logical else []
        for lane in range(group.logical):
            exact = finite_value(word, int(source[group.row, group.index * fmt.group + lane]))
            x = round_to(BINARY32, abs(exact), int(exact < 0))
            values[group.row].append(number(x))
            pairs.append((x, reconstruct_grouped(group.codes[lane], group.scale)))
    got = cpu.error_sums_grouped(fmt, columns, planes, source, dtype)
    assert got.count == len(pairs)
    assert_close(got, oracles.error_sums(pairs))
    assert_bits(got, sum_grouped(fmt.group, values, codes, scales))


@pytest.mark.parametrize(
    "dtypes", [("BF16", "BF16"), ("F16", "F32"), ("F32", "BF16"), ("F64", "F32"), ("F64", "F64")]
)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_sums_over_words(dtypes, data):
    size = data.draw(st.integers(1, 150))
    x, y = (
        np.array(
            data.draw(st.lists(strategies.source_words(d), min_size=size, max_size=size)),
            strategies.DTYPES[d],
        )
        for d in dtypes
    )

    def wide(dtype, word):
        exact = finite_value(SOURCE_WORDS[dtype], int(word))
        return round_to(BINARY32, abs(exact), sign_of(SOURCE_WORDS[dtype], int(word)))

    pairs = [(wide(dtypes[0], a), wide(dtypes[1], b)) for a, b in zip(x, y, strict=True)]
    got = cpu.error_sums_words(x, y, *dtypes)
    assert_close(got, oracles.error_sums(pairs))
    assert_bits(got, sum_words(*([[number(pair[side]) for pair in pairs]] for side in (0, 1))))


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize(("rows", "columns"), [(3, 5_000), (5, 1_152)])
def test_the_order_over_several_tiles(fmt, rows, columns):
    """Rows of more than a tile and a ragged end; rows of whole lines, which are one row of tiles that straddle them."""
    seed = np.random.default_rng(columns)
    source = (seed.standard_normal((rows, columns)) * 0.02).astype(np.float32)
    codes = seed.integers(fmt.qmin, fmt.qmax + 1, (rows, columns))
    scales = seed.integers(0, 0x2000, (rows, -(-columns // fmt.group))).astype(np.uint16)
    planes = strategies.pack(fmt, *padded(fmt, codes, scales))
    got = cpu.error_sums_grouped(fmt, columns, planes, source.view(np.uint32), "F32")
    widened = scales.view(np.float16).astype(float).tolist()
    assert_bits(got, sum_grouped(fmt.group, source.astype(float).tolist(), codes.tolist(), widened))


def padded(fmt, codes, scales):
    """Codes and scales of physical groups, row after row; the scale of a group without a lane is no number."""
    rows, columns = codes.shape
    lines = -(-columns // 128)
    lanes, words = (
        np.zeros((rows, lines * 128), np.int8),
        np.full((rows, lines * 128 // fmt.group), 0x7E00, np.uint16),
    )
    lanes[:, :columns], words[:, : scales.shape[1]] = codes, scales
    return lanes.reshape(-1, fmt.group), words.reshape(-1)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize("dtype", list(SOURCE_WORDS))
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_block_is_held_to_its_source(fmt, dtype, data):
    source = data.draw(strategies.finite_rows(fmt, dtype, max_rows=2))
    planes = GroupedPlanes.empty(fmt, *source.shape)
    columns = source.shape[1]
    if not isinstance(cpu.encode(fmt, source, dtype, planes), EncodeCounts):
        assert cpu.parity_grouped(fmt, columns, planes, source, dtype) is None
        return
    wanted = cpu.error_sums_grouped(fmt, columns, planes, source, dtype)
    assert cpu.parity_grouped(fmt, columns, planes, source, dtype) == wanted
    plane = data.draw(st.sampled_from([p for p in (planes.base, planes.high, planes.scales) if p.size]))
    place = data.draw(st.integers(0, plane.size - 1))
    plane[place] ^= 1 << data.draw(st.integers(0, plane.dtype.itemsize * 8 - 1))
    assert cpu.parity_grouped(fmt, columns, planes, source, dtype) is None


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_the_quick_way_from_bf16_gives_the_same_bits(fmt):
    """Differences that fit binary32, over every magnitude of BF16 and many of one group; and each plane's last word."""
    seed = np.random.default_rng(9)
    exponents = seed.integers(-40, 14, (96, 1))
    values = seed.standard_normal((96, 1_024)) * 2.0 ** (exponents - seed.integers(0, 12, (96, 1_024)))
    source = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    planes = GroupedPlanes.empty(fmt, *source.shape)
    cpu.encode(fmt, source, "BF16", planes)
    wanted = cpu.error_sums_grouped(fmt, 1_024, planes, source, "BF16")
    assert cpu.parity_grouped(fmt, 1_024, planes, source, "BF16") == wanted
    for plane in (planes.base, planes.high, planes.scales):
        if plane.size:
            plane[-1] ^= 1
            assert cpu.parity_grouped(fmt, 1_024, planes, source, "BF16") is None
            plane[-1] ^= 1
    refused = source.copy()
    refused[-1, -1] = 0x7F80
    assert cpu.parity_grouped(fmt, 1_024, planes, refused, "BF16") is None


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
    assert got.source_squares == got.value_squares == got.products > 0
