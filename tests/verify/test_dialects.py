"""Codes and scales: the cases that every build must get right, what widespread writers store, and no false alarm."""

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.findings import Findings
from ninfer_core.io import DiskFiles
from ninfer_core.opening import open_path
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.safetensors import SourceTensor
from ninfer_core.verify import asked, default_checks, verify
from ninfer_core.verify.declared import MEMBERS, check_declared, read_declarations
from ninfer_core.verify.dialects import misfits
from service.cli import app
from tests.vectors.load import HERE

CASES = HERE / "cases"
ENTRIES = json.loads((CASES / "manifest.relations.json").read_text())["cases"]
CODES = {"declared_quantization_contradicts_storage": "declared_contradicts_storage"}


def located(where: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a finding lets a person find all that the manifest asks for."""
    ours = {**where, "declared": {"bits": where.get("bits"), "group_size": where.get("group_size")}}
    return all(ours.get(key) == value for key, value in wanted.items())


@pytest.mark.parametrize("case", ENTRIES, ids=lambda case: case["file"])
def test_case_on_the_command_line(case: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    code = app.run(["verify", str(CASES / case["file"]), "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    errors = [item for item in report["findings"] if item["severity"] == "error"]
    if case["expected"] == "accept":
        assert (code, report["verdict"], errors) == (0, "passed", [])
        return
    assert (code, report["verdict"]) == (1, "failed")
    (finding,) = errors
    assert finding["code"] == "relations." + CODES.get(case["finding"], case["finding"])
    assert finding["object"] == case["where"]["tensor"]
    assert located(finding["where"], case["where"])
    outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
    assert (outcomes["structure"], outcomes["relations"]) == ("passed", "failed")


def test_every_stored_case_is_listed() -> None:
    stored = {
        f"{folder}/{path.name}" for folder in ("pairs", "declared") for path in (CASES / folder).iterdir()
    }
    assert stored == {case["file"] for case in ENTRIES}


def tensors(entries: dict[str, tuple[str, tuple[int, ...]]]) -> dict[str, SourceTensor]:
    return {
        name: SourceTensor(
            name, dtype, shape, 0, -(-prod(shape) * DTYPES[dtype].bits // 8), "model.safetensors"
        )
        for name, (dtype, shape) in entries.items()
    }


def wrong(
    entries: dict[str, tuple[str, tuple[int, ...]]], block: tuple[int, int] | None = None
) -> list[tuple[str, str]]:
    return [(one.code.removeprefix("relations."), one.name) for one in misfits(tensors(entries), block)]


F8, F32, U32 = "F8_E4M3", "F32", "U32"
GOOD = {
    "fp8 by row": {
        "a.weight": (F8, (300, 64)),
        "a.weight_scale": ("BF16", (300, 1)),
        "a.input_scale": (F32, ()),
    },
    "fp8 by row, a vector": {"a.weight": (F8, (300, 64)), "a.weight_scale": (F32, (300,))},
    "fp8 by tensor": {
        "a.weight": ("F8_E5M2", (300, 64)),
        "a.weight_scale": (F32, (1,)),
        "a.input_scale": (F32, (1,)),
    },
    "fp8 by tensor, a scalar": {"a.weight": (F8, (300, 64)), "a.weight_scale": (F32, ())},
    "fp8 in blocks": {"a.weight": (F8, (300, 500)), "a.weight_scale_inv": (F32, (3, 4))},
    "fp8 in blocks, short name": {"a.wq.weight": (F8, (128, 500)), "a.wq.scale": ("F8_E8M0", (1, 4))},
    "mxfp8": {"a.weight": (F8, (300, 64)), "a.weight_scale": ("U8", (300, 2))},
    "fp8 of an image model": {
        "a.weight": (F8, (3, 4)),
        "a.scale_weight": (F32, ()),
        "scaled_fp8": (F8, (2,)),
    },
    "fp8 experts": {
        "experts.gate_up_proj": (F8, (4, 64, 96)),
        "experts.gate_up_proj_scale": (F32, (4, 1, 96)),
    },
    "fp8 experts by name": {
        "experts.w13_weight": (F8, (4, 64, 96)),
        "experts.w13_weight_scale_inv": (F32, (4, 1, 1)),
    },
    "nvfp4 packed": {
        "a.weight_packed": ("U8", (64, 32)),
        "a.weight_scale": (F8, (64, 4)),
        "a.weight_global_scale": (F32, (1,)),
        "a.input_global_scale": (F32, (1,)),
    },
    "nvfp4 in weight": {
        "a.weight": ("U8", (64, 32)),
        "a.weight_scale": (F8, (64, 4)),
        "a.weight_scale_2": (F32, ()),
        "a.input_scale": (F32, ()),
    },
    "mxfp4 packed": {"a.weight_packed": ("U8", (64, 32)), "a.weight_scale": ("U8", (64, 2))},
    "packed integers": {
        "a.weight_packed": ("I32", (64, 16)),
        "a.weight_scale": ("BF16", (64, 1)),
        "a.weight_shape": ("I64", (2,)),
    },
    "int8 by row": {"a.weight": ("I8", (64, 16)), "a.weight_scale": ("BF16", (64, 1))},
    "affine words": {"a.weight": (U32, (4, 8)), "a.scales": ("F16", (4, 1)), "a.biases": ("F16", (4, 1))},
    "affine words of experts": {
        "a.weight": (U32, (8, 4, 8)),
        "a.scales": ("BF16", (8, 4, 1)),
        "a.biases": ("BF16", (8, 4, 1)),
    },
    "microscaled words": {"a.weight": (U32, (4, 8)), "a.scales": ("U8", (4, 2))},
    "gptq": {
        "a.qweight": ("I32", (8, 64)),
        "a.qzeros": ("I32", (1, 8)),
        "a.scales": ("F16", (1, 64)),
        "a.g_idx": ("I32", (64,)),
    },
    "awq": {"a.qweight": ("I32", (64, 8)), "a.qzeros": ("I32", (1, 8)), "a.scales": ("F16", (1, 64))},
    "bitsandbytes": {
        "a.weight": ("U8", (2048, 1)),
        "a.weight.absmax": ("U8", (64,)),
        "a.weight.quant_map": (F32, (16,)),
        "a.weight.quant_state.bitsandbytes__nf4": ("U8", (80,)),
    },
    "int8 of bitsandbytes": {"a.weight": ("I8", (64, 16)), "a.SCB": (F32, (64,))},
    "gpt-oss": {
        "experts.gate_up_proj_blocks": ("U8", (2, 64, 4, 16)),
        "experts.gate_up_proj_scales": ("U8", (2, 64, 4)),
    },
    "1.58 bits": {"a.weight": ("U8", (16, 64)), "a.weight_scale": ("BF16", (1,))},
}
ORDINARY = [
    "bert.embeddings.LayerNorm.weight",
    "bert.encoder.layer.0.attention.self.query.weight",
    "logit_scale",
    "scale",
    "scales",
    "biases",
    "transformer.h.0.attn.c_attn.weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.0.self_attn.q_proj.bias",
    "model.layers.0.self_attn.k_scale",
    "model.layers.0.self_attn.v_scale",
    "model.layers.0.post_feedforward_layernorm.weight",
    "double_blocks.0.img_attn.norm.query_norm.scale",
    "single_blocks.0.norm.key_norm.scale",
    "time_embed.scale",
    "pre.norm.scale",
    "blocks.0.ls1.gamma",
    "vision.blocks.0.layer_scale",
    "encoder.layers.0.scales",
    "decoder.0.scale_shift_table",
    "quantizer.scales",
    "quantizer.codebook",
    "gate.e_score_correction_bias",
    "mixer.A_log",
    "mixer.dt_bias",
    "norm.scale_inv",
    "layer_scale_parameter",
    "attention_scale",
    "residual_scale",
    "input_scale",
    "adaln.scale.weight",
    "adaln.scale.bias",
    "head.scales",
]


@pytest.mark.parametrize("entries", GOOD.values(), ids=GOOD)
def test_what_widespread_writers_store(entries):
    assert wrong(entries) == []


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_plain_tensors_of_any_name_are_plain(dtype):
    assert wrong(dict.fromkeys(ORDINARY, (dtype, (8, 4)))) == []


BAD = {
    "no scale": ({"a.weight": (F8, (4, 8))}, [("scale_missing", "a.weight")]),
    "no scale of experts": (
        {"experts.w13_weight": (F8, (4, 4, 8))},
        [("scale_missing", "experts.w13_weight")],
    ),
    "no scale of packed": ({"a.weight_packed": ("I32", (4, 8))}, [("scale_missing", "a.weight_packed")]),
    "no scale of words": ({"a.weight": (U32, (4, 8))}, [("scale_missing", "a.weight")]),
    "no biases": ({"a.weight": (U32, (4, 8)), "a.scales": ("F16", (4, 1))}, [("scale_missing", "a.weight")]),
    "no scale of scales": (
        {"a.weight_packed": ("U8", (64, 32)), "a.weight_scale": (F8, (64, 4))},
        [("scale_missing", "a.weight_packed")],
    ),
    "no scales under a scale of scales": (
        {"a.weight": ("U8", (64, 32)), "a.weight_scale_2": (F32, ())},
        [("scale_missing", "a.weight_scale_2")],
    ),
    "no weight": (
        {
            "a.weight_scale": (F32, (4, 1)),
            "b.weight_scale_inv": (F32, (4, 1)),
            "c.input_scale": (F32, ()),
            "d.weight_global_scale": (F32, (1,)),
            "a.weights": (F32, (4, 1)),
        },
        [
            ("scale_orphan", name)
            for name in ("a.weight_scale", "b.weight_scale_inv", "c.input_scale", "d.weight_global_scale")
        ],
    ),
    "no words": ({"a.scales": ("F16", (4, 1)), "a.biases": ("F16", (4, 1))}, [("scale_orphan", "a.scales")]),
    "along the other axis": (
        {"a.weight": (F8, (300, 64)), "a.weight_scale": (F32, (1, 64))},
        [("scale_shape", "a.weight_scale")],
    ),
    "one row short": (
        {"a.weight": (F8, (300, 64)), "a.weight_scale": (F32, (299, 1))},
        [("scale_shape", "a.weight_scale")],
    ),
    "blocks of another matrix": (
        {"a.weight": (F8, (300, 500)), "a.weight_scale_inv": (F32, (4, 3))},
        [("scale_shape", "a.weight_scale_inv")],
    ),
    "groups of 32 instead of 16": (
        {
            "a.weight_packed": ("U8", (64, 32)),
            "a.weight_scale": (F8, (64, 2)),
            "a.weight_global_scale": (F32, (2,)),
        },
        [("scale_shape", "a.weight_scale"), ("scale_shape", "a.weight_global_scale")],
    ),
    "fp4 in weight, rows": (
        {"a.weight": ("U8", (64, 32)), "a.weight_scale": (F8, (32, 4)), "a.weight_scale_2": (F32, ())},
        [("scale_shape", "a.weight_scale")],
    ),
    "rows of packed integers": (
        {"a.weight_packed": ("I32", (64, 16)), "a.weight_scale": ("BF16", (32, 2))},
        [("scale_shape", "a.weight_scale")],
    ),
    "rows of words": (
        {"a.weight": (U32, (4, 8)), "a.scales": ("F16", (8, 1)), "a.biases": ("F16", (8, 1))},
        [("scale_shape", "a.scales")],
    ),
    "biases of words": (
        {"a.weight": (U32, (4, 8)), "a.scales": ("F16", (4, 1)), "a.biases": ("F16", (4, 2))},
        [("scale_shape", "a.biases")],
    ),
}


@pytest.mark.parametrize(("entries", "expected"), BAD.values(), ids=BAD)
def test_what_does_not_belong_together(entries, expected):
    assert wrong(entries) == expected


def test_a_declared_block_size_is_the_only_one():
    entries = {"a.weight": (F8, (300, 500)), "a.weight_scale_inv": (F32, (3, 4))}
    assert wrong(entries, (128, 128)) == []
    assert wrong(entries, (64, 64)) == [("scale_shape", "a.weight_scale_inv")]
    assert wrong({**entries, "a.weight_scale_inv": (F32, (7, 2))}, (48, 256)) == []


def declared(folder: Path, config: object, words: int, scales: int, dtype: str = "F16") -> Findings:
    """What is said of a module `l` of so many words and scales a row, under a configuration (None: no file)."""
    if config is not None:
        (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    entries = tensors({"l.weight": (U32, (4, words)), "l.scales": (dtype, (4, scales))})
    findings = Findings()
    with DiskFiles(folder) as files:
        check_declared(
            entries, {name: at for at, name in enumerate(entries)}, read_declarations(files), findings
        )
    return findings


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize(
    ("bits", "group", "words", "scales", "fits"),
    [
        (4, 64, 16, 2, True),
        (3, 64, 6, 1, True),  # 32 // 3 = 10 codes a word would give 60
        (3, 32, 7, 2, False),  # 7 words hold 74 2/3 codes
        (6, 64, 12, 1, True),
        (6, 64, 13, 1, False),
        (8, 32, 8, 1, True),
        (8, 64, 8, 1, False),
        (1, 128, 4, 1, True),  # declared is declared, however rare
    ],
)
def test_declared_bits_are_exact(tmp_path, member, bits, group, words, scales, fits):
    found = declared(tmp_path, {member: {"bits": bits, "group_size": group}}, words, scales)
    assert [item.code for item in found] == ([] if fits else ["relations.declared_contradicts_storage"])
    assert found.failed == (set() if fits else {0})


def test_both_readings_are_named(tmp_path):
    (finding,) = declared(tmp_path, {"quantization": {"bits": 3, "group_size": 32}}, 7, 2)
    assert (finding.where["columns_by_words"], finding.where["columns_by_scales"]) == ("224/3", 64)
    assert finding.where["member"] == "quantization"


def test_a_module_of_its_own_declaration(tmp_path):
    common = {"bits": 4, "group_size": 64}
    assert not list(declared(tmp_path, {"quantization": {**common, "l": {"bits": 8}}}, 16, 1))
    assert not list(
        declared(tmp_path, {"quantization": {**common, "l": {"bits": 8, "group_size": 32}}}, 8, 1)
    )
    (finding,) = declared(tmp_path, {"quantization": {**common, "l": {"bits": 8}}}, 8, 1)
    assert finding.where["member"] == "quantization.l"
    assert not list(declared(tmp_path, {"quantization": {**common, "l": False}}, 8, 1))


@pytest.mark.parametrize(
    "config",
    [None, {}, [], "{", '{"quantization": 4}', {"quantization": {"bits": 4}}, {"quantization": {"bits": True, "group_size": 64}},
     {"quantization": {"bits": 0, "group_size": 64}}, {"quantization_config": {"quant_method": "fp8"}}],
)  # fmt: skip
def test_what_declares_nothing_leaves_it_open(tmp_path, config):
    (finding,) = declared(tmp_path, config, 8, 2)
    assert finding.code == "relations.quantization_undeclared"
    assert finding.where["fits"] == [{"bits": 4, "group_size": 32}, {"bits": 2, "group_size": 64}]


def test_one_reading_alone_needs_no_declaration(tmp_path):
    assert not list(declared(tmp_path, None, 5, 1))  # 160 bits for one scale: 5 bits in groups of 32
    assert not list(declared(tmp_path, None, 8, 2, "U8"))  # microscaled: 4 bits in groups of 32
    (finding,) = declared(tmp_path, None, 7, 1)
    assert finding.where["fits"] == []


def test_a_hostile_configuration_is_bounded(tmp_path):
    assert len(declared(tmp_path, "[" * 100_000, 8, 2)) == 1
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 40)
    assert len(declared(tmp_path, None, 8, 2)) == 1


def checkpoint(path: Path, entries: dict[str, tuple[str, tuple[int, ...]]]) -> Path:
    head, end = {}, 0
    for name, tensor in tensors(entries).items():
        head[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.bytes],
        }
        end += tensor.bytes
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
    return path


def test_one_shard_alone_says_nothing_of_partners_elsewhere(tmp_path):
    codes = {"a.weight": (F8, (4, 8)), "b.weight": (F8, (4, 8)), "b.weight_scale": (F32, (8, 1))}
    first = checkpoint(tmp_path / "model-00001-of-00002.safetensors", codes)
    checkpoint(tmp_path / "model-00002-of-00002.safetensors", {"a.weight_scale": (F32, (4, 1))})
    names = default_checks("safetensors")
    with open_path(first) as opened:
        report = verify(opened, asked(names))
    assert [(item.code, item.object) for item in report.findings if item.check == "relations"] == [
        ("relations.scale_shape", "b.weight_scale")
    ]
    relations = next(check for check in report.checks if check.name == "relations")
    assert "verify the index" in (relations.reason or "")
    index = {"a.weight": 1, "b.weight": 1, "b.weight_scale": 1, "a.weight_scale": 2}
    named = {name: f"model-0000{at}-of-00002.safetensors" for name, at in index.items()}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": named}))
    with open_path(tmp_path / "model.safetensors.index.json") as opened:
        report = verify(opened, asked(names))
    assert {item.code for item in report.findings if item.check == "relations"} == {"relations.scale_shape"}
    alone = checkpoint(tmp_path / "other-00001-of-00001.safetensors", {"a.weight": (F8, (4, 8))})
    with open_path(alone) as opened:
        assert verify(opened, asked(names)).verdict == "failed"
    plain = checkpoint(tmp_path / "plain-00001-of-00002.safetensors", {"a.weight": ("BF16", (4, 8))})
    with open_path(plain) as opened:
        assert verify(opened, asked(names)).verdict == "passed"
