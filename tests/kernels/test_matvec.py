"""The consumer of this machine within its criterion, faults that the criterion refuses, and flush-to-zero modes."""

from dataclasses import replace

import numpy as np
import pytest

from ninfer_core import matvec as oracle
from ninfer_core.formats import FORMATS, FP8_E4M3FN_ROW_BF16S, GROUPED, NVFP4, QUANTIZED, W8G32_F16S
from ninfer_core.kernels import matvec
from ninfer_core.kernels.registry import NoKernel
from ninfer_core.kernels.values import GroupedPlanes
from tests.kernels.consumed import FAULTS, GROUPED_FAULTS, Matrix, random_matrix, target_shapes
from tests.kernels.floating_mode import flush_to_zero, flushing

ODD = (1, 33, 127, 129, 320, 4096 + 64)


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)
def test_every_output_is_within_the_criterion(fmt):
    for columns in (64, 192, 4096 + 64) if fmt is NVFP4 else ODD:
        matrix = random_matrix(fmt, 128 if fmt is NVFP4 else 7, columns, seed=columns)
        assert matrix.refused(matvec) == 0, columns


def test_widths_of_the_registered_targets():
    widths = sorted({(fmt.name, k) for fmt, _, k in target_shapes()})
    assert len(widths) > 12
    for name, columns in widths:
        rows = 128 if name == NVFP4.name else 16
        assert random_matrix(FORMATS[name], rows, columns, seed=columns).refused(matvec) == 0, (name, columns)


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)
def test_planted_faults_are_refused(fmt):
    matrix = random_matrix(fmt, 256, 320)
    assert matrix.refused(matvec) == 0
    for fault in FAULTS.get(fmt, GROUPED_FAULTS):
        assert matrix.refused(matvec, fault(matrix)) > 20, fault.__name__


@pytest.mark.parametrize("fmt", [W8G32_F16S, NVFP4], ids=lambda f: f.name)
def test_one_lost_group_shows_where_all_scales_are_subnormal(fmt):
    drawn = random_matrix(fmt, 128, 320, seed=2)
    least, place = (0x08 if fmt is NVFP4 else 0x400), len(drawn.planes) - 1
    scales = np.where(drawn.planes[place] > 0, drawn.planes[place] % (least - 1) + 1, 0)
    matrix = replace(drawn, planes=(*drawn.planes[:-1], scales.astype(drawn.planes[place].dtype)))
    assert matrix.refused(matvec) == 0
    for group in np.random.default_rng(3).choice(np.flatnonzero(scales), 12, replace=False):
        lost = matrix.planes[place].copy()
        lost[group] = 0
        assert matrix.refused(matvec, replace(matrix, planes=(*drawn.planes[:-1], lost))) >= 1, group


@flushing
@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda f: f.name)
def test_flush_to_zero_of_the_thread_changes_no_word(fmt):
    matrix = random_matrix(fmt, 128, 192, seed=4)
    weights = matrix.weights()
    middling = oracle.activations(192, 2)[0]
    tiny = middling & 0x807F  # every activation subnormal
    mixed = np.where(np.arange(192) % 2, middling, tiny).astype(np.uint16)
    for activation in (middling, tiny, mixed):
        normal = matrix.times(matvec, activation)
        with flush_to_zero():
            flushed = matrix.times(matvec, activation)
            expected = oracle.reference(weights, activation)
        assert np.array_equal(normal, flushed)
        assert oracle.judge(expected, flushed).wrong == 0
    assert np.count_nonzero(normal & 0x7FFF) > 64


def test_row_scales_and_results_that_are_subnormal_stay():
    codes, scales = np.full((3, 2), 0x38, np.uint8), np.array([1, 3, 0x7F], np.uint16)  # ones
    out = np.empty(3, np.uint16)
    matvec.matvec_row(codes, scales, np.array([0x3F80, 0], np.uint16), out)
    assert list(out) == [1, 3, 0x7F]


def test_infinities_and_nans_of_the_activation_reach_the_output():
    matrix = random_matrix(W8G32_F16S, 4, 32)
    activation = np.zeros(32, np.uint16)
    activation[0] = 0x7FC0
    assert all(matrix.times(matvec, activation) & 0x7FFF > 0x7F80)


def test_sizes_that_do_not_go_together_are_refused():
    good = random_matrix(GROUPED[0], 2, 64)
    activation = np.zeros(64, np.uint16)
    with pytest.raises(ValueError, match="columns need"):
        good.times(matvec, activation[:63])
    with pytest.raises(ValueError, match="columns need"):
        good.times(matvec, activation.view(np.int16))
    with pytest.raises(ValueError, match="output must"):
        Matrix(good.format, 3, 64, good.planes).times(matvec, activation)
    with pytest.raises(ValueError, match="do not hold"):
        Matrix(good.format, 2, 300, good.planes).times(matvec, np.zeros(300, np.uint16))
    rows = random_matrix(FP8_E4M3FN_ROW_BF16S, 3, 5)
    with pytest.raises(ValueError, match="as many scales"):
        Matrix(rows.format, 3, 5, (rows.planes[0], rows.planes[1][:2])).times(matvec, activation[:5])
    blocks = random_matrix(NVFP4, 128, 64)
    with pytest.raises(ValueError, match="do not hold"):
        Matrix(NVFP4, 128, 128, blocks.planes).times(matvec, np.zeros(128, np.uint16))


@pytest.mark.parametrize("columns", [1 << 20, (1 << 20) - 128])
def test_as_many_terms_as_the_criterion_does_not_bound_are_refused(columns):
    activation, out = np.zeros(columns, np.uint16), np.ones(1, np.uint16)
    grouped = GroupedPlanes.empty(W8G32_F16S, 1, columns)
    for plane in (grouped.base, grouped.scales):
        plane.fill(0)
    asked = (
        lambda: matvec.matvec_row(np.zeros((1, columns), np.uint8), np.zeros(1, np.uint16), activation, out),
        lambda: matvec.matvec_grouped(W8G32_F16S, columns, grouped, activation, out),
    )
    for ask in asked:
        if columns < 1 << 20:
            ask()
            assert out[0] == 0
        else:
            with pytest.raises(NoKernel, match=r"does not take the shape \[1, 1048576\]"):
                ask()
            assert out[0] == 1
