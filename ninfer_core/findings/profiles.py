"""Codes about descriptive profiles of quantizations, and about struct types that claim to be one of them."""

from ninfer_core.findings.definition import Definition, error

_WRONG = "A profile that was written by hand, or one that was read from a declaration of another tool."
_WHERE = (
    "declaration: the name of the profile's declaration; part: the parameter at fault, where there is one"
)


def _fault(code: str, meaning: str, remedy: str, causes: str = _WRONG, where: str = _WHERE) -> Definition:
    return error(f"profile.{code}", None, meaning, causes, remedy, where)


PROFILES: tuple[Definition, ...] = (
    _fault(
        "count_not_concrete",
        "A count of a profile is a name, negative or no integer; a struct type has concrete counts only.",
        "Replace the name by the number it stands for.",
    ),
    _fault(
        "name_taken",
        "Two different declarations of one profile have one name, or a declaration has none.",
        "Give each level of the profile a name of its own.",
    ),
    _fault(
        "storage_type",
        "The storage type is no scalar that codes can be stored in, or the leaf of the values is not as wide as the codes.",
        "Use a scalar of the payload, and a leaf of exactly `bits` bits, or bytes.",
    ),
    _fault(
        "bits_out_of_range",
        "Codes of a width that the profile does not have.",
        "State the width of one code in bits.",
    ),
    _fault(
        "scale_illegal",
        "A scale is NaN, infinite, beyond binary32 or of a type that no scale has, or its vector does not fit the axis.",
        "Give one finite scale, one for each index of the axis, or a floating-point field of the payload.",
    ),
    _fault(
        "zero_point_symmetric",
        "A symmetric quantization has a zero point other than 0.",
        "Set the zero point to 0 or `symmetric` to false.",
    ),
    _fault(
        "zero_point_out_of_range",
        "A zero point that binary32 does not hold exactly, or a vector of them that does not fit the axis.",
        "Give one zero point, or one for each index of the axis.",
    ),
    _fault(
        "axis_out_of_range",
        "The axis of a quantization is none of the tensor's, and not -1.",
        "Name an axis of the logical shape, or -1 for the whole tensor.",
    ),
    _fault(
        "codebook_size",
        "The table's length is not codebooks x entries x values of an entry, or a number in it is not finite.",
        "Give the whole table, codebook after codebook, entry after entry.",
    ),
    _fault(
        "vector_size",
        "An entry of the codebook has no values, or the logical size is no multiple of an entry's.",
        "State how many values one entry of the codebook has.",
    ),
    _fault(
        "index_packing",
        "Indices whose packing is not stated, or whose parameters contradict one another.",
        "State `index_bits`, or how many digits are packed into how many bytes.",
    ),
    _fault(
        "base_n_capacity",
        "So many digits in this base do not fit into so many bytes.",
        "Pack fewer digits, or use more bytes.",
    ),
    _fault(
        "float_layout",
        "A small float of widths, bias or special values that cannot be, or that its leaf type does not have.",
        "State sign, exponent and mantissa bits and a bias under which binary32 holds every value.",
    ),
    _fault(
        "packing_disagrees",
        "`packed_count` values of the stated width do not take `packed_bytes` bytes.",
        "State a count and a number of bytes that agree with the widths.",
    ),
    _fault(
        "outliers_illegal",
        "Outliers of a type that holds no numbers, or more of them than the tensor has values.",
        "State a floating-point type and the count of outliers.",
    ),
    _fault(
        "log_illegal",
        "A base that is not above 0 and finite, equal to 1, or an offset that is not finite.",
        "State the base and the offset of the exponent.",
    ),
    _fault(
        "operator_missing",
        "A custom quantization that does not name its operators.",
        "Name `quantize_op` and `dequantize_op`.",
    ),
    _fault(
        "tile_shape",
        "The tile's shape has a negative entry, or not one entry for each axis that is cut.",
        "Give one size for each axis, 0 for the whole axis; one size alone where no axes are named.",
    ),
    _fault(
        "axes_invalid",
        "The axes of a tiling repeat, or are none of the tensor's.",
        "Name different axes of the logical shape.",
    ),
    _fault(
        "perm_invalid",
        "`perm` is no permutation of the axes that are cut.",
        "Give each number from 0 to the number of axes minus one, once.",
    ),
    _fault(
        "elements_illegal",
        "A tiling without a quantization of its tiles, or with more of them than tiles.",
        "Give one quantization, or a list that is repeated over the tiles.",
    ),
    _fault(
        "fields_overlap",
        "Two fields of a block share bits.",
        "Correct the bit offsets.",
    ),
    _fault(
        "field_illegal",
        "A field of a block of a width, count, offset or type that cannot be, or a role that stands twice.",
        "Correct the field; each role stands once.",
    ),
    _fault(
        "bytes_per_block",
        "The fields and the padding of a block do not take the stated number of bytes.",
        "State the bytes of a whole block; what no field covers is padding.",
    ),
    _fault(
        "block_size",
        "The values that a block's fields give are not as many as the block is said to have.",
        "Compare the count of codes, the values of an entry, and the block size.",
    ),
    _fault(
        "index_formula_missing",
        "A block with a codebook does not say how its fields make an index.",
        "Give the index formula.",
    ),
    _fault(
        "codebook_vector_size",
        "A block's codebook has entries of no values.",
        "State how many values an entry has.",
    ),
    _fault(
        "index_field_absent",
        "The index formula names a field that the block does not have.",
        "Name fields of the block.",
    ),
    _fault(
        "index_field_counts",
        "Fields of the index formula have different counts.",
        "Give each of them one element for each index.",
    ),
    _fault(
        "index_not_integer",
        "A field of the index formula holds numbers that are no integers.",
        "Use integer fields in the formula.",
    ),
    _fault(
        "index_out_of_range",
        "The index formula can only point outside of the codebook.",
        "Correct the multipliers.",
    ),
    _fault(
        "scatter_illegal",
        "Groups, vectors and stride of a scatter do not place every value once.",
        "Group size = vector size x stride, and blocks of whole groups.",
    ),
    _fault(
        "rotation_illegal",
        "A rotation whose dimensions do not fit the tensor or the matrix, or a Hadamard size that is no power of two.",
        "State the dimensions of the rotation; a plain one has its matrix, a Hadamard one none.",
    ),
    _fault(
        "metadata_illegal",
        "A key of the metadata belongs to a parameter that the translation keeps there.",
        "Use another key.",
    ),
    _fault(
        "redundant_differs",
        "A constant states again what the structure or another constant says, and says something else.",
        "Correct the constant or the structure; which of them is right only the source of the file knows.",
    ),
    _fault(
        "structure_unknown",
        "A struct type is not the translation of any profile.",
        "Use it as a structure without a profile: its leaves and its own decoder stay usable.",
    ),
    _fault(
        "capacity",
        "The declared type is not the one of this logical shape: it holds too few values, or more than padding explains.",
        "Give the shape of the tensor before it was quantized.",
        "A shape of another tensor, or counts of the type that were changed.",
    ),
    _fault(
        "decoded_length",
        "The number of decoded values is not the product of the logical dimensions.",
        "Give the shape of the tensor before it was quantized.",
    ),
    _fault(
        "decoder_absent",
        "The numbers of a custom quantization are known to its operators alone.",
        "Decode with the operators that the metadata names; structure and size are checked without them.",
    ),
)
