"""ONNX decoders against our own: the same words in the reference evaluator and in onnxruntime, on every vector."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.functions.declared import declared_of, dtypes_of, payload_of
from ninfer_core.schemes.functions.decoders import decoder_of
from ninfer_core.schemes.functions.evaluate import run_onnxruntime, run_reference
from ninfer_core.schemes.functions.recipes import RECIPES
from ninfer_core.schemes.functions.signatures import check_functions
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import leaves, view
from tests.schemes.functions.requests import Request, more, requests

ALL = (*requests(), *more())


def same(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    """Word for word. One NaN is another: processors differ in its sign and payload, and ONNX says nothing of them."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(found), nan)
    assert np.array_equal(found.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])


@pytest.mark.parametrize("request_", ALL, ids=lambda one: one.name)
def test_both_engines_decode_what_our_decoder_does(request_: Request) -> None:
    form, parts, shape, params = request_.form, request_.parts, request_.shape, request_.params
    declared = declared_of(form, shape, params, dtypes_of(parts))
    function = decoder_of(form, shape, params, dtypes_of(parts))
    assert function is not None
    payload = payload_of(form, parts)
    assert size_bytes(declared) == len(payload)
    arrays = [leaf.array for leaf in view(declared, payload)]
    expected = run.decode(form, parts, shape, params, plain=True)
    same(run_reference(function, arrays), expected)
    same(run_onnxruntime(function, arrays), expected)


@pytest.mark.parametrize(
    "request_", {one.form.name: one for one in ALL}.values(), ids=lambda one: one.form.name
)
def test_a_decoder_keeps_the_contract(request_: Request) -> None:
    declared = declared_of(request_.form, request_.shape, request_.params, dtypes_of(request_.parts))
    faults = Faults()
    root = declared.declarations[declared.root]
    check_functions(root, leaves(declared), declared.dims, size_bytes(declared), faults, "type")
    assert faults.findings.items == []


def test_every_stored_form_has_a_decoder_that_was_tried() -> None:
    stored = {form.name for form in FORMS if form.kind == "file"}
    assert {one.form.name for one in ALL} == set(RECIPES) == stored


def test_without_parts_named_a_form_has_its_usual_ones() -> None:
    for form in FORMS:
        if form.kind == "file" and form.name not in ("exl2", "spqr"):  # whose sizes lie in their parts
            shape, params = USUAL.get(form.name, ((128, 256), {}))
            declared = declared_of(form, shape, params)
            assert declared.declarations[declared.root].decoder is not None, form.name


USUAL = {
    "linear_onnx": ((8, 8), {"type": "int8"}),
    "aqlm": ((8, 16), {"num_codebooks": 1, "bits": 8}),
    "exl3": ((128, 128), {"bits": 1}),
    "bitnet_hf": ((8, 8), {"linear_class": "bitlinear"}),
    "hqq": ((64, 64), {"bits": 3}),
}


def test_parts_that_cannot_be_decoded_make_a_type_without_decoder() -> None:
    form = FORMS["bnb_nf4"]
    alone = {"payload": "uint8", "absmax_u8": "uint8", "nested_absmax": "float32"}
    declared = declared_of(form, (64, 64), {}, alone)
    assert [plan.path for plan in leaves(declared)] == [*alone, "code"]
    assert decoder_of(form, (64, 64), {}, alone) is None


@pytest.mark.parametrize(
    ("dtypes", "code"),
    [
        ({"payload": "float32", "absmax": "float32"}, "scheme.part_dtype"),
        ({"payload": "uint8", "other": "float32"}, "scheme.part_unknown"),
    ],
)
def test_parts_that_a_form_does_not_have_are_refused(dtypes: dict[str, str], code: str) -> None:
    with pytest.raises(run.SchemeRefused) as refused:
        declared_of(FORMS["bnb_nf4"], (64, 64), {}, dtypes)
    assert [finding.code for finding in refused.value.findings.items] == [code]
