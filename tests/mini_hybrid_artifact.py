"""The artifact of `mini-hybrid/mixed`, made without the product: plain numpy on whole tensors, for tests.

Slow and simple on purpose: the recipe's operations, the two encoders and the layouts once more, from the text of the
specifications alone. The result is held to the digest that tests/vectors/targets states.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests import mini_hybrid

DATA = Path(__file__).parent.parent / "ninfer_core" / "targets" / "data"
Words = NDArray[Any]
GROUPED = {"Q4G64_F16S": (4, 64), "Q5G64_F16S": (5, 64), "Q6G64_F16S": (6, 64), "W8G32_F16S": (8, 32)}


@cache
def artifact() -> bytes:
    """The finished file of revision 2."""
    recipe = json.loads((DATA / "mini-hybrid.mixed.recipe.json").read_text())
    target = json.loads((DATA / "mini-hybrid.mixed.target.json").read_text())
    resources = mini_hybrid.document("checkpoint")["roles"]["base"]["resources"]
    files = {entry["object"]: resources[entry["file"]].encode() for entry in recipe["resources"]}
    values = _Values(recipe, files)
    entries, payload = [], b""
    for item in _expanded(target):
        if "resource" in item:
            content = files[item["resource"]]
            entry = {"name": item["resource"], "kind": "resource", "encoding": item["encoding"]}
        else:
            payload = payload.ljust(_up(len(payload), 256), b"\0")
            content = values.payload(item["tensor"], item["format"], item["shape"])
            entry = {"name": item["tensor"], "kind": "tensor", "shape": item["shape"]}
            entry |= {"format": item["format"], "layout": target["layouts"][item["format"]]}
        entries.append(entry | {"offset": len(payload), "bytes": len(content)})
        payload += content
    root = {"identity": target["identity"], "objects": entries}
    text = json.dumps(root, separators=(",", ":"), ensure_ascii=False).encode()
    head = b"NINFER\0\2" + len(text).to_bytes(8, "little") + text
    result = head.ljust(_up(len(head), 4096), b"\0") + payload
    golden = mini_hybrid.document("golden")["artifact"]
    assert hashlib.sha256(result).hexdigest() == golden["sha256"]
    return result


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _expanded(target: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in target["objects"]:
        if "body" not in entry:
            yield entry
            continue
        for value in target["sets"][entry["in"]]:
            for inner in entry["body"]:
                if "only" not in inner or value in target["sets"][inner["only"]]:
                    key = "tensor" if "tensor" in inner else "resource"
                    yield {**inner, key: inner[key].replace("{" + entry["each"] + "}", str(value))}


def _filled(node: Any, values: Mapping[str, int]) -> Any:
    """The tree with every `{v}` of its strings replaced."""
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, values) for value in node]
    if isinstance(node, str):
        for name, value in values.items():
            node = node.replace("{" + name + "}", str(value))
    return node


class _Values:
    """The value of each object: words, or the parts of a quantized bundle by name."""

    def __init__(self, recipe: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        self.files = files
        self.rules = {}
        for rule in recipe["rules"]:
            each = rule.get("each", {})
            for values in product(*(recipe["sets"][name] for name in each.values())):
                filled = _filled(rule, dict(zip(each, values, strict=True)))
                self.rules[filled["object"]] = filled

    def payload(self, name: str, fmt: str, shape: list[int]) -> bytes:
        rule = self.rules[name]
        value, encode = self.value(rule["value"]), rule["encode"]
        if encode == "copy_words":
            assert list(value.shape) == shape
            return value.tobytes()
        if encode == "copy_nvfp4_words":
            codes = value["codes"].tobytes()
            return (
                codes.ljust(_up(len(codes), 256), b"\0")
                + _tiled(value["scales"])
                + value["divisor"].tobytes()
            )
        if encode == "copy_fp8_row_words":
            return _row_scaled(value["codes"], value["scales"])
        rows = (value.astype(np.uint32) << 16).view(np.float32)
        if encode == "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1":
            return _row_scaled(*_fp8_rows(rows))
        return _grouped(rows, *GROUPED[fmt])

    def value(self, node: Mapping[str, Any]) -> Any:
        tensors = mini_hybrid.tensors()
        part = lambda name: tensors[node["from"], name][1]  # noqa: E731
        match node["op"]:
            case "tensor":
                return part(node["name"])
            case "nvfp4_matrix":
                prefix = node["prefix"]
                names = {"codes": "packed", "scales": "scale", "divisor": "global_scale"}
                return {key: part(f"{prefix}.weight_{name}") for key, name in names.items()}
            case "fp8_row_matrix":
                return {
                    "codes": part(f"{node['prefix']}.weight"),
                    "scales": part(f"{node['prefix']}.weight_scale"),
                }
            case "equal_scalar":
                found = {part(name).tobytes() for name in node["names"]}
                assert len(found) == 1
                return np.frombuffer(found.pop(), "<u4").reshape(())
            case "ranked_token_ids":
                return self.shortlist(node)
            case "concat_rows":
                return _concatenated([self.value(inner) for inner in node["of"]])
        return _moved(node, self.value(node["of"]), self)

    def shortlist(self, node: Mapping[str, Any]) -> Words:
        counts = np.frombuffer(mini_hybrid.ranking(), "<i8")[: node["row_width"]]
        added = json.loads(self.files[node["special_ids_from"]])["added_tokens_decoder"]
        forced = sorted(int(key) for key, entry in added.items() if entry["special"])
        ordered = sorted(range(node["candidates"]), key=lambda i: (-counts[i], i))
        picked = [i for i in ordered if i not in forced][: node["count"] - len(forced)]
        return np.array(sorted(picked + forced, key=lambda i: -counts[i]), "<i4")


def _concatenated(parts: list[Any]) -> Any:
    if not isinstance(parts[0], dict):
        return np.concatenate(parts)
    result = {key: np.concatenate([part[key] for part in parts]) for key in ("codes", "scales")}
    if "divisor" in parts[0]:
        assert len({part["divisor"].tobytes() for part in parts}) == 1
        result["divisor"] = parts[0]["divisor"]
    return result


def _moved(node: Mapping[str, Any], value: Any, values: _Values) -> Any:
    if isinstance(value, dict):  # rows of codes and of scales move together; the divisor stays
        return {key: part if key == "divisor" else _moved(node, part, values) for key, part in value.items()}
    match node["op"]:
        case "rows":
            return value[node["begin"] : node["end"]]
        case "row_blocks":
            blocks = value.reshape(node["blocks"], node["stride"], *value.shape[1:])
            return blocks[:, node["begin"] : node["end"]].reshape(-1, *value.shape[1:])
        case "reshape":
            return value.reshape(node["shape"])
        case "index":
            return np.take(value, node["at"], axis=node["axis"])
        case "transpose":
            return np.ascontiguousarray(value.transpose(node["axes"]))
        case "widen":
            return value.astype("<u4") << np.uint32(16)
    assert node["op"] == "gather_rows"
    return value[values.value(values.rules[node["ids"]]["value"])]


def _grouped(rows: NDArray[np.float32], bits: int, group: int) -> bytes:
    """Section 7 of the format document, then the three planes of row-split-k128-v1."""
    n, k = rows.shape
    padded = np.zeros((n, _up(k, 128)), np.float32)
    padded[:, :k] = rows
    lanes = padded.reshape(n, -1, group)
    most = np.abs(lanes).max(axis=2)
    qmax = (1 << bits - 1) - 1
    scales = (most / np.float32(qmax)).astype(np.float32).astype("<f2")
    scales = np.where((scales == 0) & (most > 0), np.array(1, "<u2").view("<f2"), scales)
    with np.errstate(divide="ignore"):
        inverse = np.where(scales == 0, np.float32(0), np.float32(1) / scales.astype(np.float32))
    least = -qmax if bits == 8 else -qmax - 1
    codes = np.clip(np.rint(lanes * inverse[:, :, None]), least, qmax).astype(np.int8).view(np.uint8)
    if bits == 8:
        base, high = codes.tobytes(), b""
    else:
        base = (codes[..., 0::2] & 15 | (codes[..., 1::2] & 15) << 4).astype(np.uint8).tobytes()
        planes = (codes[..., None] >> np.arange(4, bits, dtype=np.uint8) & 1).astype(np.uint8)
        high = np.packbits(planes.reshape(-1), bitorder="little").tobytes()
    content = base.ljust(_up(len(base), 256), b"\0") + high.ljust(_up(len(high), 256), b"\0")
    return content + scales.astype("<f2").tobytes()


def _e4m3fn() -> NDArray[np.float64]:
    """The values of the words 0x00 to 0x7e."""
    words = np.arange(127)
    exponents, fractions = words >> 3, words & 7
    normal = (8 + fractions) * 2.0 ** (exponents - 10)
    return np.where(exponents == 0, fractions * 2.0**-9, normal)


def _fp8_rows(rows: NDArray[np.float32]) -> tuple[Words, Words]:
    """Section 5 of the targets' page: codes and BF16 scale words."""
    most = np.abs(rows).max(axis=1)
    bits = (most / np.float32(448)).astype(np.float32).view(np.uint32)
    scales = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype("<u2")  # ties to even
    with np.errstate(divide="ignore"):
        inverse = np.float32(1) / (scales.astype(np.uint32) << 16).view(np.float32)
    zero = most == 0
    scaled = np.clip(rows * np.where(zero, np.float32(0), inverse)[:, None], -448, 448)
    values = _e4m3fn()
    size = np.abs(scaled).astype(np.float64)
    below = np.searchsorted(values, size, side="right") - 1
    above = np.minimum(below + 1, 126)
    middle = (values[below] + values[above]) / 2
    up = (size > middle) | ((size == middle) & (below % 2 == 1))
    codes = np.where(up, above, below).astype(np.uint8) | np.signbit(scaled).astype(np.uint8) << 7
    return np.where(zero[:, None], np.uint8(0), codes), scales[:, None]


def _row_scaled(codes: Words, scales: Words) -> bytes:
    content = codes.tobytes()
    return content.ljust(_up(len(content), 256), b"\0") + scales.astype("<u2").tobytes()


def _tiled(scales: Words) -> bytes:
    """Scale (row, group) at tile*512 + row%32*16 + row%128//32*4 + group%4, tiles of 128 rows and 4 groups."""
    rows, groups = scales.shape
    row, group = np.mgrid[:rows, :groups]
    tile = row // 128 * (groups // 4) + group // 4
    plane = np.zeros(rows * groups, np.uint8)
    plane[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + group % 4] = scales
    return plane.tobytes()
