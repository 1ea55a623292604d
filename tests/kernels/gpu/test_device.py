"""On a CUDA device: words equal to the oracles and to the CPU's kernels, in number, and beyond 2**31 elements.

`make test-gpu` runs these. In the simulator they run on few weights, which proves the tests and no device.
"""

import time

import numpy as np
import pytest

from ninfer_core.formats import GROUPED
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import EncodeCounts, GroupedPlanes
from tests.kernels.test_encode import assert_planes, reference

pytestmark = pytest.mark.gpu
DTYPES = ("BF16", "F16", "F32")
COLUMNS = (4_096, 4_168, 130)  # whole lines, padding, cut octets


@pytest.fixture(scope="module")
def gpu(board):
    """The device as a processor."""
    from ninfer_core.kernels.gpu import Gpu

    return Gpu(board)


@pytest.fixture(scope="module")
def chunks(board):
    """(how many matrices, their rows): 10**9 weights and more in all."""
    return (2, 3) if board.simulated else (60, 4_099)


def drawn(random, dtype, rows, columns):
    """Source words whose magnitudes differ little in a row and much between rows."""
    words = random.integers(0, 1 << 32, (rows, columns), np.uint32)
    exponent = random.integers(92, 136, (rows, 1), np.uint32) + ((words >> np.uint32(23)) & np.uint32(7))
    words = (words & np.uint32(0x807FFFFF)) | exponent << np.uint32(23)
    if dtype == "F32":
        return words
    if dtype == "BF16":
        return (words >> np.uint32(16)).astype(np.uint16)
    return (words.view(np.float32) * np.float32(2.0**-10)).astype(np.float16).view(np.uint16)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_a_billion_weights_are_encoded_and_reconstructed_as_by_the_cpu(gpu, chunks, fmt):
    random = np.random.default_rng(GROUPED.index(fmt))
    seen = rescued = 0
    for number in range(chunks[0]):
        columns, dtype = COLUMNS[number % 3], DTYPES[number % 3]
        rows = chunks[1] * (max(1, COLUMNS[0] // columns) if chunks[1] > 3 else 1)
        source = drawn(random, dtype, rows, columns)
        ours, theirs = GroupedPlanes.empty(fmt, rows, columns), GroupedPlanes.empty(fmt, rows, columns)
        counts = cpu.encode(fmt, source, dtype, ours)
        assert isinstance(counts, EncodeCounts)
        assert gpu.encode(fmt, source, dtype, theirs) == counts
        assert cpu.same_planes(ours, theirs)
        assert gpu.scan_grouped(fmt, columns, theirs) == 0
        for word in (np.uint32, np.uint16):
            here, there = np.empty((rows, columns), word), np.empty((rows, columns), word)
            cpu.reconstruct_grouped(fmt, columns, ours, here)
            gpu.reconstruct_grouped(fmt, columns, theirs, there)
            assert cpu.same_bytes(here, there)
        seen, rescued = seen + source.size, rescued + counts.rescued
    assert rescued or chunks[1] == 3
    assert seen >= 1_000_000_000 or chunks[1] == 3


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_the_integer_oracle_agrees(gpu, board, fmt):
    rows, columns = (2, 130) if board.simulated else (64, 1_098)
    for dtype in DTYPES:
        source = drawn(np.random.default_rng(9), dtype, rows, columns)
        planes = GroupedPlanes.empty(fmt, rows, columns)
        counts, expected = reference(fmt, source, dtype)
        assert gpu.encode(fmt, source, dtype, planes) == counts
        assert_planes(planes, expected)


@pytest.mark.parametrize("name", ["FP8_E4M3FN_ROW_BF16S", "NVFP4"])
def test_a_billion_weights_of_small_floats_are_reconstructed_as_by_the_cpu(gpu, chunks, name):
    random = np.random.default_rng(5)
    seen = 0
    for number in range(chunks[0]):
        rows, columns = chunks[1], 64 if chunks[1] == 3 else 4_096
        codes = random.integers(0, 256, (rows, columns), np.uint8)
        for word in (np.uint32, np.uint16):
            if name == "NVFP4":
                scales, divisor = random.integers(0, 127, codes.size // 8, np.uint8), 0x3F800000 + number
                here, there = np.empty(codes.size * 2, word), np.empty(codes.size * 2, word)
                cpu.reconstruct_nvfp4(codes, scales, divisor, here)
                gpu.reconstruct_nvfp4(codes, scales, divisor, there)
            else:
                scales = random.integers(0, 0x7F80, rows).astype(np.uint16)
                here, there = np.empty(codes.shape, word), np.empty(codes.shape, word)
                cpu.reconstruct_row(codes, scales, here)
                gpu.reconstruct_row(codes, scales, there)
            assert cpu.same_bytes(here, there)
        seen += here.size
    assert seen >= 1_000_000_000 or chunks[1] == 3


@pytest.mark.parametrize("padding", [0, 24])
@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_one_launch_beyond_2_to_31_elements(gpu, board, fmt, padding):
    """On arrays that lie on the device whole, so that no batch keeps an index small."""
    from ninfer_core.kernels import gpu_encode, gpu_reconstruct, gpu_scan

    rows, columns = (3, 256 - padding) if board.simulated else (2_049, (1 << 20) - padding)
    assert board.simulated or rows * columns > 1 << 31
    memory, random = gpu.memory, np.random.default_rng(4)
    last = drawn(random, "BF16", 1, columns)
    expected, empty = GroupedPlanes.empty(fmt, 1, columns), GroupedPlanes.empty(fmt, 1, columns)
    assert isinstance(cpu.encode(fmt, last, "BF16", expected), EncodeCounts)
    with memory.session():
        source = memory.empty("source", rows * columns, np.uint16)
        zeros = np.zeros(columns, np.uint16)
        for row in range(rows):
            words = zeros if row < rows - 1 else last.reshape(-1)
            source[row * columns : (row + 1) * columns].copy_to_device(words)
        sizes = (expected.base.size * rows, expected.high.size * rows, expected.scales.size * rows)
        base, high = memory.empty("base", sizes[0], np.uint8), memory.empty("high", sizes[1], np.uint8)
        scales = memory.empty("scales", sizes[2], np.uint16)
        planes = (base.view(np.uint32), high, scales)
        counts = memory.upload("counts", np.array([0, 0, gpu_encode.NONE], np.uint64))
        gpu_encode.encode_on(memory, fmt, rows, columns, source, "BF16", planes, counts)
        for plane, own, wanted in zip(
            (base, high, scales),
            (empty.base, empty.high, empty.scales),
            (expected.base, expected.high, expected.scales),
            strict=True,
        ):
            if own.size:
                memory.download(plane[plane.size - own.size :], own)
            assert np.array_equal(own, wanted)
        found = memory.upload("found", np.zeros(1, np.uint32))
        gpu_scan.grouped_on(memory, fmt, rows, columns, planes, found)
        mask = np.empty(1, np.uint32)
        memory.download(found, mask)
        assert mask[0] == 0
        out, theirs, ours = source, np.empty(columns, np.uint16), np.empty(columns, np.uint16)
        gpu_reconstruct.grouped_on(memory, fmt, rows, columns, planes, out)
        memory.download(out[(rows - 1) * columns :], theirs)
        cpu.reconstruct_grouped(fmt, columns, expected, ours)
        assert np.array_equal(theirs, ours)
    memory.release()


def test_every_kernel_proves_itself(board):
    from ninfer_core.selfcheck.run import self_check

    if board.simulated:
        pytest.skip("the simulator would take hours; its own tests are beside this one")
    found = self_check(board, level="full", seed=1, timer=time.perf_counter)
    assert {one.kernel.name: one.outcome for one in found.kernels if one.outcome != "passed"} == {}
