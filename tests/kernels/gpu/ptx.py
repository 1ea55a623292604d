"""What the compiler makes of the kernels for CUDA devices, read as text: an extra guard, never evidence.

Run as a program it compiles every kernel for a device that is not there and prints what is wrong, as JSON. Products and
sums that may be fused later, by the assembler, are those without a rounding of their own; a number of a block of threads
that was ever multiplied, added to or shifted up in 32 bits would lose its top beyond 2**31 elements.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import boolean, cuda, float32, float64, int16, int64, types, uint8, uint16, uint32, uint64, void
from numba.cuda import dispatcher

CAPABILITY = (9, 0)
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)  # none is asked

INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+ )?([a-z][\w.:]*)\s+(.*);$")
REGISTER = re.compile(r"%[a-z]+\d+|%ctaid\.x")


def flushing(ptx: str) -> set[str]:
    """Operations that flush or approximate."""
    return {one for one, _ in instructions(ptx) if {"ftz", "approx"} & set(one.split("."))}


def instructions(ptx: str) -> list[tuple[str, list[str]]]:
    """(operation, operands) in their order."""
    found = []
    for line in ptx.splitlines():
        match = INSTRUCTION.match(line)
        if match:
            found.append((match[1], [one.strip() for one in match[2].split(",")]))
    return found


def inexact(ptx: str) -> set[str]:
    """Operations that flush, approximate, fuse, or leave it to the assembler to fuse."""
    wrong = set()
    for operation, _ in instructions(ptx):
        name, *parts = operation.split(".")
        floating = {"f32", "f64"} & set(parts)
        if "ftz" in parts or "approx" in parts or (name in ("fma", "mad") and floating):
            wrong.add(operation)
        if name in ("add", "sub", "mul", "div", "rcp") and floating and "rn" not in parts:
            wrong.add(operation)
    return wrong


def narrow(ptx: str) -> set[str]:
    """Operations of 32 bits between a block's number and an address, which could cut its top off.

    The quotient and rest of a division are left out: the compiler divides in 32 bits where both numbers fit.
    """
    code = [
        (name, parts, target, REGISTER.findall(" ".join(sources)))
        for name, parts, target, sources in parted(ptx)
    ]
    after = reached({"%ctaid.x"}, [(read, target) for _, _, target, read in code])
    addresses = {
        one
        for _, operands in instructions(ptx)
        for one in REGISTER.findall(" ".join(operands))
        if f"[{one}" in " ".join(operands)
    }
    before = reached(addresses, [({target}, one) for _, _, target, read in code for one in read])
    quotients: set[str] = set()
    for name, _, target, read in code:
        if name in ("div", "rem") or (name in ("mul", "sub") and quotients & set(read)):
            quotients = quotients | {target}
    return {
        ".".join((name, *parts))
        for name, parts, target, read in code
        if name in ("add", "sub", "mul", "mad", "shl")
        and {"s32", "u32", "b32"} & set(parts)
        and "wide" not in parts
        and set(read) & after
        and target in before - quotients
    }


def parted(ptx: str) -> Iterator[tuple[str, list[str], str, list[str]]]:
    """(name, its suffixes, target, sources) of what computes; what comes out of memory is no block's number."""
    for operation, (target, *sources) in instructions(ptx):
        name, *parts = operation.split(".")
        constant = not all(map(REGISTER.match, sources))
        if (
            sources
            and name not in ("ld", "st", "setp", "bra", "atom", "red")
            and not (name == "and" and constant)
        ):
            yield name, parts, target, sources


def reached(start: set[str], steps: list[tuple[Iterable[str], str]]) -> set[str]:
    """What steps lead to, from one of several registers to another; loops bring registers back."""
    found, growing = set(start), True
    while growing:
        growing = False
        for sources, target in steps:
            if target not in found and found & set(sources):
                found.add(target)
                growing = True
    return found


def compiled(kernel: Any, *arguments: Any) -> str:
    """The PTX of a kernel for arguments of these types."""
    return str(cuda.compile_ptx(kernel.py_func, void(*arguments), cc=CAPABILITY)[0])


def flat(word: Any) -> Any:
    """The type of a flat array."""
    return types.Array(word, 1, "C")


def kernels() -> dict[str, str]:
    """The PTX of every kernel whose words have to be those of the oracle."""
    from ninfer_core.kernels import (
        gpu_counting,
        gpu_encode,
        gpu_folding,
        gpu_parity,
        gpu_reconstruct,
        gpu_scan,
        gpu_survey,
    )

    base, high, scales = flat(uint32), flat(uint8), flat(uint16)
    planes, bytes8, found = (base, high, scales), flat(uint8), flat(uint32)
    four = (int64,) * 4
    made = {}
    for name, word in (("16", uint16), ("32", uint32)):
        source, out = flat(word), flat(word)
        shape = (boolean, int64, int64, int64, int64, int64)
        arguments = (int64, source, flat(uint64), *shape, *planes, flat(uint64))
        made[f"encode {name}"] = compiled(gpu_encode.encode_octets, *arguments)
        arguments = (*four, *planes, boolean, out)
        made[f"reconstruct grouped {name}"] = compiled(gpu_reconstruct.grouped_octets, *arguments)
        arguments = (int64, source, *four, *planes, flat(float64))
        made[f"parity grouped {name}"] = compiled(gpu_parity.grouped_tiles, *arguments)
        arguments = (int64, source, int64, flat(word), int64, flat(float64))
        made[f"parity words {name}"] = compiled(gpu_parity.word_tiles, *arguments)
    arguments = (bytes8, scales, int64, int64, boolean, flat(uint16))
    made["reconstruct rows"] = compiled(gpu_reconstruct.row_spans, *arguments)
    arguments = (flat(uint32), bytes8, flat(uint16), int64, flat(uint16))
    made["reconstruct blocks"] = compiled(gpu_reconstruct.block_octets, *arguments)
    made["parity groups"] = compiled(gpu_parity.group_squares, *four, *planes, flat(float64))
    made["parity fold"] = compiled(gpu_folding.fold_tiles, flat(float64), flat(float64), int64, flat(float64))
    made["scan grouped"] = compiled(gpu_scan.grouped_octets, *four, *planes, found)
    made["scan rows"] = compiled(gpu_scan.row_spans, bytes8, scales, int64, int64, found)
    made["scan bytes"] = compiled(gpu_scan.bytes_above, bytes8, int64, found)
    made["count groups"] = compiled(gpu_counting.count_groups, *four, *planes, flat(int64))
    made["count bytes"] = compiled(gpu_counting.count_bytes, bytes8, int64, bytes8, flat(int64))
    made["count blocks"] = compiled(gpu_counting.count_blocks, flat(uint64), bytes8, flat(int64))
    made["count words"] = compiled(gpu_counting.count_words, flat(int16), int64, int64, flat(int64))
    made["differ"] = compiled(gpu_survey.differ, bytes8, bytes8, flat(int64))
    return made


def consumers() -> dict[str, str]:
    """Of a consumer operation: it may fuse, but flush no more than the others."""
    from ninfer_core.kernels import gpu_matvec

    made, table = {}, flat(float32)
    planes = (flat(uint32), flat(uint8), flat(uint16))
    for name, word in (("32", float32), ("64", float64)):
        x = flat(word)
        made[f"matvec grouped {name}"] = compiled(gpu_matvec.grouped, *(int64,) * 4, *planes, x, x)
    made["matvec rows"] = compiled(gpu_matvec.rows_of_fp8, flat(uint8), int64, int64, table, table, table)
    arguments = (flat(uint64), flat(uint8), int64, int64, table, table, table, table)
    made["matvec blocks"] = compiled(gpu_matvec.nvfp4, *arguments)
    made["matvec outputs"] = compiled(gpu_matvec.outputs, table, flat(float64), float64, flat(uint16))
    return made


def planted() -> dict[str, str]:
    """Kernels that do what no kernel may, so that whoever looks for it is seen to find it."""

    def fused(a: Any, out: Any) -> None:
        out[0] = a[0] * a[1] + a[2]

    def flushed(a: Any, out: Any) -> None:
        out[0] = a[0] / a[1]

    def cut(a: Any, out: Any) -> None:
        place = np.int32(np.int32(cuda.blockIdx.x) * np.int32(256)) + np.int32(cuda.threadIdx.x)
        out[np.uint64(np.int32(place))] = a[np.uint64(np.int32(place))]

    words = flat(float32)
    return {
        "fused": str(cuda.compile_ptx(fused, void(words, words), cc=CAPABILITY)[0]),
        "flushed": str(cuda.compile_ptx(flushed, void(words, words), cc=CAPABILITY, fastmath=True)[0]),
        "cut": str(cuda.compile_ptx(cut, void(words, words), cc=CAPABILITY)[0]),
    }


if __name__ == "__main__":
    json.dump(
        {
            name: {
                "inexact": sorted(inexact(ptx)),
                "flushing": sorted(flushing(ptx)),
                "narrow": sorted(narrow(ptx)),
                "divisions": sorted(
                    {one for one, _ in instructions(ptx) if one.startswith(("div.", "rcp."))}
                ),
                "lines": len(instructions(ptx)),
            }
            for name, ptx in {**kernels(), **consumers(), **planted()}.items()
        },
        sys.stdout,
    )
