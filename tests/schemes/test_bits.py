"""Streams of codes and digits against Python's own integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes import bits

WORDS = (np.uint8, np.int16, np.int32, np.uint64)


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(1, 16),
    count=st.integers(0, 40),
    streams=st.integers(0, 3),
    word=st.sampled_from(WORDS),
    first=st.booleans(),
    spare=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_codes_are_slices_of_one_integer(
    width: int, count: int, streams: int, word: Any, first: bool, spare: int, seed: int
) -> None:
    size = np.dtype(word).itemsize
    number = bits.words_for(width, count, 8 * size) + spare
    raw = np.random.default_rng(seed).integers(0, 256, (streams, number * size), np.uint8)
    words = raw.view(word) if raw.size else np.zeros((streams, number), word)
    axis = 0 if first else -1
    codes = bits.codes_of(words.T if first else words, width, count, axis)
    assert codes.dtype == bits.code_dtype(width)
    assert codes.shape == ((count, streams) if first else (streams, count))
    behind = bits.spare_bytes(words, width, count)
    for row in range(streams):
        stream = int.from_bytes(raw[row].tobytes(), "little")
        expected = [stream >> width * i & (1 << width) - 1 for i in range(count)]
        assert (codes[:, row] if first else codes[row]).tolist() == expected
        kept = stream >> width * count << width * count
        assert int.from_bytes(behind[row].tobytes(), "little") << 8 * (width * count // 8) == kept
    # And back: the same words but for what holds no code.
    packed = bits.words_of(codes, width, word, axis)
    assert packed.dtype == np.dtype(word)
    back = packed.T if first else packed
    assert back.shape == (streams, bits.words_for(width, count, 8 * size))
    for row in range(streams):
        stream = int.from_bytes(raw[row].tobytes(), "little") & (1 << width * count) - 1
        assert int.from_bytes(back[row].tobytes(), "little") == stream


@settings(max_examples=60, deadline=None)
@given(
    base=st.one_of(st.integers(2, 17), st.sampled_from((255, 256, 65536, 2**32))),
    count=st.integers(0, 12),
    size=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_digits_are_those_of_one_integer(base: int, count: int, size: int, seed: int) -> None:
    units = np.random.default_rng(seed).integers(0, 256, (3, size), np.uint8)
    digits, large = bits.digits_of(units, base, count)
    for row in range(3):
        number = int.from_bytes(units[row].tobytes(), "little")
        assert digits[row].tolist() == [number // base**i % base for i in range(count)]
        assert bool(large[row]) == (number >= base**count)
        if base**count <= 256**size:
            lowest = number % base**count
            assert bits.units_of(digits[row], base, size).tobytes() == lowest.to_bytes(size, "little")


def test_published_words() -> None:
    column = np.arange(1, 9, dtype=np.uint8)[:, None]
    assert bits.words_of(column, 4, np.uint32, axis=0).tolist() == [[0x87654321]]
    threes = np.tile(np.arange(8, dtype=np.uint8), 4)
    assert bits.words_of(threes, 3, np.uint32).tolist() == [0x88FAC688, 0xC688FAC6, 0xFAC688FA]
    sixes = np.array([0x01, 0x22, 0x1F, 0x3F], np.uint8)
    assert bits.words_of(sixes, 6).tobytes() == bytes.fromhex("81f8fd")
    assert bits.units_of(np.array([0, 1, 2, 0, 1]), 3, 1).tolist() == [102]


@pytest.mark.parametrize("width", range(1, 12))
def test_signed_codes(width: int) -> None:
    codes = np.arange(1 << width).astype(bits.code_dtype(width))
    half = 1 << width - 1
    assert bits.signed(codes, width).tolist() == [*range(half), *range(-half, 0)]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        bits.codes_of(np.zeros(3, np.uint8), 5, 5)
    with pytest.raises(ValueError, match="1 to 16 bits"):
        bits.codes_of(np.zeros(3, np.uint8), 17, 1)
    with pytest.raises(ValueError, match="more than 3 bits"):
        bits.words_of(np.array([8]), 3)
    with pytest.raises(ValueError, match="more than 3 bits"):
        bits.words_of(np.array([-1]), 3)
    with pytest.raises(ValueError, match="do not fit"):
        bits.units_of(np.zeros(6, int), 3, 1)
    with pytest.raises(ValueError, match="none of base 3"):
        bits.units_of(np.array([3]), 3, 1)
    with pytest.raises(ValueError, match="a base is"):
        bits.digits_of(np.zeros(1, np.uint8), 1, 1)
