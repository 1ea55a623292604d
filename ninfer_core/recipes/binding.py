"""A recipe put together with checkpoints: the source preflight (check catalogue E), and the plan that comes of it.

Everything is compared before anything is made: files, configs, names, shapes, dtypes, single words, pinned digests.
Only words of whole tensors are left to `preflight.source_tasks` and to whoever reads the values.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ninfer_core.documents.templates import Assignment, assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet
from ninfer_core.layouts import canonical_layout
from ninfer_core.recipes.accounting import account
from ninfer_core.recipes.bundles import BundleTree
from ninfer_core.recipes.claims import claims
from ninfer_core.recipes.configuration import check_configs
from ninfer_core.recipes.crossing import check_cross
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.evidence import evidence_kind
from ninfer_core.recipes.files import open_files
from ninfer_core.recipes.making import Maker
from ninfer_core.recipes.names import Misfits, compare_tensor, report_unread
from ninfer_core.recipes.nodes import RankedTokenIds, Tensor, converts
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan
from ninfer_core.recipes.reads import ReadFiles
from ninfer_core.recipes.roles import compare_names, open_roles
from ninfer_core.recipes.rules import Rule
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.targets import Target


def bind(
    recipe: Recipe,
    checkpoints: Mapping[str, Checkpoint | FileSet],
    inputs: Mapping[str, ByteSource],
    findings: Findings,
) -> Plan | None:
    """The plan, or None after at least one error finding; a role given as files is opened as the recipe says.

    Raises: CutShort, CannotRead.
    """
    found = Findings()
    folders = {role: ReadFiles.of(given) for role, given in checkpoints.items() if role in recipe.sources}
    opened = open_roles(recipe, checkpoints, folders, found)
    compare_names(recipe.inputs, inputs, "input", found)
    check_configs(recipe, folders, found)
    files = open_files(recipe, folders, inputs, found)
    objects = _Objects(recipe, opened, Maker(recipe, opened, inputs, files, found), found)
    tensors = list(objects.tensors())
    objects.misfits.report(found)
    accounting = account(recipe.cross_checks, opened, objects.readers)
    report_unread(recipe, accounting, found)
    check_cross(recipe, opened, accounting, found)
    found.blame("source")
    findings.extend(found)
    if found.errors:
        return None
    resources = [
        ResourcePlan(
            resource.object,
            files[resource.path],
            resource.role,
            resource.file or resource.input or "",
            resource.path,
        )
        for resource in recipe.resources
    ]
    ordered = _in_writer_order([*resources, *tensors], recipe.target)
    read = {role: folder.opened for role, folder in folders.items()}
    return Plan(
        recipe,
        ordered,
        MappingProxyType(opened),
        MappingProxyType(dict(inputs)),
        accounting,
        MappingProxyType(read),
    )


class _Objects:
    """The tensor plans of a recipe; `readers` holds by role and source tensor the objects that read it.

    `misfits` are the source tensors that are not as rules read them.
    """

    def __init__(
        self, recipe: Recipe, checkpoints: Mapping[str, Checkpoint], maker: Maker, findings: Findings
    ) -> None:
        self.readers: dict[str, dict[str, list[str]]] = {role: {} for role in recipe.sources}
        self.misfits = Misfits()
        self._recipe, self._checkpoints, self._maker, self._findings = recipe, checkpoints, maker, findings

    def tensors(self) -> Iterable[TensorPlan]:
        """Every object whose sources fit, in document order; the others are findings."""
        covering = claims(self._recipe)
        for rule in self._recipe.rules:
            leaves = tuple(dict.fromkeys(rule.leaves))
            for name, fmt, values in zip(rule.objects, rule.formats, assignments(rule.each), strict=True):
                sources = self._sources(leaves, rule, name, values)
                if sources is None:
                    continue
                value = self._maker.value(rule, name, values)
                if value is None:
                    continue
                plain = None if isinstance(rule.value, BundleTree) else rule.value
                yield TensorPlan(
                    name,
                    fmt,
                    canonical_layout(fmt),
                    value.shape,
                    rule.encode,
                    rule.producer,
                    value,
                    sources,
                    (plain.ranking,) if isinstance(plain, RankedTokenIds) else (),
                    plain is not None and converts(plain),
                    evidence_kind(rule, self._maker.inverts_exactly(rule, values)),
                    covering[name],
                    rule.path,
                    rule.template,
                    values,
                )

    def _sources(
        self, leaves: tuple[Tensor, ...], rule: Rule, name: str, values: Assignment
    ) -> tuple[tuple[str, str], ...] | None:
        """(role, tensor) of every source tensor; None when one of them does not fit."""
        sources: dict[tuple[str, str], None] = {}
        sound = True
        for leaf in leaves:
            tensor = fill(leaf.name, values)
            sources[leaf.role, tensor] = None
            self.readers[leaf.role].setdefault(tensor, []).append(name)
            checkpoint = self._checkpoints.get(leaf.role)
            if checkpoint is None or not compare_tensor(
                leaf, tensor, checkpoint, name, rule.path, self._findings, self.misfits
            ):
                sound = False
        return tuple(sources) if sound else None


def _in_writer_order(
    objects: list[TensorPlan | ResourcePlan], target: Target | None
) -> tuple[TensorPlan | ResourcePlan, ...]:
    if target is None:
        return tuple(objects)
    places = {item.name: place for place, item in enumerate(target.objects)}
    return tuple(sorted(objects, key=lambda item: places[item.name]))
