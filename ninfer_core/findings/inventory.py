"""Codes of the check `inventory` (check catalogue B): an artifact against the closed list of its target."""

from ninfer_core.findings.definition import Definition, advisory, error

_OTHER_FORM = "An artifact of another release or fork under the same identity, or an incomplete conversion."
_CONVERT = "Convert again for this target, or verify against the target that the artifact was made for."
_ORDER = "Harmless for loading: the container rules let a reader ignore it."

INVENTORY: tuple[Definition, ...] = (
    error(
        "inventory.identity_differs",
        "B1",
        "The identity in the file is not that of the target.",
        "The target of another model or of another storage assignment was asked for, or a renamed artifact.",
        "Ask for the target that the file names, or correct the identity and convert again.",
    ),
    advisory(
        "inventory.revision_not_stated",
        None,
        "The contract is not stated for the framing revision of this file.",
        "A file of revision 3, which has no identity and orders objects as it likes, or a target for revision 2 alone.",
        "Names, kinds, shapes, formats and layouts were compared; identity, order and placement only where the "
        "revision has them. For a canonical file convert to a revision that the contract is stated for.",
        where="revision; stated: the revisions of the contract; not_judged: what `--canonical` asked for in vain",
    ),
    advisory(
        "inventory.claim_differs",
        None,
        "The provenance in a file of revision 3 claims another identity than that of the target.",
        "A target of another model with the same inventory, or a claim that was edited. Claims are read and never "
        "taken as proof, so nothing fails for them.",
        "Ask for the target that the file claims, or find out where the claim comes from.",
        where="path: of the member",
    ),
    error(
        "inventory.object_missing",
        "B2",
        "An object of the target is not in the artifact.",
        _OTHER_FORM,
        _CONVERT,
        where="renamed: the unexpected object of the same kind, shape and format, where there is exactly one",
    ),
    error(
        "inventory.object_unexpected",
        "B2",
        "The artifact holds an object that the target does not list.",
        _OTHER_FORM,
        _CONVERT,
        where="renamed: the missing object of the same kind, shape and format, where there is exactly one",
    ),
    error(
        "inventory.bundle_partial",
        "B2",
        "Only some objects of an optional bundle are there; a bundle is all or none.",
        "An incomplete conversion, or objects removed one by one.",
        "Add the missing objects, or leave out the whole bundle.",
        where="bundle; missing, present: names",
    ),
    error(
        "inventory.object_differs",
        "B3",
        "Kind, shape, format or layout of an object are not those of the target.",
        "A transposed or relabelled tensor, or an artifact of another release.",
        _CONVERT,
        where="differs: which of kind, shape, format, layout",
    ),
    error(
        "inventory.encoding_differs",
        "B4",
        "The encoding of a resource is not that of the target.",
        "A writer that stores resources in another way.",
        _CONVERT,
    ),
    Definition(
        "inventory.order_not_canonical",
        "B5",
        "advisory",
        "The objects are not in the order of the canonical writer.",
        "Another writer, or a recipe of one's own without its target: its objects are written in the order of its "
        "rules. " + _ORDER,
        "Nothing, unless a canonical file is wanted: then convert again with `convert --target`, which writes the "
        "target's order whatever the order of the rules.",
        where="position: in the list of objects; expected: the name that stands there in a canonical file",
        severity_by="`--canonical` makes it an error",
    ),
    Definition(
        "inventory.placement_not_canonical",
        "B6",
        "advisory",
        "Slack, nonzero bytes or trailing bytes where the canonical writer leaves none.",
        "Another writer, data appended to the file, or old buffer contents in gaps. " + _ORDER,
        "Nothing, unless a canonical file is wanted: then convert again.",
        where="kind: slack, trailing or nonzero; bytes: length of the stretch; file",
        severity_by="`--canonical` makes it an error",
    ),
    error(
        "inventory.object_unbound",
        "B7",
        "A file of revision 3 binds the name of a tensor to something else or to a part of it, or does not bind it "
        "at all.",
        "An edit of the directory, or bindings of another release. An object needs no binding of its own where views "
        "and aliases of the target are bound that hold every element of it.",
        _CONVERT,
        where="path: of the binding",
    ),
    error(
        "inventory.view_unbound",
        "B7",
        "A view of the target does not bind: its rows are not rows of the stored parent, or revision 3 binds the role "
        "to something else.",
        "A parent fused in another way, or bindings of another release.",
        _CONVERT,
        where="view; parent",
    ),
    error(
        "inventory.alias_unbound",
        "B7",
        "An alias of the target does not bind: an object, its axes or its rows are not as the role needs them.",
        "A tied object stored in another form, or bindings of another release.",
        _CONVERT,
        where="role; objects",
    ),
)
