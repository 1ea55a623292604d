"""Compute profiles are honoured: the kernels give the words that the profiles' vectors state."""

from dataclasses import replace
from itertools import groupby
from typing import Any, get_args

import numpy as np
import pytest

from ninfer_core.compute import COMPUTE_PROFILES, WORDS_EQUAL, ComputeProfile, Operation
from ninfer_core.formats import FORMATS, QUANTIZED, BlockFormat, GroupedFormat, RowFormat
from ninfer_core.governance.entries import meanings
from ninfer_core.governance.vectors import compute_vectors
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import GroupedWords, pack
from ninfer_core.words import code_of_word


def computed(fmt: Any, rows: list[list[int]], dtype: type[np.unsignedinteger[Any]]) -> list[int]:
    """What the kernels make of stored words, one row or group at a time."""
    words = []
    match fmt:
        case GroupedFormat():
            for code, scale in rows:
                one = GroupedWords(
                    np.array([[code_of_word(code, fmt.code_bits)]], np.int8), np.array([[scale]], np.uint16)
                )
                out = np.empty((1, 1), dtype)
                cpu.reconstruct_grouped(fmt, 1, GroupedPlanes(*pack(fmt, one)), out)
                words.append(int(out[0, 0]))
        case RowFormat():
            codes, scales = (np.array(column) for column in zip(*rows, strict=True))
            out = np.empty((len(rows), 1), dtype)
            cpu.reconstruct_row(codes.astype(np.uint8).reshape(-1, 1), scales.astype(np.uint16), out)
            words = out[:, 0].tolist()
        case BlockFormat():
            for code, scale, divisor in rows:
                packed, out = np.full((1, 8), code | code << 4, np.uint8), np.empty((1, 16), dtype)
                cpu.reconstruct_nvfp4(packed, np.array([[scale]], np.uint8), divisor, out)
                assert len(set(out[0].tolist())) == 1
                words.append(int(out[0, 0]))
    return words


RECONSTRUCTIONS = [profile for profile in COMPUTE_PROFILES if profile.operation == "reconstruct"]


@pytest.mark.parametrize("profile", RECONSTRUCTIONS, ids=lambda profile: profile.name)
def test_the_kernels_honour_the_profile(profile: ComputeProfile) -> None:
    assert profile.criterion is WORDS_EQUAL
    assert profile.formats == QUANTIZED
    dtype = {"FP32": np.uint32, "BF16": np.uint16}[profile.output]
    vectors = compute_vectors(profile)
    assert {name for name, *_ in vectors} == {fmt.name for fmt in profile.formats}
    for name, answers in groupby(vectors, key=lambda answer: answer[0]):
        stored = [answer[1:] for answer in answers]
        expected = [answer[-1] for answer in stored]
        assert computed(FORMATS[name], [answer[:-1] for answer in stored], dtype) == expected, name


def test_every_operation_has_a_profile_and_every_profile_its_locked_digest() -> None:
    assert {profile.operation for profile in COMPUTE_PROFILES} == {*get_args(Operation)}
    for meaning in meanings():
        if meaning.registry == COMPUTE_PROFILES.what:
            assert COMPUTE_PROFILES[meaning.name].digest == meaning.digest
    with pytest.raises(LookupError):
        _ = replace(RECONSTRUCTIONS[0], name="RECONSTRUCT_FP16_V1").digest
