"""The shortlist of a draft head: token ids by falling count, special tokens forced in (targets, section 4)."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, read
from ninfer_core.recipes.inputs import COUNT_BYTES, Input, Ranking
from ninfer_core.recipes.nodes import RankedTokenIds
from ninfer_core.sources.json_text import JsonLimits, read_object
from ninfer_core.strict_json import Members

CONFIG_LIMITS: Final = JsonLimits(64 << 20, 64)  # of a tokenizer's own config
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


class Rankings:
    """The id lists of a recipe, each made once; what does not fit is a finding about the source."""

    def __init__(
        self,
        stated: Mapping[str, Input],
        inputs: Mapping[str, ByteSource],
        resources: Mapping[str, ByteSource],
        findings: Findings,
    ) -> None:
        """`stated` is what the recipe says of its inputs, `resources` are files by the object they become."""
        self._stated, self._inputs, self._resources, self._findings = stated, inputs, resources, findings
        self._made: dict[RankedTokenIds, NDArray[np.uint32] | None] = {}

    def ids(self, node: RankedTokenIds) -> NDArray[np.uint32] | None:
        """The ids as I32 words; None after findings, or without their files. Raises: CutShort, CannotRead."""
        if node not in self._made:
            self._made[node] = self._rank(node)
        return self._made[node]

    def _rank(self, node: RankedTokenIds) -> NDArray[np.uint32] | None:
        ranking, counts = self._stated[node.ranking].ranking, self._inputs.get(node.ranking)
        resource = self._resources.get(node.special_ids_from)
        if ranking is None or counts is None or resource is None or counts.size != ranking.bytes:
            return None  # a finding already
        forced = self._forced(node, resource)
        if forced is None:
            return None
        return ranked_ids(read_counts(counts, ranking, node.candidates), node.shape[0], forced)

    def _forced(self, node: RankedTokenIds, resource: ByteSource) -> tuple[int, ...] | None:
        found = Findings()
        root = read_object(resource, CONFIG_LIMITS, found)
        self._findings.extend(found)
        if root is None or found.errors:
            return None
        forced, faults = special_ids(root)
        limit = node.candidates
        beyond = [number for number in forced if number >= limit]
        faults += tuple(f"special token {number} is beyond the {limit:,} candidates" for number in beyond)
        if not faults and len(forced) > node.shape[0]:
            faults = (f"{len(forced):,} special tokens do not fit into {node.shape[0]:,} ids",)
        if not faults:
            return forced
        self._findings.add(
            "source.special_ids_invalid",
            f"{resource.name}: {faults[0]}"
            + (f", and {len(faults) - 1} more faults." if faults[1:] else "."),
            object=node.special_ids_from,
            where={"file": resource.name, "faults": list(faults)},
            expected=f"special tokens below {limit:,}",
            found=faults[0],
            count=len(faults),
        )
        return None
