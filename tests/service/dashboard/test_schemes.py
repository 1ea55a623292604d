"""Pages of the catalogue: every scheme, layouts as tables of cells, and checks with what was found."""

import json
from typing import Any

import httpx
import pytest

from ninfer_core.schemes.catalogue import SCHEMES
from service.dashboard.layouts import Grid, drawn
from tests.service.dashboard.app import Served
from tests.service.dashboard.conftest import World
from tests.service.dashboard.test_pages import read


def box(
    name: str, bits: int, offset: int = 0, counts: tuple[int, ...] = (), *inside: Any, constant: bool = False
) -> Any:
    return {
        "name": name,
        "what": "structure" if inside else "UINT",
        "bits": bits,
        "offset_bits": offset,
        "counts": list(counts),
        "constant": constant,
        "inside": list(inside),
    }


def cells(grid: Grid | None) -> list[list[tuple[int, str]]]:
    assert grid is not None
    return [[(cell.span, cell.label) for cell in row.cells] for row in grid.rows]


def test_the_list_has_every_scheme_and_filters(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, "/schemes")
    assert [link for link in page.links if link == "/schemes/gptq"]
    for scheme in SCHEMES:
        assert f"/schemes/{scheme.name}" in page.links
    some = read(visitor, "/schemes?profile=log&match=LOG")
    assert "/schemes/log" in some.links
    assert "/schemes/gptq" not in some.links
    assert "No scheme matches" in read(visitor, "/schemes?match=%3Cscript%3E").text


def test_a_scheme_of_several_parts(world: World, visitor: httpx.Client) -> None:
    page = read(visitor, "/schemes/gptq?shape=256x64")
    for word in ("qweight", "version 1 stores zero points minus one", "4.5", "k+7"):
        assert word in page.text
    assert f"/scheme-checks/{world.scene.schemed.failed.id}" in page.links
    for address, words in (
        ("/schemes/gptg", "Did you mean gptq"),
        ("/schemes/Q4G64_F16S", "no scheme and no form Q4G64_F16S"),
    ):
        assert words in read(visitor, address, 404).text
    assert "Shown for its example, for it does not take that shape" in page.text
    assert "holds a tensor of the shape 3x5" in read(visitor, "/schemes/ggml_q4_k?shape=3x5", 422).text
    assert "is no shape" in read(visitor, "/schemes/gptq?shape=big", 422).text


def test_checks_say_what_they_rest_on(world: World, visitor: httpx.Client) -> None:
    made = world.scene.schemed
    failed = read(visitor, f"/scheme-checks/{made.failed.id}")
    assert "2 kinds of error in what was given." in failed.text
    assert "scheme.scale_not_finite" in failed.text
    assert "the decoded values" in failed.text
    passed = read(visitor, f"/scheme-checks/{made.passed.id}")
    assert "Every stored word is legal, and every value is the one of the reference." in passed.text
    assert "8,192" in passed.text
    assert "A worker looks at it now" in read(visitor, f"/scheme-checks/{made.running.id}").text
    struct = read(visitor, f"/scheme-checks/{made.struct.id}")
    assert "decision tree" in struct.text
    assert "class_ids INT32 constant [3]" in struct.text
    document = json.loads(visitor.get(f"/scheme-checks/{made.failed.id}/document.json").text)
    assert document["schema"] == "ninfer-gate/scheme-check/1"
    assert visitor.get(f"/scheme-checks/{made.running.id}/document.json").status_code == 409
    assert visitor.get(f"/scheme-checks/{'0' * 32}").status_code == 404
    for check in (made.failed, made.running):
        moved = visitor.get(f"/jobs/{check.job_id}")
        assert (moved.status_code, moved.headers["location"]) == (303, f"/scheme-checks/{check.id}")
    assert "parts of gptq" in read(visitor, "/jobs?type=scheme").text


def test_findings_beyond_a_page_are_counted(
    world: World, visitor: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.dashboard.schemes.FINDINGS", 1)
    page = read(visitor, f"/scheme-checks/{world.scene.schemed.failed.id}")
    assert "more; the document has them all." in page.text


def test_an_empty_list_teaches(empty: Served) -> None:
    with empty.visitor() as client:
        assert f"{empty.address}/v1/jobs" in read(client, "/scheme-checks").text
        assert "No check matches" in read(client, "/scheme-checks?form=gptq").text


def test_bytes_of_a_block_are_cells() -> None:
    block = box("b", 176, 0, (9,), box("d", 16), box("qs", 8, 16, (20,)), box("t", 0, 0, constant=True))
    seen = drawn(block, None)
    assert cells(seen.element) == [[(2, "d"), (14, "qs")], [(6, "")]]
    assert [field.tint for field in seen.fields] == [None, 0, 1, None]
    assert seen.fields[3].what == "constant UINT"
    assert seen.shares == ()


def test_rows_that_show_nothing_new_are_counted() -> None:
    grid = drawn(box("b", 8 * 100, 0, (1,), box("q", 8, 0, (100,))), None).element
    assert cells(grid) == [[(16, "q")], [(4, "")]]
    assert grid is not None
    assert [row.more for row in grid.rows] == [5, 0]


def test_bits_that_fill_no_bytes_are_drawn_one_by_one() -> None:
    grid = drawn(box("r", 24, 0, (3,), box("lo", 4), box("h", 16, 4), box("hi", 4, 20)), None).element
    assert cells(grid) == [[(4, "lo"), (16, "h"), (4, "hi")]]
    assert grid is not None
    assert "bit by bit" in grid.caption


def test_a_word_is_drawn_from_its_highest_bit() -> None:
    word = box("word", 64, 0, (), box("a", 3), box("b", 40, 3), box("c", 21, 43))
    seen = drawn(box("v", 64, 0, (2,)), word)
    assert cells(seen.word) == [[(21, "c"), (11, "b")], [(29, ""), (3, "a")]]
    assert seen.element is None


def test_structures_in_structures_keep_their_colours() -> None:
    inner = box("g", 24, 8, (2,), box("i", 8), box("s", 16, 8))
    seen = drawn(box("v", 64, 0, (), box("d", 8), inner, box("end", 8, 56)), None)
    assert cells(seen.element) == [
        [(1, "d"), (1, "g[0].i"), (2, "g[0].s"), (1, "g[1].i"), (2, "g[1].s"), (1, "end")]
    ]
    assert seen.element is not None
    assert [cell.tint for cell in seen.element.rows[0].cells] == [0, 1, 2, 1, 2, 3]
    assert [part.name for part in seen.shares] == ["d", "g", "end"]
    assert sum(part.width for part in seen.shares) == pytest.approx(100, abs=0.01)


def test_what_repeats_is_found_inside_of_others() -> None:
    base = box("base", 8 * 800, 0, (), box("blocks", 16, 0, (400,), box("q", 8), box("s", 8, 8)))
    seen = drawn(box("v", 8 * 900, 0, (), base, box("rest", 8, 6400, (100,))), None)
    assert cells(seen.element) == [[(1, "q"), (1, "s")]]
    assert [(field.name, field.tint) for field in seen.fields] == [
        ("v", None),
        ("base", 0),
        ("blocks", None),
        ("q", 0),
        ("s", 1),
        ("rest", 1),
    ]


def test_what_is_too_large_is_not_drawn() -> None:
    large = box("v", 8 * 600, 0, (), box("a", 8, 0, (300,)), box("b", 8, 2400, (300,)))
    assert drawn(large, None).element is None
    assert len(drawn(large, None).shares) == 2
    many = box("v", 8 * 100, 0, (2,), box("g", 8, 0, (100,), box("x", 8)))
    assert cells(drawn(many, None).element)[0] == [(16, "g")]
