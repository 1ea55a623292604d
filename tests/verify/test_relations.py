"""Relations between objects of one artifact: who is named, where, and what is left to others."""

import json

import numpy as np
import pytest

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.formats import BF16, GROUPED, I32, Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.io import MemorySource
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import canonical_layout
from ninfer_core.recipes import Restriction
from ninfer_core.recipes.claims import HeadPair, IdList, Relations
from ninfer_core.recipes.restrictions import Scope
from ninfer_core.sources.json_text import JsonLimits
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.relations import relation_tasks

CONFIG = "frontend/tokenizer_config.json"


class Build:
    """An artifact in memory, object by object."""

    def __init__(self):
        self.objects, self.content = [], bytearray(b"\xee" * 7)

    def _place(self, data: bytes) -> tuple[int, int]:
        offset = len(self.content)
        self.content += data
        return offset, len(data)

    def resource(self, name: str, text: bytes) -> None:
        self.objects.append(ResourceObject(len(self.objects), name, "file-bytes-v1", *self._place(text)))

    def tensor(self, name, fmt, shape, *planes):
        layout = canonical_layout(fmt)
        payload = np.zeros(layout.encoded_size(fmt, shape), np.uint8)
        for plane, words in zip(layout.planes(fmt, shape), planes, strict=True):
            raw = np.ascontiguousarray(words).astype(plane.word).view(np.uint8).reshape(-1)
            payload[plane.span.offset : plane.span.offset + plane.span.length] = raw
        place = self._place(payload.tobytes())
        self.objects.append(TensorObject(len(self.objects), name, shape, fmt, layout, *place))

    def ids(self, ids, name="ids"):
        self.tensor(name, I32, (len(ids),), np.array(ids, np.int64) & 0xFFFFFFFF)

    def grouped(self, name, fmt, planes, columns):
        parts = [words for words in (planes.base, planes.high, planes.scales) if words.size]
        rows = planes.scales.size // (-(-columns // 128) * (128 // fmt.group))
        self.tensor(name, fmt, (rows, columns), *parts)

    @property
    def artifact(self) -> Artifact:
        source = MemorySource("a.ninfer", bytes(self.content))
        return Artifact(2, "m", "w", None, tuple(self.objects), True, (source,), True, (), source, 0)


def judge(build, facts, claims=None, excluded=()):
    """(rule, ordinals, findings or reason) of every relation."""
    judged = []
    for relation in relation_tasks(build.artifact, facts, claims or {}, excluded, Pool()):
        judged.append(
            (relation.rule, relation.ordinals, relation.task.run() if relation.task else relation.reason)
        )
    return judged


def listed(top=None, source=CONFIG):
    return Relations((IdList("ids", source, 1000, top, "$.rules[0]"),), ())


def config(*special, plain=()):
    table = {str(token): {"content": "x", "special": token in special} for token in (*special, *plain)}
    return json.dumps({"added_tokens_decoder": table}).encode()


def test_d1_names_every_special_id_that_is_missing():
    build = Build()
    build.resource(CONFIG, config(5, 900, 7, 1 << 33, plain=(8,)))
    build.ids([1, 2, 3, 7])
    ((rule, ordinals, findings),) = judge(build, listed())
    assert (rule, ordinals) == ("D1", (1, 0))
    assert [(item.code, item.object, item.where["id"], item.severity) for item in findings] == [
        ("relations.special_id_missing", "ids", token, "error") for token in (5, 900, 1 << 33)
    ]
    assert findings.failed == {1}
    build = Build()
    build.resource(CONFIG, config(5, 7))
    build.ids([7, 2, 5])
    ((_, _, findings),) = judge(build, listed())
    assert not list(findings)


UNREADABLE = [b"", b"\xff", b"[]", b"{}", b"[" * 100_000]
UNREADABLE += [
    b'{"added_tokens_decoder": ' + table + b"}"
    for table in (
        b"[]",
        b'{"x": {}}',
        b'{"01": {}}',
        b'{"1": 1}',
        b'{"1": {"special": 1}}',
        b'{"1": {"special": false}, "1": {"special": true}}',
        b'{"1": {"special": false, "special": true}}',
    )
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_d1_of_a_resource_that_does_not_say(text):
    build = Build()
    build.ids([1])
    build.resource(CONFIG, text)
    ((_, _, findings),) = judge(build, listed())
    (finding,) = findings
    assert (finding.code, finding.object, finding.severity) == (
        "relations.resource_unreadable",
        CONFIG,
        "error",
    )
    assert finding.definition.rule == "D1"
    assert findings.failed == {1}


def test_d1_does_not_read_a_resource_of_any_size(monkeypatch):
    monkeypatch.setattr("ninfer_core.verify.relations.CONFIG_LIMITS", JsonLimits(10, 64))
    build = Build()
    build.ids([1])
    build.resource(CONFIG, config(1))
    ((_, _, findings),) = judge(build, listed())
    assert [item.code for item in findings] == ["relations.resource_unreadable"]


def restriction(basis):
    return (Restriction(Scope(None, None, "ids"), "contains_special_ids", basis, "$", source=CONFIG),)


@pytest.mark.parametrize(
    ("facts", "basis", "severity"),
    [
        (Relations((), ()), "recommended", "advisory"),
        (Relations((), ()), "derived", "error"),
        (listed(), "recommended", "error"),  # the recipe's own ranking forces them
    ],
)
def test_d1_of_a_restriction_is_as_severe_as_its_basis(facts, basis, severity):
    build = Build()
    build.resource(CONFIG, config(5))
    build.ids([1])
    ((_, _, findings),) = judge(build, facts, {"ids": restriction(basis)})
    assert [item.severity for item in findings] == [severity]


def test_d3_prefix():
    build = Build()
    build.resource(CONFIG, config())
    build.ids([9, 8, 7, 6])
    assert [rule for rule, _, _ in judge(build, listed())] == ["D1"]
    for top, where in (((9, 8, 7), None), ((9, 8, 6), 2), ((8, 9), 0), ((9, 8, 7, 6, 5, 4), 4)):
        _, (rule, ordinals, findings) = judge(build, listed(top))
        assert (rule, ordinals) == ("D3", (1,))
        assert [item.where["index"] for item in findings] == ([] if where is None else [where])
    (finding,) = findings
    assert (finding.code, finding.count, finding.found) == (
        "relations.top_ids_differ",
        2,
        "the end of the list",
    )


def bf16(rng, rows, columns):
    values = (rng.normal(size=(rows, columns)) * 2.0 ** rng.integers(-30, 6, (rows, 1))).astype(np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def encode(fmt, source):
    planes = GroupedPlanes.empty(fmt, *source.shape)
    cpu.encode(fmt, source, "BF16", planes)
    return planes


PAIR = Relations((), (HeadPair("head", "draft", "ids"),))
FORMATS = [
    (Q4G64_F16S, Q6G64_F16S),
    (Q4G64_F16S, W8G32_F16S),
    (W8G32_F16S, Q5G64_F16S),
    (Q6G64_F16S, Q6G64_F16S),
]


def heads(draft, head, ids, columns=200, rows=64, carried=None, seed=2, change=lambda draft, head: None):
    source = bf16(np.random.default_rng(seed), rows, columns)
    draft_planes, head_planes = encode(draft, source[ids]), encode(head, source)
    change(draft_planes, head_planes)
    build = Build()
    build.grouped("head", head, head_planes, columns)
    build.grouped("draft", draft, draft_planes, columns)
    build.ids(ids if carried is None else carried)
    return build


@pytest.mark.parametrize(("draft", "head"), FORMATS, ids=lambda f: f.name)
def test_d2_rows_of_one_source_are_at_peace(draft, head):
    ids = np.random.default_rng(7).permutation(64)[:40]
    ((rule, ordinals, findings),) = judge(heads(draft, head, ids), PAIR)
    assert (rule, ordinals) == ("D2", (1, 0, 2))
    assert not list(findings)


@pytest.mark.parametrize(("draft", "head"), FORMATS, ids=lambda f: f.name)
def test_d2_names_the_rows_that_were_exchanged(draft, head):
    ids = np.arange(50)
    carried = ids.copy()
    carried[[20, 33]] = carried[[33, 20]]
    ((_, _, findings),) = judge(heads(draft, head, ids, carried=carried), PAIR)
    (finding,) = findings
    assert (finding.code, finding.object, finding.count) == ("relations.draft_row_differs", "draft", 2)
    assert (finding.where["row"], finding.where["id"], finding.where["head"]) == (20, 33, "head")
    assert finding.where["rows"] == [20, 33]
    assert abs(finding.where["draft"] - finding.where["head_value"]) > finding.where["allowed"]
    assert findings.failed == {1}


def test_d2_one_changed_code_of_the_head_has_its_column():
    def change(draft, head):
        code = head.base.view(np.int8)[31 * 256 + 177]
        head.base.view(np.int8)[31 * 256 + 177] = code - 60 if code > 0 else code + 60

    ids = np.array([4, 31, 5])
    ((_, _, findings),) = judge(heads(Q4G64_F16S, W8G32_F16S, ids, change=change), PAIR)
    (finding,) = findings
    assert (finding.where["row"], finding.where["id"], finding.where["column"]) == (1, 31, 177)
    assert "(1 elements)" in finding.message


def test_d2_leaves_condemned_groups_and_foreign_ids_to_others():
    def change(draft, head):
        draft.scales[5 * 4] = 0x7C00
        head.scales[9 * 4 + 1] = 0  # over codes that are not
        head.scales[10 * 4 + 2] = 0x8001

    ids = np.arange(30)
    assert not list(judge(heads(Q4G64_F16S, Q6G64_F16S, ids, change=change), PAIR)[0][2])
    carried = ids.copy()
    carried[[3, 4, 5]] = -1, 64, 2**31 - 1
    assert not list(judge(heads(Q4G64_F16S, Q6G64_F16S, ids, carried=carried), PAIR)[0][2])


def test_d2_rows_wider_than_a_block_are_counted_once():
    columns = 4_200_000
    source = bf16(np.random.default_rng(1), 3, columns) & 0x8FFF | 0x3000  # of about one size
    build = Build()
    build.grouped("head", W8G32_F16S, encode(W8G32_F16S, source), columns)
    build.grouped("draft", Q4G64_F16S, encode(Q4G64_F16S, source[[2, 0]]), columns)
    build.ids([2, 1])
    assert len(list(build.objects[1].layout.blocks(Q4G64_F16S, (2, columns)))) == 4
    ((_, _, findings),) = judge(build, PAIR)
    (finding,) = findings
    assert (finding.count, finding.where["row"], finding.where["rows"]) == (1, 1, [1])


def test_what_is_missing_excluded_or_something_else_gives_a_reason():
    build = Build()
    build.resource(CONFIG, config(5))
    build.ids([1])
    for other, excluded in ((build, [1]), (build, [0]), (Build(), [])):
        ((rule, ordinals, reason),) = judge(other, listed(), excluded=excluded)
        assert (rule, CONFIG in reason, "ids" in reason) == ("D1", True, True)
        assert ordinals == ((1, 0) if other is build else ())
    build = Build()
    build.resource(CONFIG, config(5))
    build.tensor("ids", BF16, (1,), np.array([1]))
    assert "ids" in judge(build, listed((1,)))[0][2]
    assert "ids" in judge(build, listed((1,)))[1][2]
    short = heads(Q4G64_F16S, Q6G64_F16S, np.arange(9))
    short.objects[2] = TensorObject(2, "ids", (8,), I32, canonical_layout(I32), short.objects[2].offset, 32)
    assert "draft" in judge(short, PAIR)[0][2]


def test_bytes_that_are_not_there_are_an_error_not_an_answer():
    build = heads(Q4G64_F16S, Q6G64_F16S, np.arange(9))
    whole = build.artifact
    cut = MemorySource("a.ninfer", bytes(build.content[:200]))
    broken = Artifact(2, "m", "w", None, whole.objects, True, (cut,), True, (), cut, 0)
    (relation,) = relation_tasks(broken, PAIR, {}, (), Pool())
    assert relation.task is not None
    assert isinstance(relation.task.run(), Exception)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
def test_d2_is_true_at_the_very_edge(fmt):
    """A head one rounding off in the worst direction still fits; one code more does not."""
    columns = 128
    source = np.zeros((1, columns), np.float32)
    source[0, 0] = fmt.qmax  # scale 1
    source[0, 1:] = 0.5  # rounds to code 0, half a scale away
    words = (source.view(np.uint32) >> 16).astype(np.uint16)
    draft, head = encode(fmt, words), encode(fmt, words)
    place = 0 if fmt.code_bits < 8 else 1
    head.base[place] |= (
        0x10 if fmt.code_bits < 8 else 1
    )  # lane 1 becomes code 1: half a scale on the other side
    build = Build()
    build.grouped("head", fmt, head, columns)
    build.grouped("draft", fmt, draft, columns)
    build.ids([0])
    assert not list(judge(build, PAIR)[0][2])
    head.base[place] = (head.base[place] & 0x0F) | 0x20 if fmt.code_bits < 8 else 2
    build = Build()
    build.grouped("head", fmt, head, columns)
    build.grouped("draft", fmt, draft, columns)
    build.ids([0])
    (finding,) = judge(build, PAIR)[0][2]
    assert (finding.where["column"], finding.where["draft"], finding.where["head_value"]) == (1, 0.0, 2.0)
