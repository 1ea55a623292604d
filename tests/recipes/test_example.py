"""The demonstration recipe is sound on its own; `tests/test_demo.py` runs it on the real checkpoint."""

from collections import Counter
from pathlib import Path

from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile
from ninfer_core.recipes import Recipe, load_recipe

EXAMPLE = Path(__file__).parents[2] / "examples" / "all-minilm-l6-v2.recipe.json"


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
    formats = Counter(fmt.name for rule in recipe.rules for fmt in rule.formats)
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
