"""The synthetic model `mini-hybrid/mixed`: its checkpoint word by word, and the 43 edits of its finished artifact.

`checkpoint(folder)` writes the three source roles and the ranking file out of tests/vectors/targets; every tensor is
held to the digest stated there. `mutate` makes one edited artifact and holds it to its digest too. The artifact itself
comes from the product's `convert` or, without it, from tests/mini_hybrid_artifact.py.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.vectors.load import HERE

IDENTITY = "mini-hybrid/mixed"
VECTORS = HERE / "targets"
PAGE = 4096
Words = NDArray[Any]

_WORD = {"BF16": "<u2", "F32": "<u4", "F8_E4M3": "u1", "U8": "u1", "I64": "<i8"}


@dataclass(frozen=True)
class MiniHybrid:
    """Where the built checkpoint lies."""

    base: Path
    quantized: Path
    dflash: Path
    ranking: Path

    @property
    def roles(self) -> dict[str, Path]:
        """The folder of each source role, as `--source ROLE=DIR` takes them."""
        return {"base": self.base, "quantized": self.quantized, "dflash": self.dflash}

    @property
    def inputs(self) -> dict[str, Path]:
        """The file of each input, as `--input NAME=FILE` takes them."""
        return {"ranking": self.ranking}


@cache
def document(kind: str) -> Any:
    """`checkpoint`, `golden` or `mutations`."""
    return json.loads((VECTORS / f"mini-hybrid.mixed.{kind}.json").read_text())


def stream(seed: str, count: int) -> NDArray[np.uint64]:
    """`count` values of the counter generator."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")
    z = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def _bits(u: Words, low: int, mask: int) -> Words:
    return u >> np.uint64(low) & np.uint64(mask)


def _code(u: Words) -> Words:
    byte = _bits(u, 0, 255)
    return np.where(byte & np.uint64(127) == 127, byte ^ np.uint64(64), byte)


FILLS: Mapping[str, Callable[[Words], Words]] = {
    "bf16_weight": lambda u: (
        u >> np.uint64(63) << np.uint64(15)
        | np.uint64(124) - _bits(u, 8, 7) << np.uint64(7)
        | _bits(u, 0, 127)
    ),
    "bf16_norm": lambda u: np.uint64(126) + _bits(u, 8, 1) << np.uint64(7) | _bits(u, 0, 127),
    "bf16_row_scale": lambda u: np.uint64(112) + _bits(u, 8, 7) << np.uint64(7) | _bits(u, 0, 127),
    "e2m1_pair": lambda u: _bits(u, 0, 255),
    "e4m3fn_scale": lambda u: _bits(u, 0, 65535) % np.uint64(127),
    "e4m3fn_code": _code,
    "fp32_divisor": lambda u: np.uint64(135) + _bits(u, 32, 3) << np.uint64(23) | _bits(u, 0, 0x7FFFFF),
    "i64_count": lambda u: u % np.uint64(97),
}


def words(entry: Mapping[str, Any], seed: str) -> Words:
    """The words of one tensor, C order, with the overrides applied."""
    shape = tuple(entry["shape"])
    filled = FILLS[entry["fill"]](stream(entry.get("seed", seed), int(np.prod(shape, dtype=np.int64))))
    result = filled.astype(_WORD[entry["dtype"]]).reshape(shape)
    for override in entry.get("overrides", ()):
        part = result[(*override["at"], ...)]  # a view, also of one element
        if "then" in override:
            part[...] = int(override["then"], 16)
        for index, word in enumerate(override.get("words", ())):
            part.reshape(-1)[index] = int(word, 16)
    digest = hashlib.sha256(result.tobytes()).hexdigest()
    assert digest == entry["sha256"], f"{entry.get('name', seed)} is not as stated"
    return result


@cache
def tensors() -> Mapping[tuple[str, str], tuple[str, Words]]:
    """Every source tensor by role and name: dtype and words."""
    return {
        (entry["from"], entry["name"]): (entry["dtype"], words(entry, f"{entry['from']}/{entry['name']}"))
        for entry in document("checkpoint")["tensors"]
    }


def ranking() -> bytes:
    """The ranking file."""
    entry = document("checkpoint")["ranking"]
    return words(entry, entry["seed"]).tobytes()


def checkpoint(folder: Path) -> MiniHybrid:
    """Write the whole checkpoint under `folder`: one folder per role, and the ranking file."""
    stated = document("checkpoint")
    for role, facts in stated["roles"].items():
        place = folder / role
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(facts["config.json"]))
        for name, text in facts.get("resources", {}).items():
            (place / name).write_bytes(text.encode())
        own = {name: value for (owner, name), value in tensors().items() if owner == role}
        assert len(own) == stated["counts"][role]
        shards = {name: _shard(facts, name) for name in own}
        for shard in sorted(set(shards.values())):
            (place / shard).write_bytes(
                _safetensors({name: own[name] for name in own if shards[name] == shard})
            )
        if "index" in facts:
            size = sum(value.nbytes for _, value in own.values())
            index = {"metadata": {"total_size": size}, "weight_map": shards}
            (place / facts["index"]).write_text(json.dumps(index))
    file = folder / stated["ranking"]["file"]
    file.write_bytes(ranking())
    return MiniHybrid(folder / "base", folder / "quantized", folder / "dflash", file)


def _shard(facts: Mapping[str, Any], name: str) -> str:
    if "file" in facts:
        return str(facts["file"])
    return str(next(shard for prefix, shard in facts["shards"] if name.startswith(prefix)))


def _safetensors(entries: Mapping[str, tuple[str, Words]]) -> bytes:
    header, cursor = {}, 0
    for name, (dtype, value) in entries.items():
        end = cursor + value.nbytes
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [cursor, end]}
        cursor = end
    text = json.dumps(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for _, value in entries.values())


def mutations() -> tuple[Mapping[str, Any], ...]:
    """All 43, each with `id`, `what`, `edits`, `expect` and perhaps `expect_advisory`."""
    return tuple(document("mutations")["mutations"])


def mutate(artifact: bytes, mutation: Mapping[str, Any]) -> bytes:
    """The finished artifact with one mutation's edits; the result has the stated digest."""
    assert hashlib.sha256(artifact).hexdigest() == document("mutations")["artifact_sha256"]
    edited = artifact
    for edit in mutation["edits"]:
        edited = _EDITS[edit["kind"]](edited, edit)
    assert hashlib.sha256(edited).hexdigest() == mutation["edited_sha256"], mutation["id"]
    return edited


def directory(artifact: bytes) -> tuple[dict[str, Any], int]:
    """The directory of a single file of revision 2 and where its payload begins."""
    length = int.from_bytes(artifact[8:16], "little")
    return json.loads(artifact[16 : 16 + length]), -(-(16 + length) // PAGE) * PAGE


def with_directory(artifact: bytes, root: Mapping[str, Any]) -> bytes:
    """The same payload under another directory."""
    payload = artifact[directory(artifact)[1] :]
    text = json.dumps(root, separators=(",", ":"), ensure_ascii=False).encode()
    head = artifact[:8] + len(text).to_bytes(8, "little") + text
    return head.ljust(-(-len(head) // PAGE) * PAGE, b"\0") + payload


def _entry(root: Mapping[str, Any], name: str) -> Any:
    return next(entry for entry in root["objects"] if entry["name"] == name)


def _replaced(artifact: bytes, at: int, edit: Mapping[str, Any]) -> bytes:
    old, new = bytes.fromhex(edit["old"]), bytes.fromhex(edit["new"])
    assert artifact[at : at + len(old)] == old
    return artifact[:at] + new + artifact[at + len(old) :]


def _payload(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, start = directory(artifact)
    return _replaced(artifact, start + _entry(root, edit["object"])["offset"] + edit["at"], edit)


def _exchanged(artifact: bytes, first: int, second: int, length: int) -> bytes:
    content = bytearray(artifact)
    content[first : first + length], content[second : second + length] = (
        artifact[second : second + length],
        artifact[first : first + length],
    )
    return bytes(content)


def _swap_payload(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, start = directory(artifact)
    first, second = (_entry(root, name) for name in edit["objects"])
    assert first["bytes"] == second["bytes"]
    return _exchanged(artifact, start + first["offset"], start + second["offset"], first["bytes"])


def _swap_rows(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, start = directory(artifact)
    begin, length = start + _entry(root, edit["object"])["offset"], edit["row_bytes"]
    first, second = (begin + row * length for row in edit["rows"])
    return _exchanged(artifact, first, second, length)


def _set_members(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, _ = directory(artifact)
    _entry(root, edit["object"]).update(edit["set"])
    return with_directory(artifact, root)


def _set_identity(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, _ = directory(artifact)
    root["identity"].update(edit["set"])
    return with_directory(artifact, root)


def _extra_member(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, _ = directory(artifact)
    root["objects"][edit["index"]][edit["member"]] = edit["value"]
    return with_directory(artifact, root)


def _drop_last(artifact: bytes, edit: Mapping[str, Any]) -> bytes:
    root, _ = directory(artifact)
    root["objects"].pop()
    last = root["objects"][-1]
    shorter = with_directory(artifact, root)
    return shorter[: directory(shorter)[1] + last["offset"] + last["bytes"]]


_EDITS: Mapping[str, Callable[[bytes, Mapping[str, Any]], bytes]] = {
    "file": lambda artifact, edit: _replaced(artifact, edit["at"], edit),
    "append": lambda artifact, edit: artifact + bytes.fromhex(edit["hex"]),
    "payload": _payload,
    "swap_payload": _swap_payload,
    "swap_rows": _swap_rows,
    "directory": _set_members,
    "identity": _set_identity,
    "extra_member": _extra_member,
    "drop_last": _drop_last,
}
