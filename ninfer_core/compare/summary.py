"""Whether a comparison matters, in one sentence: first what is missing or unread, then by how much values differ."""

from collections import Counter

from ninfer_core.compare.comparison import Comparison, ObjectComparison


def summary(comparison: Comparison) -> str:
    """One sentence without its full stop."""
    if comparison.verdict == "identical":
        return f"every one of {_objects(len(comparison.objects))} is identical: the content is the same"
    count: Counter[str] = Counter(item.status for item in comparison.objects)
    parts = _said(comparison)
    if not (comparison.a.listed and comparison.b.listed):
        sides = [name for name, side in (("A", comparison.a), ("B", comparison.b)) if not side.listed]
        parts.append(f"the list of objects of {' and '.join(sides)} could not be read")
    if count["unreadable"]:
        parts.append(f"of {_objects(count['unreadable'])} nothing can be said")
    moved = sum(1 for item in comparison.objects if item.same_content_as and item.status == "removed")
    if count["removed"] or count["added"]:
        parts.append(_apart(count["removed"], count["added"], moved))
    if comparison.objects and count["identical"] == len(comparison.objects):
        parts.append(f"every one of {_objects(len(comparison.objects))} is identical")
    else:
        parts.append(_values(comparison.objects, count))
    return "; ".join(part for part in parts if part)


def _apart(removed: int, added: int, moved: int) -> str:
    """What only one of the two has; `moved` of it is in the other under another name."""
    lacks, has = f"B lacks {_objects(removed)} of A", f"B has {_objects(added)} that A has not"
    both = f"{lacks} and has {added:,} that A has not" if removed and added else lacks if removed else has
    return both + (f" ({moved:,} only under another name)" if moved else "")


def _said(comparison: Comparison) -> list[str]:
    """That the directories differ where a reader goes by them."""
    sections = comparison.facts.deciding
    if not sections:
        return []
    named = " and ".join(filter(None, (", ".join(sections[:-1]), sections[-1])))
    plural = len(sections) > 1 or sections[0] != "identity"
    return [f"the {named} of the two {'differ' if plural else 'differs'}"]


def _values(objects: tuple[ObjectComparison, ...], count: Counter[str]) -> str:
    other = [item for item in objects if item.status in ("changed", "re-encoded")]
    if not other:
        if count["re-packed"]:
            return f"{_differ(count['re-packed'])} in padding alone: no value does"
        return "what both have is identical" if count["identical"] else ""
    noisy = [item for item in other if item.metrics.get("max_abs_error")]
    unbounded = [item for item in other if item.metrics.get("max_abs_error") is None]
    parts = []
    if noisy:
        worst = max(noisy, key=lambda item: (item.weight, -item.ordinal))
        error = "" if worst.nmse is None else f", at worst with an NMSE of {worst.nmse:.2e}"
        sqnr = worst.metrics["sqnr_db"]
        ratio = "" if sqnr is None else f" ({round(sqnr, 2) + 0.0:.2f} dB)"
        parts.append(f"the values of {_objects(len(noisy))} differ{error}{ratio}")
    if unbounded:
        parts.append(f"of {_objects(len(unbounded))} the difference has no measure")
    exact = len(other) - len(noisy) - len(unbounded)
    if exact:
        parts.append(f"{_objects(exact)} {'has' if exact == 1 else 'have'} other words for the same values")
    return ", ".join(parts)


def _differ(count: int) -> str:
    return f"{_objects(count)} {'differs' if count == 1 else 'differ'}"


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count:,} objects"
