"""What the tasks found out about the objects of a `.ninfer` artifact, merged object by object into results."""

from collections.abc import Mapping, Sequence

from ninfer_core.containers.directory import (
    Artifact,
    ArtifactObject,
    BrokenObject,
    ResourceObject,
    TensorObject,
)
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import resource_identity, tensor_identity
from ninfer_core.kernels.values import CodeStatistics, ErrorSums
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.verify import faults
from ninfer_core.verify.against import ObjectPlan, evidence
from ninfer_core.verify.checks import WORD_CHECKS, Asked
from ninfer_core.verify.metrics import code_metrics, error_metrics, is_all_zero, is_integer, word_metrics
from ninfer_core.verify.outcomes import Part
from ninfer_core.verify.report import ObjectResult
from ninfer_core.verify.statistics import merge_statistics


class Merge:
    """The results of all objects; `take` is called once for each readable one, in the directory's order."""

    def __init__(
        self, artifact: Artifact, asked: Asked, plans: Mapping[str, ObjectPlan], findings: Findings
    ) -> None:
        self.artifact, self.asked, self.plans, self.findings = artifact, asked, plans, findings
        # Shared between objects: there may be half a million.
        every = frozenset(asked.checks)
        self._concerns = {"tensor": every, "resource": every - WORD_CHECKS}
        broken = "the object's entry is broken or its bytes are missing"
        self._broken = {kind: dict.fromkeys(checks, broken) for kind, checks in self._concerns.items()}
        self._results = [self._result(item) for item in artifact.objects]

    def results(self) -> tuple[ObjectResult, ...]:
        """Of every object, once all are taken and all findings are there."""
        for result in self._results:
            result.failed = result.ordinal in self.findings.failed
        return tuple(self._results)

    def _result(self, item: ArtifactObject) -> ObjectResult:
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
                    self._concerns["tensor"],
                )
            case ResourceObject():
                place = (item.offset, item.bytes, self._concerns["resource"])
                return ObjectResult(item.ordinal, item.name, "resource", None, None, None, *place)
            case BrokenObject():
                kind = "resource" if item.kind == "resource" else "tensor"
                return ObjectResult(
                    item.ordinal,
                    item.label,
                    item.kind,
                    item.format,
                    item.layout,
                    item.shape,
                    item.offset,
                    item.bytes,
                    self._concerns[kind],
                    reasons=self._broken[kind],
                )

    def take(self, item: TensorObject | ResourceObject, parts: Sequence[Part]) -> None:
        """Merge what the tasks of one object found out."""
        result = self._results[item.ordinal]
        result.sha256 = next((part.sha256 for part in parts if part.sha256 is not None), None)
        if result.sha256 is not None:
            result.identity = (
                tensor_identity(item.format.name, item.shape, item.layout.name, result.sha256)
                if isinstance(item, TensorObject)
                else resource_identity(item.encoding, result.sha256)
            )
        start = self.artifact.logical_start + item.offset
        found = (fault for part in parts for fault in part.faults)
        faults.report(found, item.name, self.findings, start, item.ordinal)
        error = next((part.error for part in parts if part.error is not None), None)
        if error is not None:
            if isinstance(error, CutShort):
                report_cut_short(error, self.findings, item.name, item.ordinal)
            result.reasons = dict.fromkeys(result.concerns, str(error))
            return
        result.covered = result.concerns if "parity" not in result.concerns else result.concerns - {"parity"}
        self._merge_parity(item, parts, result)
        if isinstance(item, TensorObject) and "statistics" in self.asked:
            self._merge_statistics(item, parts, result)

    def _merge_parity(
        self, item: TensorObject | ResourceObject, parts: Sequence[Part], result: ObjectResult
    ) -> None:
        if "parity" not in self.asked:
            return
        plan = self.plans.get(item.name)
        if plan is None:
            result.reasons = {"parity": "no rule of the recipe makes this object as it is"}
            return
        source_error = next((part.source_error for part in parts if part.source_error is not None), None)
        if source_error is not None:
            result.reasons = {"parity": f"the source could not be read: {source_error}"}
            if isinstance(source_error, CutShort):
                report_cut_short(source_error, self.findings, item.name, about="source")
            return
        if not all(part.compared for part in parts):
            result.reasons = {"parity": "the source of this object is refused"}
            return
        result.covered = result.concerns
        if not any(fault.code.startswith("parity.") for part in parts for fault in part.faults):
            result.evidence = evidence(plan)
        if isinstance(item, TensorObject) and isinstance(plan, TensorPlan):
            if is_integer(item.format):
                result.metrics["error"] = error_metrics(None, "integers are compared by their words")
            else:
                result.metrics["error"] = error_metrics(
                    ErrorSums.merge(one for part in parts for one in part.sums), ""
                )

    def _merge_statistics(self, item: TensorObject, parts: Sequence[Part], result: ObjectResult) -> None:
        statistics = merge_statistics(item, [one for part in parts for one in part.statistics])
        if statistics is None:
            return
        if isinstance(statistics, CodeStatistics):
            result.metrics |= code_metrics(item.format, statistics)
        else:
            result.metrics |= word_metrics(item.format.name, statistics)
        if is_all_zero(item.format, statistics):
            message = f"every value of {item.format.name} {list(item.shape)} is zero"
            self.findings.add(
                "statistics.all_zero",
                message,
                object=item.name,
                expected="some value that is not zero",
                found="zeros",
            )
