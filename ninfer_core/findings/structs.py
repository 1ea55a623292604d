"""Codes about struct types and their values: section 8 of the specification of struct types, and what its text adds."""

from ninfer_core.findings.definition import Definition, error

_EDITED = "A type that was written by hand, or a tool that writes other things than it declares."
_WHERE = "path: the place in the document"
_LIMIT = "A generated type, or a document made to exhaust memory."
_RAISE = "Use fewer; where the type is meant so, raise the limit in the settings."
_FUNCTION = "A function exported from a model, or one written for another version of the type."


def _fault(code: str, meaning: str, causes: str, remedy: str, where: str = _WHERE) -> Definition:
    return error(f"struct.{code}", None, meaning, causes, remedy, where)


def _limit(code: str, what: str) -> Definition:
    return _fault(
        f"limit_{code}",
        f"{what} than the limit.",
        _LIMIT,
        _RAISE,
        _WHERE + "; limit: the largest number allowed",
    )


STRUCTS: tuple[Definition, ...] = (
    _fault(
        "member_missing",
        "An object of the document lacks a member that it must have.",
        _EDITED,
        "Add the member; docs/structs.md describes the document.",
        "path: the place in the document; member: its name",
    ),
    _fault(
        "member_unexpected",
        "An object of the document has a member that it cannot have.",
        _EDITED,
        "Remove the member or correct its spelling; objects are closed.",
        "path: the place in the document; member: its name",
    ),
    _fault(
        "value_type",
        "A member has the wrong JSON type.",
        _EDITED,
        "Write the member as docs/structs.md describes it.",
        "path: the place in the document",
    ),
    _fault(
        "value_invalid",
        "A member has the right type and a value that it cannot have, such as a count that is no unsigned 64-bit integer.",
        _EDITED,
        "Correct the value.",
        "path: the place in the document",
    ),
    _fault(
        "document_malformed",
        "The bytes are no document that can be read: broken protobuf, or a message of another kind.",
        "A damaged file, or a file of another kind.",
        "Give a document as docs/structs.md describes it.",
        "path: the place in the document",
    ),
    _fault(
        "bad_type_sentinel",
        "A value selects its type in no valid way: a number below -1, -1 without an inline type, or both a number and an "
        "inline type.",
        _EDITED,
        "Give the index of a declaration, or -1 and the type itself.",
    ),
    _fault(
        "type_index_out_of_range",
        "An index names no declaration of the model.",
        "Models put together without renumbering, or a declaration that was removed.",
        "Renumber the references; an index is local to its model.",
    ),
    _fault(
        "bad_root_kind",
        "A declaration is no array, packed array or structure: it refers to another one, is a scalar, or is not set.",
        _EDITED,
        "Declare the kind in place; wrap a scalar in a structure.",
    ),
    _fault(
        "type_cycle",
        "A declaration contains itself, so it has no size.",
        _EDITED,
        "Break the cycle: a payload cannot hold itself.",
    ),
    _fault(
        "missing_name",
        "A field, a component or a declaration of the model has no name.",
        _EDITED,
        "Name it: leaves are found by the names on their way.",
    ),
    _fault(
        "duplicate_name",
        "A name stands twice in one structure, packed array or model, or two leaves end up with one path.",
        _EDITED,
        "Rename one of them.",
        _WHERE + "; name: the name",
    ),
    _fault(
        "field_content",
        "A field has neither a type nor a constant, or both.",
        _EDITED,
        "Give exactly one of the two.",
    ),
    _fault(
        "bad_leaf_type",
        "A scalar is of no type that a payload can hold, or has a shape of its own.",
        "Text or complex numbers in a payload, or a tensor where an array is meant.",
        "Use a scalar type of the list in docs/structs.md, and an array for each dimension.",
    ),
    _fault(
        "bad_component_width",
        "A component of a packed array is not 1 to 64 bits wide, or there is no component.",
        _EDITED,
        "Give each component its width in bits, from 1 to 64.",
    ),
    _fault(
        "bad_constant",
        "A constant is no inline tensor of a known type whose data fills its dimensions exactly.",
        "External data, symbolic dimensions, or data cut off.",
        "Store the tensor inline with concrete dimensions.",
    ),
    _fault(
        "static_form_extras",
        "A type inside another one, or the type of a graph value, carries what only a declaration may: a decoder, an "
        "encoder, a name, parameters or metadata.",
        _EDITED,
        "Move it to the declaration in the model and refer to that by its index.",
    ),
    _fault(
        "parametric_nested",
        "A declaration with parameters is used inside another one.",
        "A type that was written for values, used as an element.",
        "Write the inner type in place, where it uses the parameters of the root.",
    ),
    _fault(
        "dims_index_out_of_range",
        "A count names a parameter that its declaration does not have.",
        _EDITED,
        "List the parameter, or correct the index.",
    ),
    _fault(
        "unused_dimension_parameter",
        "A parameter drives no count.",
        "A count that was replaced by a number.",
        "Remove the parameter and its value.",
    ),
    _fault(
        "dims_count_mismatch",
        "A value does not give exactly one count for each parameter of its type.",
        "A value of another type, or counts left out.",
        "Give as many `dims` as the type has parameters; none for a type without.",
    ),
    _fault(
        "size_overflow",
        "A size in bits does not fit an unsigned 64-bit integer.",
        "Counts that are not meant, or a document made to overflow a reader.",
        "Correct the counts.",
    ),
    _fault(
        "size_not_byte_multiple",
        "The bits of a value do not fill whole bytes.",
        "A count that does not fit the width of the elements.",
        "Declare the padding as a field, for instance as a packed array of one component.",
    ),
    _fault(
        "payload_source",
        "The payload is not given exactly once: inline and external, nowhere, or external without a length.",
        _EDITED,
        "Give `raw_data`, or `external_data` with a numeric `length`.",
    ),
    _fault(
        "payload_size_mismatch",
        "The payload has not the size that the type and the counts give.",
        "A payload cut off or extended, or counts of another value.",
        "Compare the counts with the payload; the payload never says them.",
    ),
    _fault(
        "decoder_signature",
        "The decoder's inputs are not the leaves in their order and types, or its output is not one typed tensor.",
        _FUNCTION,
        "Give the decoder one typed input for each leaf, constants included, and one typed output.",
    ),
    _fault(
        "decoder_restriction",
        "A decoder or encoder uses what none may: operators of other domains, random numbers, subgraphs, functions of the "
        "model, external data.",
        _FUNCTION,
        "Use deterministic standard operators; give tables as constants of the type.",
    ),
    _fault(
        "encoder_signature",
        "The encoder does not take the decoder's output and give the payload's bytes as one UINT8 tensor.",
        _FUNCTION,
        "Give the encoder one input of the decoder's output type and one UINT8 output of the payload's size.",
    ),
    _fault(
        "expectation_differs",
        "A size, a leaf or an element is not what the document expects of it.",
        "A case written for another type, or one with a mistake of its own.",
        "Compare with the specification, and correct the case or the type.",
        "path: the member that states it",
    ),
    _fault(
        "value_type_missing",
        "A sequence or an optional of structured values does not say the type of its elements.",
        _EDITED,
        "Give `value_type`; it makes the container readable on its own.",
    ),
    _fault(
        "value_type_disagrees",
        "A container states another element type than the graph gives it.",
        "A container written for another model.",
        "Make both the same reference, or both unconstrained.",
    ),
    _fault(
        "static_type_mismatch",
        "A value is of another declaration or kind than its static type accepts.",
        "A page of another format in a container that holds one format only.",
        "Use a value of that declaration, or leave the static type unconstrained.",
    ),
    _fault(
        "map_keys",
        "The keys of a map are not as many as its values, are not all of its key type, or one stands twice.",
        _EDITED,
        "Give each value one key of its own.",
    ),
    _limit("nesting", "Types are nested deeper"),
    _limit("fields", "A structure has more fields"),
    _limit("components", "A packed array has more components"),
    _limit("declarations", "A root reaches more declarations"),
    _limit("constant_bytes", "The constants of a root take more bytes"),
    _limit("leaves", "A root has more leaves"),
    _limit("dimension_parameters", "A declaration has more parameters"),
    _limit("values", "A view would unpack more scalar values, or have more dimensions,"),
    _fault(
        "profile_tree_child",
        "A node of a decision tree names a child that is none of its nodes.",
        "Trees of different sizes mixed up, or a payload changed after writing.",
        "Children are -1 or the index of a node.",
        "leaf: the path of the leaf; index: the first node at fault; word: the child; limit: the number of nodes",
    ),
    _fault(
        "profile_kv_signature",
        "The page types of one cache decode to different types or shapes, or one has no decoder.",
        "Pages of models or configurations that do not belong together.",
        "Give all page types of a cache decoders with one and the same output.",
    ),
)
