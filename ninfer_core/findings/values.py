"""Codes of the checks `layout`, `values` and `statistics`: what stored words may be (check catalogue C)."""

from ninfer_core.findings.definition import Definition, advisory, error

_REWRITE = (
    "Convert the tensor again from its source; do not repair the file, the right word is not known from it."
)
_WRITER = (
    "A writer that packs other rules, a kernel that wrote past its rows, or bytes changed after writing."
)

VALUES: tuple[Definition, ...] = (
    error(
        "layout.padding_nonzero",
        "C3",
        "A lane past the last column, or a group wholly past it, is not zero.",
        "The encoder did not clear its buffer, or K was padded before the scale was taken.",
        _REWRITE,
    ),
    error(
        "layout.gap_nonzero",
        "C3",
        "A byte between two planes of a tensor is not zero.",
        "A writer that does not clear its output, or planes placed at other offsets than the layout's.",
        _REWRITE,
    ),
    error(
        "values.scale_invalid",
        "C1",
        "A group scale is negative, a negative zero, infinite or NaN.",
        _WRITER + " A scale that overflowed binary16 becomes infinity in encoders that do not refuse it.",
        _REWRITE,
        where="word: the stored binary16 word",
    ),
    error(
        "values.zero_scale_nonzero_code",
        "C1",
        "The scale of a group is zero but a code in it is not.",
        "The encoder flushed a tiny scale to zero, or scales and codes come from different rows.",
        _REWRITE,
        where="code: the first nonzero code",
    ),
    error(
        "values.code_out_of_range",
        "C2",
        "A W8 code byte is 0x80; -128 is outside the legal codes.",
        "The encoder clamps to -128 instead of -127.",
        _REWRITE,
        where="code: the stored code",
    ),
    error(
        "values.block_scale_invalid",
        "C5",
        "An NVFP4 block scale is negative, a negative zero or NaN.",
        _WRITER,
        _REWRITE,
        where="word: the stored E4M3FN word; row and group are logical, byte is the swizzled place",
    ),
    error(
        "values.divisor_invalid",
        "C5",
        "The NVFP4 weight divisor is not finite and positive.",
        "A global scale that was never set, or one whose reciprocal overflowed.",
        _REWRITE,
        where="word: the stored binary32 word",
    ),
    error(
        "values.fp8_code_invalid",
        "C6",
        "An FP8 code is one of the two NaN words 0x7f and 0xff.",
        "A source with NaN, or codes of another 8-bit float dialect.",
        _REWRITE,
        where="word: the stored E4M3FN word",
    ),
    error(
        "values.row_scale_invalid",
        "C6",
        "An FP8 row scale is negative, a negative zero, infinite or NaN.",
        _WRITER,
        _REWRITE,
        where="word: the stored BF16 word",
    ),
    error(
        "values.zero_row_scale_nonzero_code",
        "C6",
        "The scale of an FP8 row is zero but a code in it is neither 0x00 nor 0x80.",
        "The encoder flushed a tiny scale to zero, or scales and codes come from different rows.",
        _REWRITE,
        where="word: the first such code word",
    ),
    advisory(
        "statistics.all_zero",
        None,
        "Every value of the tensor is zero.",
        "Nearly always a writer that never wrote; sometimes a bias that was initialised and never trained.",
        "Compare with the source: `verify --source ... --recipe ...` fails where a stored word is not what the recipe "
        "makes of it. A source of values too small for the format becomes zeros rightly; its error metrics show that.",
    ),
    advisory(
        "statistics.not_finite",
        None,
        "A tensor of a safetensors file holds infinities or NaNs; in a `.ninfer` artifact, where every direct word is "
        "legal, the counts stand in the tensor's metrics instead.",
        "Diverged training, or a cast that overflowed.",
        "Look at the tensor before you quantize it: the canonical encoder refuses such a source.",
        where="nan, infinite: how many of each",
    ),
)
