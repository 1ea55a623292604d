"""Special ids: found in a tokenizer_config, and a text that does not say which they are is told apart from none."""

import json

import pytest

from ninfer_core.special_ids import NoSpecialIds, special_ids


def config(table: object) -> bytes:
    return json.dumps({"model_max_length": 10**30, "added_tokens_decoder": table}).encode()


def test_only_those_that_are_special():
    table = {
        "997": {"content": "<a>", "special": True},
        "5": {"content": "<b>", "special": False},
        "6": {"content": "<c>"},
        "12": {"special": True},
    }
    assert special_ids(config(table)) == (12, 997)
    assert special_ids(config({})) == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b"", "$"),
        (b"\xff", "$"),
        (b"[]", "$"),
        (b"[" * 100_000, "$"),
        (b"{}", "$.added_tokens_decoder"),
        (config([]), "$.added_tokens_decoder"),
        (config(None), "$.added_tokens_decoder"),
        (b'{"added_tokens_decoder": {}, "added_tokens_decoder": {}}', "$.added_tokens_decoder"),
        (b'{"added_tokens_decoder": {"1": {}, "1": {"special": true}}}', "$.added_tokens_decoder"),
        (config({"x": {}}), "$.added_tokens_decoder"),
        (config({"01": {}}), "$.added_tokens_decoder"),
        (config({"-1": {}}), "$.added_tokens_decoder"),
        (config({"9" * 20: {}}), "$.added_tokens_decoder"),
        (config({"1": "<a>"}), "$.added_tokens_decoder.1"),
        (config({"1": {"special": 1}}), "$.added_tokens_decoder.1"),
        (config({"1": {"special": "true"}}), "$.added_tokens_decoder.1"),
        (b'{"added_tokens_decoder": {"1": {"special": false, "special": true}}}', "$.added_tokens_decoder.1"),
    ],
)
def test_what_does_not_say(text, path):
    with pytest.raises(NoSpecialIds) as raised:
        special_ids(text)
    assert raised.value.path == path
