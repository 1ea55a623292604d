"""Coverage as a bar: how much was checked fully, by samples, taken over from an earlier run, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.dashboard.format import UNKNOWN, figure, plural, share, size

LABELS: Final = {
    "full": "checked fully",
    "sampled": "sampled",
    "reused": "reused",
    "none": "not checked",
}
_NARROWEST = 0.8  # per cent of the bar: a part that exists can be seen


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the bar; `x` and `width` are per cent of it, as drawn."""

    kind: str
    label: str
    bytes: int
    objects: int
    share: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The whole bar; every kind has a segment, those without bytes have no width. `word` says it in a list."""

    segments: tuple[Segment, ...]
    bytes: int
    objects: int
    word: str

    @property
    def says(self) -> str:
        """The bar for somebody who cannot see it."""
        return ", ".join(f"{part.share} {part.label}" for part in self.segments if part.bytes or part.objects)

    @property
    def counts(self) -> str:
        """What `word` counts."""
        parts = (part for part in self.segments if part.bytes or part.objects)
        return ", ".join(
            f"{part.label}: {plural(part.objects, 'object')}, {size(part.bytes)}" for part in parts
        )


def bar(report: Mapping[str, Any] | None) -> Bar | None:
    """The coverage of a report; None where it has none, as when no check could run."""
    coverage = (report or {}).get("coverage")
    if not coverage:
        return None
    stored, objects = coverage["bytes"], coverage["objects"]
    total = stored["total"]
    widths = {kind: max(_NARROWEST, 100 * stored[kind] / total) if stored[kind] else 0.0 for kind in LABELS}
    stretch = 100 / (sum(widths.values()) or 100)
    segments, x = [], 0.0
    for kind, label in LABELS.items():
        width = widths[kind] * stretch
        part = share(stored[kind], total) if total else share(objects[kind], objects["total"])
        segments.append(Segment(kind, label, stored[kind], objects[kind], part, round(x, 3), round(width, 3)))
        x += width
    return Bar(tuple(segments), total, objects["total"], _word(objects, (report or {}).get("sample")))


def _word(objects: Mapping[str, int], sample: Mapping[str, Any] | None) -> str:
    """The weakest that was done of any object, which is what the whole rests on."""
    if not objects["total"]:
        return UNKNOWN
    if objects["none"]:
        return "partly" if objects["none"] < objects["total"] else LABELS["none"]
    if objects["sampled"]:
        return f"sampled {figure(100 * sample['fraction'], '.3g')} %" if sample else "sampled"
    if objects["reused"]:
        return "reused" if objects["reused"] == objects["total"] else "partly reused"
    return "full"
