"""Codes of the check `recipe`: a recipe document on its own, before any source is read."""

from ninfer_core.findings.definition import Definition, error

_PATH = "path: JSON path in the document"
_EDIT = "Correct the recipe; its schema is `ninfer-recipe/1`."
_TYPING = "A typing mistake, or a document for another schema."


def _fault(
    slug: str, meaning: str, causes: str = _TYPING, remedy: str = _EDIT, where: str = _PATH
) -> Definition:
    return error(f"recipe.{slug}", None, meaning, causes, remedy, where)


_DOCUMENT = (
    _fault("schema_unknown", "The schema of the document is not one that this version reads."),
    _fault("member_missing", "An object of the document lacks a member."),
    _fault("member_unexpected", "An object of the document holds a member that the schema does not have."),
    _fault(
        "member_unsupported",
        "The schema has this member, but this version cannot act on it, and it may not be ignored.",
        "A recipe for a later version.",
        "Update ninfer-gate, or remove what the member asks for and say so in the rationale.",
    ),
    _fault("value_type", "A member has the wrong JSON type."),
    _fault("value_invalid", "A member has the right type but a value that the schema does not allow."),
    _fault(
        "integer_not_exact",
        "An integer is beyond 2^53 - 1, so the document has no canonical form and no identity.",
        "A number that belongs into a string.",
    ),
    _fault(
        "too_many_objects",
        "The rules expand to more objects or operations than the limit.",
        "A product of large sets.",
    ),
)

_RULES = (
    _fault("source_undefined", "A rule or resource reads a role that `sources` does not define."),
    _fault("input_undefined", "A resource reads an input that `inputs` does not define."),
    _fault("set_unknown", "A rule runs over a set that `sets` does not define."),
    _fault("set_empty", "A rule runs over an empty set, so it makes nothing."),
    _fault(
        "template_invalid", "A name holds a brace that is not part of `{variable}` with a variable of `each`."
    ),
    _fault(
        "object_duplicate",
        "Two rules or resources make an object of one name.",
        "A rule whose object template lacks a variable of `each`, or two overlapping rules.",
        where=_PATH + "; other: path of the first maker",
    ),
    _fault("operation_unknown", "The operation is not one that this version evaluates."),
    _fault("operation_shape", "An operation does not fit the shape of what it is applied to."),
    _fault("operation_dtype", "An operation does not take the dtype of what it is applied to."),
    _fault("dtype_unknown", "The dtype is not one of the safetensors format."),
    _fault(
        "format_missing",
        "A rule states no format, and no registered target states it instead.",
        "A recipe written for a registered target.",
        "State `format` in every rule.",
    ),
    _fault("format_unknown", "The format is not one of the nine persistent formats."),
    _fault("encoder_unknown", "The encoder is not one that this version runs."),
    _fault("encoder_format", "The encoder does not make the format of the rule."),
    _fault("encoder_dtype", "The encoder does not take the dtype of the value."),
    _fault(
        "implicit_conversion",
        "Words would be stored as a format of another type; a copy never converts.",
        "A `copy_words` rule whose format was changed, or a source in another dtype.",
        "Name the conversion: `cast` or `widen` in the value, or an encoder.",
        where=_PATH + "; objects: every object concerned",
    ),
    _fault(
        "shape_unsupported",
        "The layout of the format does not take the shape of the value.",
        "A grouped format asked for a tensor that is not a matrix.",
        "Reshape the value in the recipe, or choose another format for these objects.",
        where=_PATH + "; objects: every object concerned",
    ),
    _fault("axes_rank", "`axes` does not name as many axes as the value has dimensions."),
)

_BINDING = (
    _fault(
        "role_missing",
        "The recipe reads a source role that was not given.",
        "A missing argument.",
        "Give a checkpoint for every role of the recipe.",
        where="role",
    ),
    _fault(
        "role_unknown",
        "A source was given under a role that the recipe does not have.",
        "A misspelled role.",
        "Use the roles of the recipe.",
        where="role",
    ),
    _fault(
        "input_missing",
        "The recipe reads an input file that was not given.",
        "A missing argument.",
        "Give a file for every input of the recipe.",
        where="input",
    ),
    _fault(
        "input_unknown",
        "A file was given under an input name that the recipe does not have.",
        "A misspelled name.",
        "Use the input names of the recipe.",
        where="input",
    ),
)

RECIPE: tuple[Definition, ...] = (*_DOCUMENT, *_RULES, *_BINDING)
