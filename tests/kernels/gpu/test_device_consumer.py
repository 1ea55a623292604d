"""On a CUDA device: the consumer on every shape of the registered targets, and surveys of blocks as a pass makes them.

`make test-gpu` runs these. In the simulator they run on few weights, which proves the tests and no device.
"""

import numpy as np
import pytest

from ninfer_core import matvec as oracle
from ninfer_core.formats import GROUPED, NVFP4, QUANTIZED
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes
from ninfer_core.words import narrow_bf16
from tests.kernels.consumed import random_matrix, repeated, target_shapes

pytestmark = pytest.mark.gpu
DISTINCT = 521  # rows, a prime: whoever reads another row's words is seen


@pytest.fixture(scope="module")
def gpu(board):
    """The device as a processor."""
    from ninfer_core.kernels.gpu import Gpu

    return Gpu(board)


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)
def test_every_output_of_every_target_shape_is_within_the_criterion(gpu, board, fmt):
    shapes = [(n, k) for one, n, k in target_shapes() if one is fmt]
    if board.simulated:
        shapes = [(128, 64) if fmt is NVFP4 else (5, 130)]
    for rows, columns in shapes:
        own = 384 if fmt is NVFP4 else DISTINCT
        few = random_matrix(fmt, min(own, rows), columns, seed=rows)
        weights, matrix = few.weights(), repeated(few, rows)
        for activation in oracle.activations(columns, rows)[: 1 if board.simulated else None]:
            part = oracle.reference(weights, activation)
            whole = oracle.Reference(np.resize(part.products, rows), np.resize(part.slack, rows))
            got = oracle.judge(whole, matrix.times(gpu, activation))
            assert (got.outputs, got.wrong, got.first) == (rows, 0, None), (rows, columns)


@pytest.mark.parametrize("columns", [4_096, 4_100])
@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_a_survey_gives_the_digits_of_the_cpu(gpu, board, fmt, columns):
    rows, columns = (2, columns // 32) if board.simulated else (1_024, columns)
    values = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
    for dtype, words in (("BF16", narrow_bf16(values.view(np.uint32))), ("F32", values.view(np.uint32))):
        planes = GroupedPlanes.empty(fmt, rows, columns)
        cpu.encode(fmt, words, dtype, planes)
        counts, found = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
        cpu.statistics_grouped(fmt, columns, planes, counts)
        want = cpu.parity_grouped(fmt, columns, planes, words, dtype)
        assert want is not None
        assert gpu.survey_grouped(fmt, columns, planes, words, dtype, found) == want
        assert np.array_equal(found.histogram, counts.histogram)
        assert np.array_equal(found.tallies, counts.tallies)
        planes.base[planes.base.size // 2] ^= 1
        assert gpu.survey_grouped(fmt, columns, planes, words, dtype, found) is None
        assert gpu.error_sums_grouped(fmt, columns, planes, words, dtype) == cpu.error_sums_grouped(
            fmt, columns, planes, words, dtype
        )
