"""The integer forms: the reference vectors word for word, what parts imply, and which words are at fault."""

import numpy as np
import pytest

from ninfer_core.schemes import run
from tests.schemes.integer.vectors import Case, cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_vectors(case: Case) -> None:
    shape = case.expected.shape
    for plain in (True, False):
        values = run.decode(case.form, case.parts, shape, case.params, plain=plain)
        assert np.array_equal(values.view(np.uint32), case.expected.view(np.uint32))
    # The ragged block of this one was packed from random codes, those behind the last input included.
    padded = ["scheme.padding_nonzero"] if case.name == "matmulnbits-b4_K80_N8_bs32_none" else []
    assert [found.code for found in run.check(case.form, case.parts, shape, case.params)] == padded
    if case.form.infer is not None:
        assert run.implied_shape(case.form, case.parts, case.params) == shape
