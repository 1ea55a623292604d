"""The canonical encoder MAXABS_F16_RECIP_RNE_V1 on a CUDA device (tensor-formats section 7).

A thread has an octet, the threads of a group share its largest magnitude and form the same scale each for itself. The
arithmetic is that of `encode`, with one difference: every code goes through the clamp, not those of subnormal scales alone.
"""

from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.cpu import encode_fault
from ninfer_core.kernels.gpu_batches import Batch, source_words, walk
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import (
    LINE_OCTETS,
    OCTET,
    THREADS,
    Array,
    binary16_of_binary32,
    code_of_normalized,
    device,
    divide32,
    kernel,
    load_lanes,
    load_octet,
    multiply32,
    nearest_integer,
    pack_octet,
    scale_value,
    value32,
    word32,
)
from ninfer_core.kernels.sizes import grouped_rows
from ninfer_core.kernels.tiles import KINDS, LINE
from ninfer_core.kernels.values import EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row

Words = NDArray[Any]

# Of the counters.
RESCUED: Final = 0
CLAMPED: Final = 1
REFUSED: Final = 2  # the first group that is, else NONE
NONE: Final = (1 << 64) - 1


@device
def largest_of(words: Array) -> Any:
    """The largest magnitude word of an octet; infinities and NaN are larger than any finite one."""
    largest = np.uint32(0)
    for i in range(OCTET):
        largest = max(largest, np.uint32(words[i] & np.uint32(0x7FFFFFFF)))
    return largest


@device
def raw_scale(amax: Any, qmax: int) -> Any:
    """The binary16 word nearest to amax / qmax; 0 is not yet rescued, and infinity is to be refused."""
    quotient = word32(divide32(value32(amax), np.float32(qmax)))
    return np.int64(binary16_of_binary32(np.int64(quotient)))


@device
def codes_of(words: Array, scale: Any, qmin: int, qmax: int, codes: Array) -> Any:
    """The codes of an octet under a finite scale; how many of them the clamp changed."""
    # The codes of an all-zero group are 0 whatever they are multiplied by.
    inverse = divide32(np.float32(1), scale_value(scale)) if scale != 0 else np.float32(1)
    clamped = np.int64(0)
    for i in range(OCTET):
        rounded = np.int64(nearest_integer(multiply32(value32(words[i]), inverse)))
        code = np.int64(code_of_normalized(rounded, qmin, qmax))
        clamped += code != rounded
        codes[i] = code
    return clamped


@kernel
def encode_octets(
    kind: int,
    source: Array,
    wide: Array,
    whole: bool,
    rows: int,
    columns: int,
    bits: int,
    group: int,
    qmax: int,
    base: Array,
    high: Array,
    scales: Array,
    counts: Array,
) -> None:
    """Encode flat source words [rows, columns]; `base` in words of 32 bits, `counts` uint64 [rescued, clamped, refused].

    `wide` is the source in words of 64 bits where no octet is cut by a row's end, and then `whole` says so.
    """
    largest = cuda.shared.array(THREADS, np.uint32)
    words = cuda.local.array(OCTET, np.uint32)
    codes = cuda.local.array(OCTET, np.int32)
    thread = np.int64(cuda.threadIdx.x)
    octet = np.int64(cuda.blockIdx.x) * THREADS + thread
    row_octets = (columns + LINE - 1) // LINE * LINE_OCTETS
    inside = octet < rows * row_octets
    largest[thread] = np.uint32(0)
    if inside:
        row = np.int64(0) if rows == 1 else np.int64(np.uint64(octet) // np.uint64(row_octets))
        first = (octet - row * row_octets) * OCTET
        lanes = min(columns - first, OCTET)
        if whole and lanes == OCTET:
            load_octet(kind, wide, (row * columns + first) // OCTET, words)
        else:
            load_lanes(kind, source, row * columns + first, lanes, words)
        largest[thread] = largest_of(words)
    cuda.syncthreads()
    if inside:
        octets = group // OCTET
        leader = thread - thread % octets
        amax = np.uint32(0)
        for i in range(octets):
            amax = max(amax, largest[leader + i])
        rescued = False
        scale = np.int64(0)
        if amax != 0:
            scale = raw_scale(amax, qmax)
            rescued = scale == 0
            scale = max(scale, np.int64(1))
        place = octet // octets
        if amax >= np.uint32(0x7F800000) or scale >= 0x7C00:
            cuda.atomic.min(counts, REFUSED, np.uint64(place))
        else:
            clamped = codes_of(words, scale, -127 if bits == 8 else -qmax - 1, qmax, codes)
            if clamped != 0:
                cuda.atomic.add(counts, CLAMPED, np.uint64(clamped))
            pack_octet(bits, codes, octet, base, high)
            if thread == leader:
                scales[np.uint64(place)] = np.uint16(scale)
                if rescued:
                    cuda.atomic.add(counts, RESCUED, np.uint64(1))


def encode(
    memory: Memory, fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes
) -> EncodeFault | EncodeCounts:
    """See `cpu.encode`. Raises: DeviceFailed."""
    rows, columns = source.shape
    if grouped_rows(fmt, columns, out) != rows:
        raise ValueError(f"planes of {out.scales.size} groups cannot take {rows} rows of {columns} columns")
    words, per_row = source_words(source, dtype), groups_per_row(fmt, columns)
    found: list[tuple[int, int]] = []
    refused: list[int] = []

    def visit(batch: Batch) -> None:
        if refused:
            return
        rescued, clamped, first = _batch(memory, fmt, words, dtype, batch)
        if first is None:
            found.append((rescued, clamped))
        else:
            before = batch.first // fmt.group if columns % LINE == 0 else batch.first // columns * per_row
            refused.append(before + first)

    walk(memory, fmt, columns, out, visit)
    if refused:
        return encode_fault(fmt, source, dtype, *divmod(refused[0], per_row))
    return EncodeCounts(sum(rescued for rescued, _ in found), sum(clamped for _, clamped in found))


def _batch(
    memory: Memory, fmt: GroupedFormat, words: Words, dtype: str, batch: Batch
) -> tuple[int, int, int | None]:
    """Groups rescued, lanes clamped, and the first group refused, counted over those of the batch."""
    out = batch.planes
    source = memory.upload("source", words[batch.first : batch.first + batch.lanes])
    base = memory.empty("base", out.base.size, np.uint8)
    high, scales = (
        memory.empty("high", out.high.size, np.uint8),
        memory.empty("scales", out.scales.size, np.uint16),
    )
    counts = memory.upload("counts", np.array([0, 0, NONE], np.uint64))
    planes = (base.view(np.uint32), high, scales)
    encode_on(memory, fmt, batch.rows, batch.columns, source, dtype, planes, counts)
    found = np.empty(3, np.uint64)
    memory.download(counts, found)
    if int(found[REFUSED]) != NONE:
        return 0, 0, int(found[REFUSED])
    for plane, host in ((base, out.base), (high, out.high), (scales, out.scales)):
        memory.download(plane, host)
    return int(found[RESCUED]), int(found[CLAMPED]), None


def encode_on(
    memory: Memory,
    fmt: GroupedFormat,
    rows: int,
    columns: int,
    source: DeviceArray,
    dtype: str,
    planes: tuple[DeviceArray, DeviceArray, DeviceArray],
    counts: DeviceArray,
) -> None:
    """Start the encoder on what is on the device: base in words of 32 bits, `counts` [0, 0, NONE] at first."""
    whole = columns % OCTET == 0
    wide = source.view(np.uint64) if whole else memory.empty("none", 1, np.uint64)
    height, width = (1, rows * columns) if columns % LINE == 0 else (rows, columns)
    shape = (whole, height, width, fmt.code_bits, fmt.group, fmt.qmax)
    octets = height * -(-width // LINE) * LINE_OCTETS
    memory.launch(encode_octets, octets, KINDS[dtype], source, wide, *shape, *planes, counts)
