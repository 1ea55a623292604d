"""A conversion planned: its tasks, which write blocks anywhere, and the one step that makes an artifact of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from ninfer_core.containers.directory import TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.containers.output import Output, Sink
from ninfer_core.containers.writer import (
    ARTIFACT_ID_BYTES,
    ObjectSpec,
    ResourceSpec,
    TensorSpec,
    blueprint,
)
from ninfer_core.convert.objects import TensorEncoder, resource_task
from ninfer_core.convert.result import Conversion, Written
from ninfer_core.convert.stored import check_stored
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX, FileDigest, content_root, resource_identity, tensor_identity
from ninfer_core.io import sha256
from ninfer_core.kernels.processor import merge_produced
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.recipes.heading import heading
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan, report_source_changes
from ninfer_core.recipes.preflight import source_tasks
from ninfer_core.recipes.producers import refuse_foreign
from ninfer_core.verify import faults
from ninfer_core.verify.outcomes import Encoded, Outcomes
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task
from ninfer_core.verify.totals import Totals

Yield = TypeVar("Yield")


class Draft:
    """A conversion planned, nothing written.

    `tasks` are in the order of the merge, the same for the same plan, name, revision and limit on every machine; each
    writes to the sink it is given, at offsets of the logical payload. `blueprint` says which files there will be.
    """

    def __init__(
        self,
        plan: Plan,
        name: str,
        revision: int,
        max_file_bytes: int | None,
        pool: Pool,
        told: Findings | None = None,
    ) -> None:
        """`name` is that of the entry, its parts are named after it; `told` is what binding found. Raises: Usage.

        A plan with objects of foreign producers has no tasks, and composes to the refusal that names them.
        """
        specs = specs_of(plan)
        self.plan, self.pool = plan, pool
        self._found = Findings()  # before anything is written
        if told is not None:
            self._found.extend(told)
        refuse_foreign(plan.recipe, self._found)
        self.blueprint = blueprint(name, specs, heading(plan.recipe), revision, max_file_bytes)
        self.totals = Totals(
            len(specs), self.blueprint.bytes * 3
        )  # encoded, then hashed by object and by file
        self._sizes = [spec.bytes for spec in specs]
        self._counts: list[int] = []  # tasks of each object
        tasks: list[Task[[Sink], Encoded | Findings]] = []
        if not self._found.errors:
            compared = source_tasks(plan, pool)
            tasks += (Task(task.bytes, partial(without_sink, task.run)) for task in compared)
            for ordinal in range(len(specs)):
                before = len(tasks)
                tasks += self._object_tasks(ordinal)
                self._counts.append(len(tasks) - before)
        self.tasks: Sequence[Task[[Sink], Encoded | Findings]] = tasks

    def compose(self, outcomes: Iterable[Encoded | Findings], output: Output) -> Conversion:
        """Merge, check and digest; `output` holds what the tasks wrote, and is complete but for its names afterwards.

        Nothing is published: when `written` of the result is set, its files may be. Refused outcomes are answered
        without a look at `output`. Raises: OutOfStep when these are not the outcomes of these tasks, CannotWrite,
        CannotRead, CutShort.
        """
        findings = Findings()
        findings.extend(self._found)
        objects = [] if findings.errors else self._merge(Outcomes(outcomes), findings)
        report_source_changes(self.plan, findings)
        if findings.errors:
            return self._conversion(findings, objects)
        root = self._digest_objects(objects, output)
        self._compare_pins(objects, findings)
        output.write_headers(bytes.fromhex(root.removeprefix(DIGEST_PREFIX))[:ARTIFACT_ID_BYTES])
        # The recipe's own words went into the directory; what our own reader would refuse is never published.
        artifact = read_artifact(output, output.files[0].name, findings)
        if artifact is not None and not findings.errors:
            check_stored(artifact, self.plan.recipe, self.pool, findings)
        if findings.errors:
            return self._conversion(findings, objects)
        tasks = [partial(sha256, file, progress=self.pool.advance) for file in output.files]
        digests = tuple(
            FileDigest(file.name, file.size, digest)
            for file, digest in zip(output.files, self.pool.run(tasks), strict=True)
        )
        return self._conversion(findings, objects, digests, root)

    def _conversion(
        self,
        findings: Findings,
        objects: Sequence[Written],
        files: tuple[FileDigest, ...] = (),
        root: str | None = None,
    ) -> Conversion:
        return Conversion(
            root is not None,
            self.blueprint.revision,
            self.plan.recipe.digest,
            tuple(findings),
            tuple(objects),
            files,
            root,
            self.plan.accounting,
        )

    def _object_tasks(self, ordinal: int) -> Iterator[Task[[Sink], Encoded]]:
        plan, offset = self.plan.objects[ordinal], self.blueprint.offsets[ordinal]
        if isinstance(plan, ResourcePlan):
            yield resource_task(plan, offset, self.pool)
            return
        place = (offset, self._sizes[ordinal])
        item = TensorObject(ordinal, plan.name, plan.shape, plan.fmt, plan.layout, *place)
        yield from TensorEncoder(plan, item, self.pool).tasks()

    def _merge(self, done: Outcomes, findings: Findings) -> list[Written]:
        for _ in range(len(self.tasks) - sum(self._counts)):
            findings.extend(done.take(Findings))
        objects = []
        places = zip(self.plan.objects, self.blueprint.offsets, self._sizes, self._counts, strict=True)
        for plan, offset, size, count in places:
            parts = [done.take(Encoded) for _ in range(count)]
            faults.report((fault for part in parts for fault in part.faults), plan.name, findings)
            cut = next((part.cut for part in parts if part.cut is not None), None)
            if cut is not None:
                report_cut_short(cut, findings, plan.name, about="source")
            rescued, clamped = sum(part.rescued for part in parts), sum(part.clamped for part in parts)
            kernels = merge_produced(part.kernels for part in parts)
            written = Written(
                plan.name, plan, offset, size, rescued=rescued, clamped=clamped, kernels=kernels
            )
            objects.append(written)
        done.end()
        return objects

    def _digest_objects(self, objects: Sequence[Written], output: Output) -> str:
        tasks = [
            partial(sha256, output.payload, item.offset, item.bytes, self.pool.advance) for item in objects
        ]
        for item, digest in zip(objects, self.pool.run(tasks), strict=True):
            item.sha256 = digest
            plan = item.plan
            if isinstance(plan, TensorPlan):
                item.identity = tensor_identity(plan.fmt.name, plan.shape, plan.layout.name, digest)
            else:
                item.identity = resource_identity(RESOURCE_ENCODING, digest)
        return content_root((item.name, item.identity) for item in objects if item.identity is not None)

    def _compare_pins(self, objects: Sequence[Written], findings: Findings) -> None:
        pins = {resource.object: resource.pin.sha256 for resource in self.plan.recipe.resources}
        for item in objects:
            pinned = pins.get(item.name)
            if pinned is not None and item.sha256 != pinned:
                message = f"{item.name!r} was copied from a file that is not the one the recipe pins"
                findings.add(
                    "source.file_digest_mismatch",
                    message,
                    object=item.name,
                    expected=pinned,
                    found=item.sha256,
                )


def without_sink(run: Callable[[], Yield], _: Sink) -> Yield:
    """What a task yields that writes nothing, run among those that do."""
    return run()


def specs_of(plan: Plan) -> list[ObjectSpec]:
    """What the directory lists, in writer order."""
    return [_spec(item) for item in plan.objects]


def _spec(item: TensorPlan | ResourcePlan) -> ObjectSpec:
    if isinstance(item, TensorPlan):
        return TensorSpec(item.name, item.shape, item.fmt, item.layout)
    return ResourceSpec(item.name, item.source.size)
