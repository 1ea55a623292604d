"""Through the command line: a draft head, its ids and the head they come from; rows in a wrong order; refused sources."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.cli import app
from tests.build import recipe, tensor, write_checkpoint

ROWS, COLUMNS, COUNT = 160, 192, 48
CONFIG = "frontend/tokenizer_config.json"
SPECIAL = (150, 151)
RANKING = (
    np.random.default_rng(11).permutation(ROWS).astype("<i8") + 5
)  # all different, so the order is plain


def leading(count: int) -> list[int]:
    """The ids of the largest counts that are not forced, largest first: targets, section 4."""
    ranked = sorted(range(ROWS), key=lambda token: (-RANKING[token], token))
    return [token for token in ranked if token not in SPECIAL][:count]


def bf16(rng: np.random.Generator, *shape: int) -> Any:
    return (rng.normal(size=shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def write_sources(folder: Path, seed: int = 1) -> dict[str, Path]:
    base = folder / "base"
    base.mkdir()
    rng = np.random.default_rng(seed)
    write_checkpoint(
        base,
        {
            "lm_head.weight": ("BF16", bf16(rng, ROWS, COLUMNS)),
            "q_proj.weight": ("BF16", bf16(rng, 64, COLUMNS)),
        },
    )
    table = {str(token): {"content": f"<{token}>", "special": True} for token in SPECIAL}
    (base / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": table}))
    (folder / "ranking.i64").write_bytes(RANKING.tobytes())
    return {"base": base, "ranking": folder / "ranking.i64"}


GROUPED = "MAXABS_F16_RECIP_RNE_V1"


def per_head(begin: int, end: int) -> dict[str, Any]:
    """Rows [begin, end) of each of four heads of 16 rows."""
    of = tensor("q_proj.weight", (64, COLUMNS), "BF16")
    return {"op": "row_blocks", "blocks": 4, "stride": 16, "begin": begin, "end": end, "of": of}


def document(top_ids: list[int] | None = None, gate: Any = None, **more: Any) -> dict[str, Any]:
    head = tensor("lm_head.weight", (ROWS, COLUMNS), "BF16")
    ranking = {"kind": "i64-le-rows", "row_width": ROWS, "rows": 1, "used_row": 0}
    if top_ids is not None:
        ranking["top_ids"] = top_ids
    ids = {
        "op": "ranked_token_ids",
        "ranking": "ranking",
        "row_width": ROWS,
        "candidates": ROWS,
        "count": COUNT,
        "special_ids_from": CONFIG,
    }
    fused = {"op": "concat_rows", "of": [per_head(0, 8), per_head(8, 16)]}
    return recipe(
        [
            {"object": "head", "value": head, "encode": GROUPED, "format": "Q6G64_F16S"},
            {
                "object": "draft",
                "value": {"op": "gather_rows", "ids": "ids", "of": head},
                "encode": GROUPED,
                "format": "Q4G64_F16S",
            },
            {"object": "ids", "value": ids, "encode": "copy_words", "format": "I32"},
            {"object": "fused", "value": gate or fused, "encode": GROUPED, "format": "W8G32_F16S"},
        ],
        [{"object": CONFIG, "from": "base", "file": "tokenizer_config.json", "encode": "copy_bytes"}],
        inputs={"ranking": ranking},
        **more,
    )


class Made:
    """Sources, recipe and artifact in one folder."""

    def __init__(self, folder: Path, stated: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.given = write_sources(folder)
        self.artifact = folder / "made.ninfer"
        code, text = self.run(
            "convert", *self.sources(), "--recipe", self.recipe(stated), "--out", self.artifact
        )
        assert code == 0, text
        content = self.artifact.read_bytes()
        length = int.from_bytes(content[8:16], "little")
        start = -(-(16 + length) // 4096) * 4096
        self.places = {
            entry["name"]: start + entry["offset"]
            for entry in json.loads(content[16 : 16 + length])["objects"]
        }

    def run(self, *arguments: object) -> tuple[int, str]:
        code = app.run([str(word) for word in arguments])
        return code, "".join(self.capsys.readouterr())

    def recipe(self, stated: dict[str, Any]) -> Path:
        path = self.folder / "recipe.json"
        path.write_text(json.dumps(stated))
        return path

    def sources(self) -> tuple[object, ...]:
        return "--source", self.given["base"], "--input", f"ranking={self.given['ranking']}"

    def verify(self, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
        code = app.run(["verify", str(self.artifact), *map(str, arguments), "--json", "-"])
        return code, json.loads(self.capsys.readouterr().out)["findings"]

    def edit(self, name: str, at: int, content: bytes) -> bytes:
        """Replace bytes of an object; what was there."""
        whole = bytearray(self.artifact.read_bytes())
        first = self.places[name] + at
        before = bytes(whole[first : first + len(content)])
        whole[first : first + len(content)] = content
        self.artifact.write_bytes(whole)
        return before

    def ids(self) -> list[int]:
        first = self.places["ids"]
        return np.frombuffer(self.artifact.read_bytes()[first : first + 4 * COUNT], "<i4").tolist()


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    return Made(tmp_path, document(leading(8)), capsys)


def test_all_of_it_passes_with_and_without_sources(made):
    assert made.ids()[:8] == [token for token in made.ids() if token not in SPECIAL][:8]
    assert set(made.ids()) == {*leading(COUNT - 2), *SPECIAL}
    recipe_file = made.folder / "recipe.json"
    assert made.verify("--recipe", recipe_file) == (0, [])
    assert made.verify("--recipe", recipe_file, *made.sources()) == (0, [])


def test_two_exchanged_ids_are_seen_without_a_source(made):
    """The rows stay, so both no longer are the rows of the ids they carry."""
    ids = made.ids()
    made.edit("ids", 4 * 20, np.array([ids[21], ids[20]], "<i4").tobytes())
    code, (finding,) = made.verify("--recipe", made.folder / "recipe.json")
    assert (code, finding["code"], finding["rule"]) == (1, "relations.draft_row_differs", "D2")
    assert (finding["object"], finding["count"]) == ("draft", 2)
    where = finding["where"]
    assert (where["row"], where["id"], where["rows"], where["head"]) == (20, ids[21], [20, 21], "head")


def test_one_changed_row_of_the_head_is_seen_without_a_source(made):
    """Scales of row ids[5] become eight times as large: canonical in shape, and of another size than the draft's."""
    row = made.ids()[5]
    groups = 4  # 192 columns are padded to 256
    scales = ROWS * groups * 32 + ROWS * groups * 16
    assert scales % 256 == 0
    before = np.frombuffer(made.edit("head", scales + row * groups * 2, bytes(6)), "<u2")
    made.edit("head", scales + row * groups * 2, (before + 0x0C00).astype("<u2").tobytes())
    code, (finding,) = made.verify("--recipe", made.folder / "recipe.json")
    assert (code, finding["rule"], finding["where"]["row"], finding["where"]["id"]) == (1, "D2", 5, row)


def test_another_ranking_is_seen_by_its_leading_ids(made):
    first, second, *rest = leading(8)
    other = made.recipe(document([second, first, *rest]))
    code, (finding,) = made.verify("--recipe", other)
    assert (code, finding["code"], finding["rule"]) == (1, "relations.top_ids_differ", "D3")
    assert (finding["object"], finding["where"]["index"], finding["count"]) == ("ids", 0, 2)


def test_a_missing_special_id_and_a_tokenizer_config_that_says_nothing(made):
    place = made.ids().index(SPECIAL[1])
    unused = next(token for token in range(ROWS) if token not in made.ids())
    made.edit("ids", 4 * place, np.array([unused], "<i4").tobytes())
    code, findings = made.verify("--recipe", made.folder / "recipe.json")
    assert (code, {item["rule"] for item in findings}) == (1, {"D1", "D2"})
    missing = next(item for item in findings if item["rule"] == "D1")
    assert (missing["object"], missing["where"]["id"]) == ("ids", SPECIAL[1])
    made.edit("ids", 4 * place, np.array([SPECIAL[1]], "<i4").tobytes())
    made.edit(CONFIG, 0, b"[")
    code, (finding,) = made.verify("--recipe", made.folder / "recipe.json")
    assert (code, finding["code"], finding["object"]) == (1, "relations.resource_unreadable", CONFIG)


def test_per_head_rows_in_the_wrong_order(tmp_path, capsys):
    """Made as if the source were stored as the artifact wants it; the recipe takes halves of heads."""
    whole = tensor("q_proj.weight", (64, COLUMNS), "BF16")
    made = Made(tmp_path, document(gate=whole), capsys)
    code, findings = made.verify("--recipe", made.recipe(document()), *made.sources(), "--checks", "parity")
    assert (code, {(item["rule"], item["object"]) for item in findings}) == (1, {("F2", "fused")})
    finding = next(item for item in findings if item["code"] == "parity.code_mismatch")
    # Row i of head h lies at 16 h + i; wanted are the first halves of all heads, then the second ones.
    wanted = [16 * head + row for half in (0, 8) for head in range(4) for row in range(half, half + 8)]
    differ = [row for row in range(64) if wanted[row] != row]
    equal = [row for row in range(64) if wanted[row] == row]
    assert finding["where"]["rows_differ"] == differ[:16]
    assert finding["where"]["rows_equal"] == equal[:16]
    assert f"{len(differ)} of 64 rows differ, as from a wrong row order" in finding["message"]


@pytest.mark.parametrize(("word", "kind"), [(0x7F00, "beyond binary16"), (0x7FC0, "not finite")])
def test_a_source_word_beyond_the_profile(made, word, kind):
    """The artifact was made from another source: of this one the encoder makes nothing."""
    file = made.given["base"] / "model.safetensors"
    content = bytearray(file.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    at = start + 2 * (7 * COLUMNS + 70)  # row 7, group 1 of lm_head
    content[at : at + 2] = word.to_bytes(2, "little")
    file.write_bytes(content)
    code, text = made.run(
        "convert",
        *made.sources(),
        "--recipe",
        made.folder / "recipe.json",
        "--out",
        made.folder / "other.ninfer",
    )
    assert code == 1, kind
    assert not (made.folder / "other.ninfer").exists()
    assert "REFUSED" in text
    code, findings = made.verify(
        "--recipe", made.folder / "recipe.json", *made.sources(), "--checks", "parity"
    )
    assert code == 1
    refused = {item["object"]: item for item in findings}
    assert refused["head"]["code"] == "parity.source_refused"
    assert (refused["head"]["where"]["row"], refused["head"]["where"]["group"]) == (7, 1)
    assert set(refused) == {"head", *(["draft"] if 7 in made.ids() else [])}
