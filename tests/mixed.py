"""A checkpoint and a recipe with every operation and encoder that conversion has, for tests."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.build import recipe, tensor, write_checkpoint

CANONICAL = "MAXABS_F16_RECIP_RNE_V1"


def mixed_checkpoint(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A checkpoint and a recipe with every operation and encoder that conversion has."""
    rng = np.random.default_rng(11)
    weights = rng.normal(0, 0.05, (96, 200)).astype("<f4")
    half = rng.normal(0, 0.05, (64, 130)).astype("<f2")
    norm = (rng.normal(1, 0.1, 200).astype("<f4").view("<u4") >> 16).astype("<u2")
    write_checkpoint(
        folder,
        {
            "f32": ("F32", weights.view("<u4")),
            "f16": ("F16", half.view("<u2")),
            "f64": ("F64", rng.normal(0, 1, (4, 70)).view("<u8")),
            "bf16": ("BF16", norm),
            "bank": ("F32", rng.normal(0, 1, (2, 3, 128)).astype("<f4").view("<u4")),
            "ids": ("I64", np.arange(17).astype("<u8")),
            "i32": ("I32", np.arange(5)),
        },
    )
    (folder / "tokenizer.json").write_bytes(b'{"a":1}')
    f32 = tensor("f32", (96, 200), "F32")
    f16 = tensor("f16", (64, 130), "F16")
    rules = [
        {"object": "w/q4", "value": f32, "encode": CANONICAL, "format": "Q4G64_F16S"},
        {
            "object": "w/q5",
            "value": {"op": "rows", "begin": 3, "end": 40, "of": f32},
            "encode": CANONICAL,
            "format": "Q5G64_F16S",
        },
        {
            "object": "w/q6",
            "value": {"op": "concat_rows", "of": [f16, f16]},
            "encode": CANONICAL,
            "format": "Q6G64_F16S",
        },
        {
            "object": "w/w8",
            "value": {"op": "transpose", "axes": [1, 0], "of": f32},
            "encode": CANONICAL,
            "format": "W8G32_F16S",
        },
        {
            "object": "w/f64",
            "value": tensor("f64", (4, 70), "F64"),
            "encode": CANONICAL,
            "format": "W8G32_F16S",
        },
        {
            "object": "w/bank",
            "value": {"op": "reshape", "shape": [6, 128], "of": tensor("bank", (2, 3, 128), "F32")},
            "encode": CANONICAL,
            "format": "Q4G64_F16S",
        },
        {
            "object": "n/copy",
            "value": tensor("bf16", (200,), "BF16"),
            "encode": "copy_words",
            "format": "BF16",
        },
        {
            "object": "n/wide",
            "value": {"op": "widen", "to": "FP32", "of": tensor("bf16", (200,), "BF16")},
            "encode": "copy_words",
            "format": "FP32",
        },
        {
            "object": "n/cast",
            "value": {"op": "cast", "to": "BF16", "of": f32},
            "encode": "copy_words",
            "format": "BF16",
        },
        {"object": "n/f32", "value": f32, "encode": "copy_words", "format": "FP32"},
        {
            "object": "i/cast",
            "value": {"op": "cast", "to": "I32", "of": tensor("ids", (17,), "I64")},
            "encode": "copy_words",
            "format": "I32",
        },
        {"object": "i/copy", "value": tensor("i32", (5,), "I32"), "encode": "copy_words", "format": "I32"},
    ]
    resources = [{"object": "tokenizer", "from": "base", "file": "tokenizer.json", "encode": "copy_bytes"}]
    return folder, recipe(rules, resources)
