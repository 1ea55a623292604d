"""Coverage as a bar: how much was checked fully, by samples, taken over from an earlier run, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.dashboard.format import share

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
    """The whole bar; every kind has a segment, those without bytes have no width."""

    segments: tuple[Segment, ...]
    bytes: int
    objects: int

    @property
    def says(self) -> str:
        """The bar for somebody who cannot see it."""
        return ", ".join(f"{part.share} {part.label}" for part in self.segments if part.bytes or part.objects)

    @property
    def most(self) -> str:
        """The share that was checked fully, or another one by its name where that is larger."""
        full, *others = self.segments
        largest = max(others, key=lambda part: (part.bytes, part.objects))
        if (largest.bytes, largest.objects) <= (full.bytes, full.objects):
            return full.share
        return f"{largest.share} {largest.label}"


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
    return Bar(tuple(segments), total, objects["total"])
