"""The fuzzer's targets on what it starts from, so that they are known to work where it does not run."""

import pytest

from tests.fuzz.seeds import dictionary, seeds
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("form", TARGETS)
def test_the_seeds_of_a_form_are_taken(form: str) -> None:
    found = list(seeds(form))
    assert len(found) >= (10 if form == "containers" else 60)
    for data in found:
        TARGETS[form](data)
        TARGETS[form](data[: len(data) // 2])


# Found by the fuzzer.
INVALID_UTF8 = bytes.fromhex("1500ca3e121a100a050a01611004" + "0a050a01a310041001" + "0800")


def test_a_name_that_is_no_utf8_is_refused() -> None:
    TARGETS["protobuf"](INVALID_UTF8)


def test_the_words_of_documents_are_known_to_the_fuzzer() -> None:
    words = dictionary("json").splitlines()
    assert {'"\\"dims_index\\""', '"\\"onnx_text\\""', '"\\"FLOAT4E2M1\\""'} <= set(words)
