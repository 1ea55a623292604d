"""What can be wrong with the text of any document of ours, whatever its schema says."""

from collections.abc import Callable

from ninfer_core.findings.definition import Definition

TYPING = "A typing mistake, or a document for another schema."
PATH = "path: JSON path in the document"


def schema_faults(fault: Callable[..., Definition], too_many: str) -> tuple[Definition, ...]:
    """The codes that recipes and targets share, by slug; `fault(slug, meaning[, causes])` names the kind of document."""
    return (
        fault("schema_unknown", "The schema of the document is not one that this version reads."),
        fault("member_missing", "An object of the document lacks a member."),
        fault("member_unexpected", "An object of the document holds a member that the schema does not have."),
        fault("value_type", "A member has the wrong JSON type."),
        fault("value_invalid", "A member has the right type but a value that the schema does not allow."),
        fault(
            "integer_not_exact",
            "An integer is beyond 2^53 - 1, so the document has no canonical form and no identity.",
            "A number that belongs into a string.",
        ),
        fault("too_many_objects", too_many, "A product of large sets."),
    )
