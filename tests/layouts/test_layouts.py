"""Layouts over the registry: sizes, planes, blocks, spans, packing, row views and gathers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.errors import IllegalPair, IllegalShape, SizeOverflow, Usage
from ninfer_core.formats import (
    BF16,
    DIRECT,
    FORMATS,
    FP8_E4M3FN_ROW_BF16S,
    GROUPED,
    NVFP4,
    W8G32_F16S,
)
from ninfer_core.formats import (
    FORMATS as ALL,
)
from ninfer_core.layouts import LAYOUTS, block_scale, canonical_layout, row_split
from ninfer_core.layouts.base import gaps
from ninfer_core.layouts.rows import gather_rows, row_view
from tests.build import legal_payload

SIZES = [
    ("Q4G64_F16S", (7168, 5120), 19_496_960),
    ("Q5G64_F16S", (7168, 5120), 24_084_480),
    ("Q5G64_F16S", (2, 130), 528),
    ("Q4G64_F16S", (256, 128), 17_408),
    ("Q5G64_F16S", (256, 128), 21_504),
    ("Q4G64_F16S", (128, 128), 8_704),
    ("W8G32_F16S", (1, 33), 264),
    ("FP8_E4M3FN_ROW_BF16S", (14336, 5120), 73_428_992),
    ("FP8_E4M3FN_ROW_BF16S", (2, 4), 260),
    ("FP8_E4M3FN_ROW_BF16S", (128, 64), 8_448),
    ("NVFP4", (14336, 5120), 41_287_684),
    ("NVFP4", (128, 64), 4_612),
    ("BF16", (4, 8), 64),
    ("BF16", (), 2),
    ("I32", (1,) * 16, 4),
]


@pytest.mark.parametrize(
    ("name", "shape", "size"), SIZES, ids=[f"{name}-{shape}" for name, shape, _ in SIZES]
)
def test_worked_sizes(name: str, shape: tuple[int, ...], size: int):
    fmt = FORMATS[name]
    assert canonical_layout(fmt).encoded_size(fmt, shape) == size


def test_only_the_registered_pairs():
    pairs = {(fmt.name, layout.name) for layout in LAYOUTS for fmt in layout.formats}
    assert len(pairs) == len(ALL)
    for layout in LAYOUTS:
        for fmt in ALL:
            if (fmt.name, layout.name) not in pairs:
                with pytest.raises(IllegalPair):
                    layout.encoded_size(fmt, (128, 128))


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("shape", [(0,), (4, 0), (-1, -8), (3,) * 17, (2**63, 2**63), (2**64 + 1, 128)])
def test_illegal_shapes(fmt, shape: tuple[int, ...]):
    with pytest.raises((IllegalShape, SizeOverflow)):
        canonical_layout(fmt).encoded_size(fmt, shape)


def test_quantized_formats_take_rank_two_only():
    for fmt in FORMATS:
        if fmt not in DIRECT:
            for shape in ((), (128,), (1, 128, 128)):
                with pytest.raises(IllegalShape):
                    canonical_layout(fmt).encoded_size(fmt, shape)
    for shape in ((64, 64), (128, 32), (129, 64), (128, 96)):
        with pytest.raises(IllegalShape):
            canonical_layout(NVFP4).encoded_size(NVFP4, shape)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@given(data=st.data())
def test_blocks_cover_every_byte_of_every_plane_once(fmt, data):
    """Whatever the block size, the spans of all blocks tile the planes; wide rows are cut into columns."""
    if fmt is NVFP4:
        shape = (128 * data.draw(st.integers(1, 3)), 64 * data.draw(st.integers(1, 9)))
    else:
        shape = (data.draw(st.integers(1, 9)), data.draw(st.integers(1, 700)))
    layout = canonical_layout(fmt)
    weights = data.draw(st.sampled_from([1, 128, 300, 1000, 10_000, 1 << 22]))
    n, k = layout.matrix(fmt, shape)
    planes = layout.planes(fmt, shape)
    seen = np.zeros(layout.encoded_size(fmt, shape), np.int64)
    cells = np.zeros((n, k), np.int64)
    shared = {"divisor"} | ({"scales"} if fmt is FP8_E4M3FN_ROW_BF16S else set())
    for block in layout.blocks(fmt, shape, weights):
        cells[block.row : block.row + block.rows, block.column : block.column + block.columns] += 1
        for plane, spans in zip(planes, layout.spans(fmt, shape, block), strict=True):
            for span in spans:
                assert plane.span.offset <= span.offset
                assert span.offset + span.length <= plane.span.offset + plane.span.length
                seen[span.offset : span.offset + span.length] += 1
                if plane.name in shared:  # read again by every block that needs it
                    np.minimum(
                        seen[span.offset : span.offset + span.length],
                        1,
                        out=seen[span.offset : span.offset + span.length],
                    )
    assert (cells == 1).all()
    for gap in gaps(layout, fmt, shape):
        assert not seen[gap.offset : gap.offset + gap.length].any()
        seen[gap.offset : gap.offset + gap.length] = 1
    assert (seen == 1).all()


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
@given(rows=st.integers(1, 4), k=st.integers(1, 300), seed=st.integers(0, 2**32 - 1))
def test_unpacking_what_was_packed(fmt, rows: int, k: int, seed: int):
    rng = np.random.default_rng(seed)
    codes = rng.integers(fmt.qmin, fmt.qmax + 1, (rows, k)).astype(np.int8)
    scales = rng.integers(0, 0x7C00, (rows, -(-k // fmt.group)), np.uint16)
    base, high, words = row_split.pack(fmt, row_split.GroupedWords(codes, scales))
    unpacked = row_split.unpack(fmt, k, base, high, words)
    assert np.array_equal(unpacked.codes[:, :k], codes)
    assert np.array_equal(unpacked.scales[:, : scales.shape[1]], scales)
    assert not unpacked.codes[:, k:].any()
    assert not unpacked.scales[:, scales.shape[1] :].any()


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
def test_bit_order_of_each_lane(fmt):
    """One code in one lane sets exactly the bits that the layout names for it, lane by lane."""
    for lane in range(fmt.group):
        codes = np.zeros((1, 128), np.int8)
        codes[0, lane] = -1 if fmt.code_bits < 8 else -127
        base, high, _ = row_split.pack(
            fmt, row_split.GroupedWords(codes, np.ones((1, 128 // fmt.group), np.uint16))
        )
        if fmt.code_bits == 8:
            assert base[lane] == 0x81
            assert np.count_nonzero(base) == 1
            continue
        assert base[lane // 2] == (0x0F if lane % 2 == 0 else 0xF0)
        assert np.count_nonzero(base) == 1
        bits = int.from_bytes(high.tobytes(), "little")
        extra = fmt.code_bits - 4
        assert bits == ((1 << extra) - 1) << (lane * extra)


def test_swizzle_follows_the_formula():
    rows, k = 256, 192
    natural = np.arange(rows * k // 16, dtype=np.uint32)
    places = [block_scale.scale_offset(row, group, k) for row in range(rows) for group in range(k // 16)]
    assert sorted(places) == list(range(rows * k // 16))
    scales = (natural % 251).astype(np.uint8).reshape(rows, k // 16)
    plane = block_scale.swizzle(scales)
    assert np.array_equal(plane[places], scales.reshape(-1))
    assert np.array_equal(block_scale.unswizzle(plane, rows, k), scales)
    # Known places: next row, next group, next 32 rows, next tile, next stripe.
    assert [block_scale.scale_offset(*at, k) for at in ((1, 0), (0, 1), (32, 0), (0, 4), (128, 0))] == [
        16,
        1,
        4,
        512,
        1536,
    ]


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt not in DIRECT], ids=lambda fmt: fmt.name)
@given(data=st.data())
def test_gathered_rows_are_the_rows(fmt, data):
    unit = 128 if fmt is NVFP4 else 1
    shape = (
        unit * data.draw(st.integers(1, 3)),
        64 * data.draw(st.integers(1, 3)) if fmt is NVFP4 else data.draw(st.integers(1, 300)),
    )
    layout = canonical_layout(fmt)
    payload = legal_payload(fmt, shape, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))))
    count = unit * data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.integers(0, shape[0] - 1), min_size=count, max_size=count))
    taken = gather_rows(layout, fmt, shape, payload, rows)
    assert np.array_equal(logical(fmt, (count, shape[1]), taken), logical(fmt, shape, payload)[rows])
    whole = row_view(layout, fmt, shape, payload, 0, shape[0])
    assert np.array_equal(whole, payload)


def logical(fmt, shape, payload):
    """All that belongs to each row, side by side: codes and scales."""
    layout = canonical_layout(fmt)
    parts = []
    for plane in layout.planes(fmt, shape):
        content = payload[plane.span.offset : plane.span.offset + plane.span.length]
        if plane.name == "divisor":
            continue
        if fmt is NVFP4 and plane.name == "scales":
            content = block_scale.unswizzle(content, *shape)
        parts.append(content.reshape(shape[0], -1))
    return np.concatenate(parts, axis=1)


def test_gather_refuses_rows_that_are_not_there():
    layout = canonical_layout(W8G32_F16S)
    payload = legal_payload(W8G32_F16S, (3, 40), np.random.default_rng(1))
    for rows in ([3], [-1], []):
        with pytest.raises(Usage):
            gather_rows(layout, W8G32_F16S, (3, 40), payload, rows)
    with pytest.raises(Usage):
        gather_rows(layout, W8G32_F16S, (4, 40), payload, [0])
    with pytest.raises(Usage):
        gather_rows(canonical_layout(BF16), BF16, (3,), payload, [0])
    nvfp4 = legal_payload(NVFP4, (128, 64), np.random.default_rng(1))
    with pytest.raises(IllegalShape):
        gather_rows(canonical_layout(NVFP4), NVFP4, (128, 64), nvfp4, [1, 2])
