"""Compiled decoders of small floats equal the plain ones on any words, of any number of blocks."""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.compiled import spread
from ninfer_core.schemes.floating import FORMS
from tests.schemes.numbers import assert_same_numbers

FAST = [form for form in FORMS if form.fast is not None]


def any_words(form, shape, seed):
    """Parts of random bytes; a binary32 scale is any number."""
    rng = np.random.default_rng(seed)
    parts = {}
    for name, counts in form.stored(shape, run.complete(form, {})).items():
        (part,) = (part for part in form.parts if part.name == name)
        if "float32" in part.dtypes:
            parts[name] = rng.standard_normal(counts).astype(np.float32)
        else:
            parts[name] = rng.integers(0, 256, counts, np.uint8)
    return parts


@pytest.mark.parametrize("form", FAST, ids=lambda form: form.name)
@pytest.mark.parametrize("shape", [(7, 96), (0, 32), (3, 0), (64,), (2, 3, 5, 32)])
def test_compiled_equals_plain(form, shape):
    parts = any_words(form, shape, 31)
    plain = run.decode(form, parts, shape, {}, plain=True)
    assert_same_numbers(run.decode(form, parts, shape, {}), plain)
    assert plain.size == 0 or np.isfinite(plain).any()


@pytest.mark.parametrize("form", FAST, ids=lambda form: form.name)
def test_threads_cover_every_block_once(form, monkeypatch):
    monkeypatch.setattr(spread, "processors", lambda: 3)
    monkeypatch.setattr(spread, "WORTH_A_THREAD", 64)
    parts = any_words(form, (11, 160), 32)
    assert_same_numbers(
        run.decode(form, parts, (11, 160), {}), run.decode(form, parts, (11, 160), {}, plain=True)
    )


@pytest.mark.parametrize("form", FAST, ids=lambda form: form.name)
def test_arrays_that_are_no_row_of_bytes_are_taken_as_well(form):
    parts = any_words(form, (6, 64), 33)
    turned = {name: np.asfortranarray(array) for name, array in parts.items()}
    assert_same_numbers(
        run.decode(form, turned, (6, 64), {}), run.decode(form, parts, (6, 64), {}, plain=True)
    )
