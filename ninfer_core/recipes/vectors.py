"""Operations that convert words by name, and those that make a word or a vector of a rule of their own."""

from dataclasses import replace
from math import prod
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Fields
from ninfer_core.recipes.bundles import BundleTree, PartTree, Tree
from ninfer_core.recipes.moves import MAX_IDS
from ninfer_core.recipes.nodes import Cast, EqualScalar, Invert, RankedTokenIds, Tensor, Widen
from ninfer_core.recipes.reading import Reader, misfit, plain_operand
from ninfer_core.sources.json_text import listed

CASTS: Final = {"BF16": ("F32", "F16"), "I32": ("I64",)}  # result dtype: operand dtypes


def read_widen(reader: Reader, fields: Fields) -> Widen | None:
    """`widen`: BF16 to FP32, exact."""
    to, of = fields.choice("to", "FP32"), plain_operand(reader, fields)
    if to is None or of is None:
        return None
    if of.dtype != "BF16":
        misfit(fields, "operation_dtype", f"widen takes BF16, not {of.dtype}.", "BF16", of.dtype)
        return None
    return Widen(of, of.shape, "F32")


def read_cast(reader: Reader, fields: Fields) -> Cast | None:
    """`cast`: into a narrower type, or a refusal with its place."""
    to, of = fields.choice("to", *CASTS), plain_operand(reader, fields)
    if to is None or of is None:
        return None
    if of.dtype not in CASTS[to]:
        expected = " or ".join(CASTS[to])
        message = f"cast to {to} takes {expected}, not {of.dtype}."
        misfit(fields, "operation_dtype", message, expected, of.dtype)
        return None
    return Cast(of, of.shape, to)


def read_invert(reader: Reader, fields: Fields) -> Tree | None:
    """`invert`: a multiplier becomes the divisor that stands for it, alone or inside an NVFP4 matrix."""
    of = reader.operand(fields)
    if of is None:
        return None
    if isinstance(of, BundleTree):
        parts = tuple(_inverted(part) for part in of.parts)
        known = tuple(part for part in parts if part is not None)
        if len(known) != len(parts):
            message = "only the global words of an NVFP4 matrix can be inverted, and only once."
            misfit(fields, "operation_dtype", message, "an nvfp4_matrix", f"a {of.kind} matrix")
            return None
        return replace(of, parts=known)
    if of.dtype != "F32" or prod(of.shape) != 1:
        found = f"{of.dtype} {list(of.shape)}"
        message = f"invert takes one word of F32, not {found}."
        misfit(fields, "operation_dtype", message, "F32 of one element, or an nvfp4_matrix", found)
        return None
    return Invert(of, of.shape, "F32")


def _inverted(part: PartTree) -> PartTree | None:
    if part.divisor is None or isinstance(part.divisor, Invert):
        return None
    return replace(part, divisor=Invert(part.divisor, part.divisor.shape, "F32"))


def read_equal_scalar(reader: Reader, fields: Fields) -> EqualScalar | None:
    """`equal_scalar`: the word that all named tensors hold."""
    role, names = reader.role(fields), fields.texts("names")
    if names is not None and not names:
        fields.wrong_value("names", "at least one name")
        return None
    at = fields.path("names")
    known = [reader.template(name, (*at, index)) for index, name in enumerate(names or ())]
    sound = [name for name in known if name is not None]
    if role is None or names is None or len(sound) != len(names):
        return None
    return EqualScalar(tuple(Tensor(role, name, (1,), "F32", scalar=True) for name in sound), (), "F32")


def read_ranked_token_ids(reader: Reader, fields: Fields) -> RankedTokenIds | None:
    """`ranked_token_ids`: the shortlist of a draft head (targets, section 4)."""
    width, candidates = fields.integer("row_width", 1), fields.integer("candidates", 1)
    count, resource = fields.integer("count", 1), fields.text("special_ids_from")
    ranking = _ranking(reader, fields, width)
    sound = True
    if candidates is not None and candidates > MAX_IDS:
        # Their counts are in memory while they are sorted, and ids are words of I32.
        fields.wrong_value("candidates", f"at most {MAX_IDS:,} ids")
        sound = False
    if resource is not None and resource not in reader.known.resources:
        shown, known = strict_json.show(resource), listed(reader.known.resources)
        message = f"no resource makes {shown}."
        reader.faults.add("resource_undefined", fields.path("special_ids_from"), message, known, shown)
        sound = False
    if width is not None and candidates is not None and candidates > width:
        message = f"{candidates:,} candidates in rows of {width:,} counts."
        misfit(fields, "operation_shape", message, f"at most {width:,}", f"{candidates:,}")
        sound = False
    if count is not None and (count > MAX_IDS or (candidates is not None and count > candidates)):
        limit = min(MAX_IDS, candidates or MAX_IDS)
        misfit(fields, "operation_shape", f"{count:,} ids.", f"at most {limit:,}", f"{count:,}")
        sound = False
    if ranking is None or width is None or candidates is None or count is None or resource is None:
        return None
    return RankedTokenIds(ranking, width, candidates, resource, (count,), "I32") if sound else None


def _ranking(reader: Reader, fields: Fields, width: int | None) -> str | None:
    name = fields.text("ranking")
    if name is None:
        return None
    path, known = fields.path("ranking"), reader.known.inputs
    shown = strict_json.show(name)
    if name not in known:
        reader.faults.add("input_undefined", path, f"no input {shown}.", listed(known), shown)
        return None
    given = known[name]
    if given is None:
        return None  # a finding already
    if given.ranking is None:
        reader.faults.add(
            "value_invalid", path, f"the input {shown} holds no ranking.", "kind i64-le-rows", "file"
        )
        return None
    if width is not None and width != given.ranking.row_width:
        stated = given.ranking.row_width
        message = f"rows of {width:,} counts of an input with rows of {stated:,}."
        misfit(fields, "operation_shape", message, stated, width)
        return None
    return name
