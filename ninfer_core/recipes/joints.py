"""Where rows of different origin meet in a value: at these places fused tensors are put together wrongly."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

MOST_JOINTS: Final = 1 << 12  # of one object; what lies beyond is found as any other row is


def joints(tree: Mapping[str, Any]) -> tuple[int, ...]:
    """Rows of the value of an expanded `tree`, each the first of a new piece, ascending; at most `MOST_JOINTS`."""
    return tuple(dict.fromkeys(sorted(islice(_joints(tree), MOST_JOINTS))))


def _joints(tree: Mapping[str, Any]) -> Iterator[int]:
    match tree["op"]:
        case "concat_rows":
            start = 0
            for number, part in enumerate(tree["of"]):
                if number:
                    yield start
                yield from (start + joint for joint in _joints(part))
                height = _height(part)
                if height is None:
                    return
                start += height
        case "row_blocks":
            count = tree["end"] - tree["begin"]
            yield from range(count, tree["blocks"] * count, count)
            for joint in islice(_joints(tree["of"]), MOST_JOINTS):
                block, row = divmod(joint, tree["stride"])
                if tree["begin"] < row < tree["end"]:
                    yield block * count + row - tree["begin"]
        case "rows":
            inside: Iterable[int] = islice(_joints(tree["of"]), MOST_JOINTS)
            yield from (joint - tree["begin"] for joint in inside if tree["begin"] < joint < tree["end"])
        case "widen" | "cast" | "invert":
            yield from _joints(tree["of"])
        case _:
            return


def _height(tree: Mapping[str, Any]) -> int | None:
    """Rows of a value; None where the tree alone does not say."""
    match tree["op"]:
        case "tensor" | "nvfp4_matrix" | "fp8_row_matrix" | "reshape":
            return int(tree["shape"][0]) if tree["shape"] else None
        case "rows":
            return int(tree["end"] - tree["begin"])
        case "row_blocks":
            return int(tree["blocks"] * (tree["end"] - tree["begin"]))
        case "concat_rows":
            heights = [_height(part) for part in tree["of"]]
            return None if None in heights else sum(height for height in heights if height is not None)
        case "widen" | "cast" | "invert":
            return _height(tree["of"])
        case _:
            return None
