"""Random profiles: the translation loses nothing, sizes hold, and portable decoders equal ours bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ninfer_core.errors import NinferError
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.describe import describe, normalized
from ninfer_core.schemes.profiles.dispatch import decode, dequantize
from ninfer_core.schemes.profiles.functions import decoder_of
from ninfer_core.schemes.profiles.model import Linear, Quantization, ScaleFloat
from ninfer_core.schemes.profiles.rules import check_words
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import SchemeRefused
from ninfer_core.schemes.structs.model import Declaration, Field, Structure
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import view
from tests.schemes.literal.cases import words
from tests.schemes.profiles.strategies import profiles

SETTINGS = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(profiles(), st.integers(0, 2**32 - 1))
def test_there_and_back(drawn: tuple[Quantization, Shape], seed: int) -> None:
    quantization, shape = drawn
    declared = translate(quantization, shape)
    again = describe(declared)
    # The length of a list that is repeated, names, placement: all of it comes back.
    assert again == quantization
    payload = np.random.default_rng(seed).integers(0, 256, size_bytes(declared), dtype=np.uint8)
    if "scheme.index_out_of_range" in _checked(quantization, shape, payload):
        with pytest.raises(SchemeRefused) as refused:
            decode(quantization, declared, payload, shape)
        assert {item.code for item in refused.value.findings} == {"scheme.index_out_of_range"}
        return
    ours = decode(quantization, declared, payload, shape)
    assert ours.shape == shape
    assert np.array_equal(words(dequantize(declared, payload, shape)), words(ours))
    _same_in_the_reference(quantization, shape, payload, ours)


def _checked(quantization: Quantization, shape: Shape, payload: np.ndarray) -> set[str]:
    from ninfer_core.findings import Findings

    findings = Findings()
    check_words(quantization, payload, shape, findings)
    return {item.code for item in findings.items}


def _same_in_the_reference(
    quantization: Quantization, shape: Shape, payload: np.ndarray, ours: np.ndarray
) -> None:
    from ninfer_core.schemes.functions.evaluate import run_reference

    declared = translate(quantization, shape)
    function = decoder_of(quantization, declared, shape)
    assert function is not None
    found = run_reference(function, [leaf.array for leaf in view(declared, payload)])
    if quantization.data_type == "FLOAT16":
        with np.errstate(over="ignore"):
            ours = ours.astype(np.float16)
    assert found.dtype == ours.dtype
    assert np.array_equal(words(found), words(ours))


@SETTINGS
@given(profiles(), st.data())
def test_a_changed_type_is_refused_or_means_itself(
    drawn: tuple[Quantization, Shape], data: st.DataObject
) -> None:
    quantization, shape = drawn
    declared = translate(quantization, shape)
    index = data.draw(st.integers(0, len(declared.declarations) - 1))
    changed = _changed(declared.declarations[index], data)
    mutated = replace(
        declared,
        declarations=(*declared.declarations[:index], changed, *declared.declarations[index + 1 :]),
    )
    try:
        found = describe(mutated)
    except NinferError:  # with a code, never anything else
        return
    # What is still a profile is another one, unless the change was none.
    same = normalized(mutated) == normalized(declared)
    assert (found == quantization) is same


def _changed(declaration: Declaration, data: st.DataObject) -> Declaration:
    type_ = declaration.type
    if not isinstance(type_, Structure) or not type_.fields:
        return replace(declaration, name="OTHER")
    place = data.draw(st.integers(0, len(type_.fields) - 1))
    field = type_.fields[place]
    kept = [item for at, item in enumerate(type_.fields) if at != place]
    if field.constant is None:
        return replace(declaration, type=Structure(tuple(kept)))
    byte = data.draw(st.integers(0, max(0, len(field.constant.data) - 1)))
    mask = data.draw(st.sampled_from([1, 2, 0x80]))
    changed = bytearray(field.constant.data)
    if changed:
        changed[byte] ^= mask
    constant = replace(field.constant, data=bytes(changed))
    fields = list(type_.fields)
    fields[place] = Field(field.name, constant=constant)
    return replace(declaration, type=Structure(tuple(fields)))


def test_an_axis_beyond_any_tensor_is_refused_before_a_shape_is_made() -> None:
    declared = translate(Quantization(Linear("INT8", 8, True, ScaleFloat(1.0))), (8,))
    type_ = declared.declarations[0].type
    assert isinstance(type_, Structure)
    fields = [
        replace(item, constant=replace(item.constant, data=b"\0\0\0\x7f"))
        if item.name == "axis" and item.constant
        else item
        for item in type_.fields
    ]
    strange = replace(declared.declarations[0], type=Structure(tuple(fields)))
    with pytest.raises(SchemeRefused) as refused:
        describe(replace(declared, declarations=(strange,)))
    assert [item.code for item in refused.value.findings] == ["profile.axis_out_of_range"]


def test_a_type_of_another_shape_is_refused() -> None:
    from tests.schemes.literal.cases import literals

    case = next(case for case in literals() if case.form == "q2_k_literal")
    declared = translate(case.quantization, case.shape)
    with pytest.raises(SchemeRefused) as refused:
        dequantize(declared, case.payload, (768,))
    assert [item.code for item in refused.value.findings] == ["profile.capacity"]
    # Fewer values in as many blocks are padding (R3).
    assert dequantize(declared, case.payload, (257,)).shape == (257,)
