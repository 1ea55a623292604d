"""The synthetic model of the tests themselves: built as its vectors state, every edit to its digest."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from tests import mini_hybrid, mini_hybrid_artifact


def test_the_checkpoint_holds_every_stated_tensor(mini_checkpoint: mini_hybrid.MiniHybrid) -> None:
    counts = mini_hybrid.document("checkpoint")["counts"]
    found = {role: sum(owner == role for owner, _ in mini_hybrid.tensors()) for role in counts}
    assert found == counts
    assert all(folder.is_dir() for folder in mini_checkpoint.roles.values())
    digest = hashlib.sha256(mini_checkpoint.ranking.read_bytes()).hexdigest()
    assert digest == mini_hybrid.document("checkpoint")["ranking"]["sha256"]


def test_every_payload_made_without_the_product_is_the_golden_one() -> None:
    artifact = mini_hybrid_artifact.artifact()
    _, start = mini_hybrid.directory(artifact)
    for entry in mini_hybrid.document("golden")["objects"]:
        begin = start + entry["offset"]
        payload = artifact[begin : begin + entry["bytes"]]
        assert hashlib.sha256(payload).hexdigest() == entry["sha256"], entry["name"]


@pytest.mark.parametrize("mutation", mini_hybrid.mutations(), ids=lambda mutation: mutation["id"])
def test_every_mutation_gives_the_stated_file(mutation: Mapping[str, Any]) -> None:
    mini_hybrid.mutate(mini_hybrid_artifact.artifact(), mutation)
