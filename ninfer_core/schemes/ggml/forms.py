"""The block types as forms of schemes: one payload of whole blocks, rows of them along the fastest dimension."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Values
from ninfer_core.schemes.ggml.block import Block
from ninfer_core.schemes.ggml.rules import check_blocks
from ninfer_core.schemes.ggml.tables import looked_up
from ninfer_core.schemes.ggml.types import BLOCKS
from ninfer_core.schemes.run import CannotEncode, refuse_shape
from ninfer_core.schemes.structs.model import Declared

_VALUES_AT_ONCE: Final = (
    1 << 20
)  # of the plain decoders and of the encoders, whose intermediate arrays are many
_WORTH_COMPILING: Final = (
    1 << 16
)  # values, below which the plain decoder is done before the compiler is loaded


def form_name(block: Block) -> str:
    """`ggml_q4_k` of Q4_K; STQ1_0 is no type of mainline ggml and goes by its own name."""
    return "stq1_0" if block.name == "STQ1_0" else f"ggml_{block.name.lower()}"


def _count(block: Block, shape: Shape) -> int:
    """Blocks of a tensor. Raises: SchemeRefused, where a row is not whole blocks."""
    if not shape or shape[-1] % block.values:
        expected = (
            f"a last dimension of whole blocks of {block.values}" if block.values > 1 else "a dimension"
        )
        raise refuse_shape(form_name(block), shape, expected)
    return math.prod(shape) // block.values


def _stored(block: Block, shape: Shape, params: Params) -> Mapping[str, Shape]:
    return {"payload": (_count(block, shape) * block.bytes,)}


def _infer(block: Block, shapes: Mapping[str, Shape], params: Params) -> Shape:
    """All blocks in one row: where rows end, the payload does not say."""
    stored = shapes.get("payload", ())
    if len(stored) != 1 or stored[0] % block.bytes:
        raise refuse_shape(form_name(block), stored, f"a payload of whole blocks of {block.bytes} bytes")
    return (stored[0] // block.bytes * block.values,)


def _decode(block: Block, parts: Parts, shape: Shape, params: Params) -> Values:
    blocks = block.records(parts["payload"])
    values = np.empty((len(blocks), block.values), np.float32)
    step = max(1, _VALUES_AT_ONCE // block.values)
    for start in range(0, len(blocks), step):
        values[start : start + step] = block.decode(blocks[start : start + step])
    if not block.direct:  # one word for what arithmetic made: processors differ in sign and payload
        values[np.isnan(values)] = np.nan
    return values.reshape(shape)


def _fast(block: Block, parts: Parts, shape: Shape, params: Params) -> Values:
    if math.prod(shape) < _WORTH_COMPILING:
        return _decode(block, parts, shape, params)
    from ninfer_core.schemes.compiled import ggml

    return ggml.decode(block, parts["payload"], looked_up(block.name)).reshape(shape)


def _encode(block: Block, values: Values, params: Params) -> dict[str, Array]:
    rows = np.ascontiguousarray(values).reshape(-1, block.values)
    blocks = np.zeros(len(rows), block.record)
    step = max(1, _VALUES_AT_ONCE // block.values)
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        if not block.direct:
            _refuse(block, ~np.isfinite(rows[some]).all(axis=1), start, "holds NaN or infinity")
        if block.encode is not None:
            block.encode(rows[some], blocks[some])
        for name in block.scales:
            too_large = blocks[name][some] & 0x7FFF >= 0x7C00
            _refuse(block, too_large, start, f"needs a {name} beyond binary16")
    return {"payload": blocks.view(np.uint8)}


def _refuse(block: Block, at_fault: Any, start: int, reason: str) -> None:
    if at_fault.any():
        raise CannotEncode(f"{form_name(block)}: block {start + int(np.argmax(at_fault))} {reason}")


def _declare(block: Block, shape: Shape, params: Params) -> Declared:
    return block.declare(_count(block, shape))


def _check(block: Block, parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    check_blocks(block, block.records(parts["payload"]), findings)


def _form(block: Block) -> Form:
    title = f"GGML {block.name}, type {block.id} of GGUF files" if block.id is not None else block.name
    return Form(
        name=form_name(block),
        kind="file",
        summary=f"{title}: {block.summary}",
        axes=("rows", "in"),
        parts=(
            Part(
                "payload",
                ("uint8",),
                f"[rows * in / {block.values} * {block.bytes}]",
                f"blocks of {block.values} values in {block.bytes} bytes, row after row",
            ),
        ),
        parameters=(),
        stored=partial(_stored, block),
        infer=partial(_infer, block),
        decode=partial(_decode, block),
        fast=None if block.direct else partial(_fast, block),
        rules=(partial(_check, block),),
        encode=partial(_encode, block) if block.encode is not None else None,
        encoding="canonical" if block.encode is not None else "",
        declare=partial(_declare, block),
        oracle=block.oracle,
        notes=block.notes,
    )


FORMS: Final[tuple[Form, ...]] = tuple(map(_form, BLOCKS))
