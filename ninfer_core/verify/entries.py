"""The entries of a directory as results to be: which checks are about each object, before any of them is read."""

from ninfer_core.containers.directory import (
    Artifact,
    ArtifactObject,
    BrokenObject,
    ResourceObject,
    TensorObject,
)
from ninfer_core.findings import Findings
from ninfer_core.verify.against import is_comparable
from ninfer_core.verify.basis import Basis
from ninfer_core.verify.checks import WORD_CHECKS, Asked, CheckName
from ninfer_core.verify.report import ObjectResult

_BROKEN = "the object's entry is broken or its bytes are missing"


class Entries:
    """One result for each object of the artifact, by ordinal."""

    def __init__(self, artifact: Artifact, asked: Asked, basis: Basis) -> None:
        self._artifact, self._asked, self._basis = artifact, asked, basis
        self._concerns: dict[tuple[bool, bool, bool, bool], frozenset[CheckName]] = {}
        self._related = frozenset(ordinal for relation in basis.relations for ordinal in relation.ordinals)
        self._results = [self._result(item) for item in artifact.objects]

    def __getitem__(self, ordinal: int) -> ObjectResult:
        return self._results[ordinal]

    def reuse(self, known: ObjectResult) -> None:
        """Take over the result of an object from an earlier run."""
        self._results[known.ordinal] = known

    def cover_listed(self) -> None:
        """Where no object was to be read, its entry is all that was asked about."""
        for item in self._artifact.readable:
            self._results[item.ordinal].covered = self._results[item.ordinal].concerns

    def results(self, findings: Findings) -> tuple[ObjectResult, ...]:
        """Of every object, once all findings are there."""
        for result in self._results:
            result.failed = result.ordinal in findings.failed
        return tuple(self._results)

    def _concerning(self, item: ArtifactObject) -> frozenset[CheckName]:
        """The checks that are about an object; of those that cannot run at all, only parity is missed in each."""
        basis, ordinal = self._basis, item.ordinal
        is_resource = (
            item.kind == "resource" if isinstance(item, BrokenObject) else isinstance(item, ResourceObject)
        )
        restricted = ordinal in basis.claims or ordinal in basis.pins or ordinal in basis.unjudged
        plan = None if item.name is None else basis.plans.get(item.name)
        key = (is_resource, restricted, ordinal in self._related, plan is None or is_comparable(plan))
        if key not in self._concerns:  # shared between objects: there may be half a million
            names = set(self._asked.checks) - {"source"}
            names -= WORD_CHECKS if key[0] else set()
            names -= set() if key[1] else {"restrictions"}
            names -= set() if key[2] else {"relations"}
            # Nobody can derive these words, and no bound can be tried: of them legality is claimed, if it was asked.
            names -= set() if key[3] or "values" not in names else {"parity"}
            names -= {"inventory"} if "inventory" in self._basis.skipped else set()
            self._concerns[key] = frozenset(names)
        return self._concerns[key]

    def _result(self, item: ArtifactObject) -> ObjectResult:
        concerns = self._concerning(item)
        match item:
            case TensorObject():
                return ObjectResult(
                    item.ordinal,
                    item.name,
                    "tensor",
                    item.format.name,
                    item.layout.name,
                    item.shape,
                    item.offset,
                    item.bytes,
                    concerns,
                )
            case ResourceObject():
                place = (item.offset, item.bytes, concerns)
                return ObjectResult(item.ordinal, item.name, "resource", None, None, None, *place)
            case BrokenObject():
                return ObjectResult(
                    item.ordinal,
                    item.label,
                    item.kind,
                    item.format,
                    item.layout,
                    item.shape,
                    item.offset,
                    item.bytes,
                    concerns,
                    reasons=dict.fromkeys(concerns, _BROKEN),
                )
