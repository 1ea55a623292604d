"""What the tasks found out about the objects of a `.ninfer` artifact, merged object by object into results."""

from collections.abc import Mapping, Sequence
from typing import Any

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import resource_identity, tensor_identity
from ninfer_core.kernels.processor import merge_produced, produced_json
from ninfer_core.kernels.values import CodeStatistics, ErrorSums
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.verify import faults
from ninfer_core.verify.against import ObjectPlan, is_comparable
from ninfer_core.verify.basis import LEFT_OUT, Basis
from ninfer_core.verify.bounds import overall_faults
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.entries import Entries
from ninfer_core.verify.metrics import code_metrics, error_metrics, is_all_zero, is_integer, word_metrics
from ninfer_core.verify.outcomes import Part
from ninfer_core.verify.report import ObjectResult
from ninfer_core.verify.restrictions import check_pin
from ninfer_core.verify.sample import Sample, detection, matrix_of
from ninfer_core.verify.statistics import merge_statistics
from ninfer_core.verify.tensor import sampled_rows


class Merge:
    """The results of objects that were read; `take` is called once for each of them, in the directory's order."""

    def __init__(
        self,
        artifact: Artifact,
        asked: Asked,
        basis: Basis,
        entries: Entries,
        sample: Sample | None,
        unrelated: Mapping[int, str],
        findings: Findings,
    ) -> None:
        """`unrelated` says, by ordinal, why check `relations` of an object could not be done."""
        self.artifact, self.asked, self.basis, self.findings = artifact, asked, basis, findings
        self._entries, self._unrelated = entries, unrelated
        self._sample = sample if "parity" in asked else None
        self._rows, self._of_rows = 0, 0  # compared, of those that there are to compare

    @property
    def sample_json(self) -> dict[str, Any] | None:
        """What was sampled, and what such a sample finds; None when nothing was."""
        if self._sample is None:
            return None
        found = detection(self._rows, self._of_rows)
        return {
            "fraction": self._sample.fraction,
            "seed": self._sample.seed,
            "rows": self._rows,
            "of_rows": self._of_rows,
            "detects": {
                "one_row": found.one_row,
                "one_percent": found.one_percent,
                "one_permille": found.one_permille,
            },
        }

    def take(self, item: TensorObject | ResourceObject, parts: Sequence[Part]) -> None:
        """Merge what the tasks of one object found out."""
        result = self._entries[item.ordinal]
        kernels = merge_produced(part.kernels for part in parts)
        if kernels:
            result.metrics["kernels"] = produced_json(kernels)
        result.sha256 = next((part.sha256 for part in parts if part.sha256 is not None), None)
        if result.sha256 is not None:
            result.identity = (
                tensor_identity(item.format.name, item.shape, item.layout.name, result.sha256)
                if isinstance(item, TensorObject)
                else resource_identity(item.encoding, result.sha256)
            )
        start = self.artifact.logical_start + item.offset
        found = [fault for part in parts for fault in part.faults]
        if isinstance(item, ResourceObject) and result.sha256 is not None and item.ordinal in self.basis.pins:
            pin = check_pin(item, result.sha256, self.basis.pins[item.ordinal])
            found += [pin] if pin is not None else []
        own = [fault for fault in found if not fault.code.startswith("source.")]
        faults.report(own, item.name, self.findings, start, item.ordinal)
        if len(own) < len(found):
            blamed = Findings()
            faults.report((one for one in found if one.code.startswith("source.")), item.name, blamed)
            blamed.blame("source")
            self.findings.extend(blamed)
        error = next((part.error for part in parts if part.error is not None), None)
        if error is not None:
            if isinstance(error, CutShort):
                report_cut_short(error, self.findings, item.name, item.ordinal)
            result.reasons = dict.fromkeys(result.concerns, str(error))
            return
        result.covered = result.concerns - {"parity"}
        if item.ordinal in self.basis.unjudged:
            self._leave_open(result, "restrictions", self.basis.unjudged[item.ordinal])
        if item.ordinal in self._unrelated:
            self._leave_open(result, "relations", self._unrelated[item.ordinal])
        self._merge_parity(item, parts, result)
        if isinstance(item, TensorObject) and "statistics" in self.asked:
            self._merge_statistics(item, parts, result)

    def _merge_parity(
        self, item: TensorObject | ResourceObject, parts: Sequence[Part], result: ObjectResult
    ) -> None:
        if "parity" not in self.asked:
            return
        plan = self.basis.plans.get(item.name)
        if plan is None:
            left_out = item.ordinal in self.basis.excluded
            why = LEFT_OUT if left_out else "no rule of the recipe makes this object as it is"
            self._leave_open(result, "parity", self.basis.skipped.get("parity", why))
            return
        if not is_comparable(plan):
            if "parity" in result.concerns:
                why = "a foreign producer made the words: only their legality can be checked, and it was not asked"
                self._leave_open(result, "parity", why)
                return
            legal = not any(fault.code.startswith("values.") for part in parts for fault in part.faults)
            result.evidence = "legal-only" if legal and "values" in result.covered else None
        source_error = next((part.source_error for part in parts if part.source_error is not None), None)
        if source_error is not None:
            self._leave_open(result, "parity", f"the source could not be read: {source_error}")
            if isinstance(source_error, CutShort):
                report_cut_short(source_error, self.findings, item.name, about="source")
            return
        if not all(part.compared for part in parts):
            self._leave_open(result, "parity", "the source of this object is refused")
            return
        sampled = self._is_sampled(item, plan)
        if sampled:
            result.sampled = result.concerns & {"parity"}
        else:
            result.covered |= result.concerns & {"parity"}
        sums = ErrorSums.merge(one for part in parts for one in part.sums)
        exceeded = overall_faults(plan, sums) if isinstance(plan, TensorPlan) and not sampled else []
        faults.report(exceeded, item.name, self.findings, None, item.ordinal)
        wrong = bool(exceeded) or any(
            fault.code.startswith("parity.") for part in parts for fault in part.faults
        )
        if not wrong and not sampled and "parity" in result.concerns:
            result.evidence = "copied-exact" if not isinstance(plan, TensorPlan) else _evidence(plan)
        if isinstance(item, TensorObject) and isinstance(plan, TensorPlan):
            if is_integer(item.format):
                result.metrics["error"] = error_metrics(None, "integers are compared by their words")
            else:
                result.metrics["error"] = error_metrics(sums, "")

    def _is_sampled(self, item: TensorObject | ResourceObject, plan: ObjectPlan) -> bool:
        """Whether not every row was compared; the rows of the object are counted either way."""
        if self._sample is None or not isinstance(item, TensorObject) or not isinstance(plan, TensorPlan):
            return False
        total = matrix_of(item)[0]
        rows = sampled_rows(item, plan, self._sample)
        self._of_rows += total
        self._rows += total if rows is None else sum(map(len, rows))
        return rows is not None

    @staticmethod
    def _leave_open(result: ObjectResult, check: CheckName, why: str) -> None:
        result.covered -= {check}
        result.reasons = {**result.reasons, check: why}

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


def _evidence(plan: TensorPlan) -> str:
    """How the words of a tensor are tied to the source, once everything that was compared is as it should be."""
    return plan.evidence_kind if plan.producer is None else "within-bound"
