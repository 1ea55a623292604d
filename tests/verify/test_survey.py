"""One visit of a block gives the report that its checks give one after the other, whether the block is sound or not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import convert
from ninfer_core.kernels.processor import cpu_processor
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from tests.build import EVERYTHING, open_path, plan, recipe, tensor, write_checkpoint

RECIP = "MAXABS_F16_RECIP_RNE_V1"
GROUPED = ("Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S")


class Watched:
    """The processor, with or without visits; it remembers what it was asked."""

    def __init__(self, visits: bool) -> None:
        self.visits, self.asked = visits, list[str]()

    def __getattr__(self, name: str) -> Any:
        method = getattr(cpu_processor(), name)
        if not callable(method):
            return method

        def ask(*args: Any) -> Any:
            self.asked.append(name)
            return None if name in ("survey_grouped", "parity_grouped") and not self.visits else method(*args)

        return ask


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, bytes]:
    """A plan, and the artifact that it makes."""
    folder = tmp_path_factory.mktemp("survey")
    words = np.random.default_rng(7).standard_normal((5, 330)).astype(np.float32).view(np.uint32)
    write_checkpoint(folder, {"a": ("F32", words), "b": ("BF16", (words >> 16).astype(np.uint16))})
    values = {"a": tensor("a", (5, 330), "F32"), "b": tensor("b", (5, 330), "BF16")}
    rules = [
        {"object": f"{fmt}/{name}", "value": value, "encode": RECIP, "format": fmt}
        for fmt in GROUPED
        for name, value in values.items()
    ]
    bound = plan(folder, recipe(rules))
    convert(bound, folder / "a.ninfer", workers=1)
    return bound, (folder / "a.ninfer").read_bytes()


@pytest.mark.parametrize("checks", [EVERYTHING, ("structure", "values")], ids=["all", "no statistics"])
def test_the_report_is_the_same(made, tmp_path: Path, checks):
    bound, content = made
    path = tmp_path / "a.ninfer"
    random = np.random.default_rng(3)
    seen = set()
    for places in (
        [],
        random.integers(6000, len(content), 3).tolist(),
        random.integers(6000, len(content), 40).tolist(),
    ):
        damaged = bytearray(content)
        for place in places:
            damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        documents, questions = [], []
        for visits in (True, False):
            processor = Watched(visits)
            with open_path(path) as opened:
                report = verify(
                    opened, asked((*checks, "parity")), Against(bound), workers=1, processor=processor
                )
            documents.append(report.as_json())
            questions.append(processor.asked)
        assert documents[0] == documents[1]
        seen.add(documents[0]["verdict"])
        visit = "survey_grouped" if "statistics" in checks else "parity_grouped"
        assert questions[0].count(visit) == questions[1].count(visit) == 2 * len(GROUPED)
        if not places:  # nothing else was needed
            assert "encode" not in questions[0]
            assert "error_sums_grouped" not in questions[0]
            assert "encode" in questions[1]
    assert seen == {"passed", "failed"}
