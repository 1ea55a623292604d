"""The shortlist of a draft head: token ids by falling count, special tokens forced in (targets, section 4)."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core import strict_json
from ninfer_core.io import ByteSource, read
from ninfer_core.recipes.inputs import COUNT_BYTES, Ranking
from ninfer_core.strict_json import Members

DECODER: Final = "added_tokens_decoder"
_DIGITS: Final = frozenset("0123456789")
_LONGEST_ID: Final = 19


def special_ids(root: Members) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The ids of a parsed tokenizer config whose entry has `special` true, ascending; and what is wrong with it.

    Without the member there would silently be no special token, so its absence is a fault.
    """
    decoder = root.get(DECODER)
    if not isinstance(decoder, Members):
        return (), (f"no object {DECODER}",)
    ids, faults = [], []
    for key, entry in decoder.items():
        special = entry.get("special", False) if isinstance(entry, Members) else None
        if not isinstance(special, bool):
            faults.append(f"entry {strict_json.show(key)} does not say whether it is special")
        elif not _is_canonical(key):
            faults.append(f"{strict_json.show(key)} is no canonical decimal integer")
        elif special:
            ids.append(int(key))
    return tuple(sorted(ids)), tuple(faults)


def _is_canonical(key: str) -> bool:
    return 0 < len(key) <= _LONGEST_ID and set(key) <= _DIGITS and (key == "0" or key[0] != "0")


def read_counts(source: ByteSource, ranking: Ranking, candidates: int) -> NDArray[np.int64]:
    """Counts of the first `candidates` ids of the used row; the size of the file has been checked.

    Raises: CutShort, CannotRead.
    """
    begin = ranking.used_row * ranking.row_width * COUNT_BYTES
    content = read(source, begin, candidates * COUNT_BYTES)
    counts: NDArray[np.int64] = np.frombuffer(content, "<i8").astype(np.int64, copy=False)
    return counts


def ranked_ids(counts: NDArray[np.int64], count: int, forced: Collection[int]) -> NDArray[np.uint32]:
    """`count` ids as I32 words: the best that are not forced, the forced ones after them, all by falling count.

    Within one count, picked ids stand by rising id before the forced ones by rising id. `forced` are ids of `counts`,
    at most `count` of them.
    """
    falling: NDArray[Any] = ~counts  # -count - 1: sorts as -count does and cannot overflow
    is_forced = np.zeros(counts.size, np.bool_)
    last = np.array(sorted(forced), np.int64)
    is_forced[last] = True
    order = np.argsort(falling, kind="stable")
    picked = order[~is_forced[order]][: count - last.size]
    listed = np.concatenate([picked, last])
    return listed[np.argsort(falling[listed], kind="stable")].astype(np.uint32)
