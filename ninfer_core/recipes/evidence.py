"""What equal words prove of an object, by the way they were made."""

from typing import Literal

from ninfer_core.recipes.bundles import BundleTree, Tree
from ninfer_core.recipes.encoders import COPY_FP8_ROWS, COPY_NVFP4, COPY_WORDS
from ninfer_core.recipes.nodes import Cast, Invert, RankedTokenIds, Widen, contains
from ninfer_core.recipes.rules import Rule

EvidenceKind = Literal["copied-exact", "derived-exact", "within-bound", "legal-only"]


def evidence_kind(rule: Rule, inverts_exactly: bool) -> EvidenceKind:
    """The strongest claim that a complete comparison can support; `inverts_exactly` is asked only of `invert`.

    An inverted word is no copy: it is derived, exactly or only within half a unit of its last place.
    """
    if rule.producer is not None:
        return "legal-only" if rule.producer.bound is None else "within-bound"
    inverts, moved = _inverts(rule.value), _only_moves(rule.value)
    if inverts and not inverts_exactly:
        return "within-bound"
    copies = rule.encode in (COPY_WORDS, COPY_NVFP4, COPY_FP8_ROWS)
    return "copied-exact" if copies and moved and not inverts else "derived-exact"


def _inverts(tree: Tree) -> bool:
    if isinstance(tree, BundleTree):
        return any(isinstance(part.divisor, Invert) for part in tree.parts)
    return contains(tree, Invert)


def _only_moves(tree: Tree) -> bool:
    return isinstance(tree, BundleTree) or not contains(tree, Cast, Widen, RankedTokenIds)
