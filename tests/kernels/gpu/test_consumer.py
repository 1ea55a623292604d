"""The consumer for CUDA devices in the simulator: within its criterion whatever the shape, the words, the memory."""

import numpy as np
import pytest

from ninfer_core import matvec as oracle
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, Q5G64_F16S, QUANTIZED, W8G32_F16S
from ninfer_core.kernels.registry import NoKernel
from tests.kernels.consumed import Matrix, lost_lane, natural_order, random_matrix, swapped_nibbles

formats = pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)


@formats
def test_every_output_is_within_the_criterion(simulated, fmt):
    columns = {NVFP4: 64, W8G32_F16S: 33, FP8_E4M3FN_ROW_BF16S: 77}.get(fmt, 200)
    matrix = random_matrix(fmt, 128 if fmt is NVFP4 else 5, columns, seed=columns)
    dense, *_, sparse, _ = oracle.activations(columns, 9)
    weights = matrix.weights()
    vectors = [dense] if fmt is NVFP4 else [dense, sparse, dense & 0x807F]  # the last with subnormals alone
    for activation in vectors:
        got = oracle.judge(oracle.reference(weights, activation), matrix.times(simulated, activation))
        assert (got.outputs, got.wrong, got.first) == (matrix.rows, 0, None)


def test_nvfp4_scales_are_read_from_their_tiles(simulated):
    matrix = random_matrix(NVFP4, 128, 128, seed=3)
    activation = oracle.activations(128, 1)[2]
    expected = oracle.reference(matrix.weights(), activation)
    assert oracle.judge(expected, matrix.times(simulated, activation)).wrong == 0
    assert oracle.judge(expected, natural_order(matrix).times(simulated, activation)).wrong > 20


@pytest.mark.parametrize("fault", [swapped_nibbles, lost_lane], ids=lambda f: f.__name__)
def test_planted_faults_are_refused(simulated, fault):
    matrix = random_matrix(Q5G64_F16S, 8, 97, seed=6)
    for activation in oracle.activations(97, 2)[::5]:
        out = fault(matrix).times(simulated, activation)
        if oracle.judge(oracle.reference(matrix.weights(), activation), out).wrong:
            return
    pytest.fail("no activation shows the fault")


def test_subnormal_scales_and_results_stay(simulated):
    codes, scales = np.full((3, 2), 0x38, np.uint8), np.array([1, 3, 0x7F], np.uint16)  # ones
    out = np.empty(3, np.uint16)
    simulated.matvec_row(codes, scales, np.array([0x3F80, 0], np.uint16), out)
    assert list(out) == [1, 3, 0x7F]


def test_short_memory_gives_the_same_words(simulated):
    for fmt, rows, columns, most in ((Q5G64_F16S, 9, 70, 5000), (FP8_E4M3FN_ROW_BF16S, 9, 300, 8000)):
        matrix = random_matrix(fmt, rows, columns)
        activation = oracle.activations(columns, 5)[0]
        whole = matrix.times(simulated, activation)
        assert np.array_equal(matrix.times(simulated.limited(most), activation), whole)


def test_sizes_that_do_not_go_together_are_refused(simulated):
    matrix = random_matrix(W8G32_F16S, 2, 64)
    with pytest.raises(ValueError, match="columns need"):
        matrix.times(simulated, np.zeros(63, np.uint16))
    with pytest.raises(ValueError, match="output must"):
        Matrix(matrix.format, 3, 64, matrix.planes).times(simulated, np.zeros(64, np.uint16))


def test_as_many_terms_as_the_criterion_does_not_bound_are_refused(simulated):
    columns, out = 1 << 20, np.ones(1, np.uint16)
    with pytest.raises(NoKernel, match="does not take the shape"):
        simulated.matvec_row(
            np.zeros((1, columns), np.uint8), np.zeros(1, np.uint16), np.zeros(columns, np.uint16), out
        )
