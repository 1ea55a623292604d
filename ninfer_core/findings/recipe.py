"""Codes of the check `recipe`: a recipe document on its own, before any source is read."""

from ninfer_core.findings.definition import Definition, advisory, error
from ninfer_core.findings.documents import PATH, TYPING, schema_faults

_EDIT = "Correct the recipe; its schema is `ninfer-recipe/1`."


def _fault(
    slug: str, meaning: str, causes: str = TYPING, remedy: str = _EDIT, where: str = PATH
) -> Definition:
    return error(f"recipe.{slug}", None, meaning, causes, remedy, where)


_DOCUMENT = schema_faults(_fault, "The rules expand to more objects or operations than the limit.")

_RULES = (
    _fault("source_undefined", "A rule or resource reads a role that `sources` does not define."),
    _fault("input_undefined", "A rule or resource reads an input that `inputs` does not define."),
    _fault("resource_undefined", "A rule or restriction reads an object that no resource makes."),
    _fault(
        "ids_undefined",
        "`gather_rows` takes its row numbers from an object that no other rule makes as a vector of I32.",
        "A misspelled name, or ids that are gathered themselves.",
    ),
    _fault("set_unknown", "A rule runs over a set that `sets` does not define."),
    _fault("set_empty", "A rule runs over an empty set, so it makes nothing."),
    _fault(
        "template_invalid", "A name holds a brace that is not part of `{variable}` with a variable of `each`."
    ),
    _fault(
        "object_duplicate",
        "Two rules or resources, or one rule again and again, make an object of one name.",
        "A rule whose object template lacks a variable of `each`, or two overlapping rules.",
        where=PATH + "; other: path of the first maker; objects: every name concerned",
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
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "shape_unsupported",
        "The layout of the format does not take the shape of the value.",
        "A grouped format asked for a tensor that is not a matrix.",
        "Reshape the value in the recipe, or choose another format for these objects.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault("axes_rank", "`axes` does not name as many axes as the value has dimensions."),
)

_CHECKS = (
    _fault(
        "scope_empty",
        "A restriction names objects by a glob that covers none, so what was meant is not restricted.",
        "A misspelled object name, or a rule that was removed.",
        where=PATH + " of the scope",
    ),
    _fault(
        "restriction_unsuitable",
        "A restriction covers objects of a format that its rule says nothing of, so they would never be judged.",
        "A scope that is too wide, or an object whose format was changed.",
        "Narrow the scope, for example by `format`, or use another rule.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "count_differs",
        "A cross check counts another number of tensors than the document names or reads.",
        "A rule or a name that was added or removed without its count.",
    ),
    _fault(
        "source_contradiction",
        "Two rules read one source tensor with different shapes or dtypes, and no checkpoint can be both.",
        "A rule that was copied and only half changed.",
        where=PATH + "; role, tensor, other: path of the rule that read it first",
    ),
    _fault(
        "unused_source_read",
        "`unused_sources` names tensors as left out that rules read.",
        "A rule that was added later, or a name with `*` that is too wide.",
        where=PATH + "; objects: the tensors",
    ),
    advisory(
        "recipe.checks_differ",
        None,
        "The hashes or counts under `checks` are not those of the document as it is read here.",
        "A recipe that was edited without its `checks`, or a reader that understands it otherwise.",
        "Compare the expanded rules with the author's; then state the new hashes.",
        where="member, and role where it belongs to one",
    ),
)

_CONTRACT = (
    _fault(
        "identity_differs",
        "The recipe makes another identity than the target that it was given.",
        "A target of another model or assignment.",
        "Give the target of the recipe's identity, or correct the identity.",
    ),
    _fault(
        "object_without_rule",
        "The target has objects that nothing in the recipe makes.",
        "A recipe for another revision of the contract, or an optional bundle that is made in part.",
        "Write a rule for every object; of an optional bundle make all objects or none.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "object_not_in_target",
        "The recipe makes objects that the target does not have.",
        "A recipe for another revision of the contract, or a misspelled object name.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "format_differs",
        "The recipe makes objects in another format or kind than the target states.",
        "An assignment that is meant for another `weights_id`.",
        "Leave `format` out, or choose the target of this assignment.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "shape_differs",
        "The recipe makes objects of another shape than the target states.",
        "A recipe for another model size, or a missing move.",
        where=PATH + "; objects: every object concerned",
    ),
    _fault(
        "producer_foreign",
        "Objects are made by an encoder that is not ours, so this program cannot write them.",
        "A recipe that documents an artifact which another tool wrote.",
        "Verify such an artifact; to convert, give these rules an encoder of the list.",
        where="objects: every object concerned; producers",
    ),
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

RECIPE: tuple[Definition, ...] = (*_DOCUMENT, *_RULES, *_CHECKS, *_CONTRACT, *_BINDING)
