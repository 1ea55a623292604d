"""Every literal form with a stored case: the type that the vectors declare, the payload, and the numbers it means."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Params, Shape
from ninfer_core.schemes.literal import SPECS
from ninfer_core.schemes.profiles.model import Quantization
from tests.schemes.vectors import Case, cases

ROTATED = ("quarot_declared_uint4", "quarot_resolved_int4", "quip_sharp_literal")
CUSTOM = "custom_plugin_uint4"
_BLOCKS = {
    "mxfp4_literal": ("mxfp4", "seed_struct"),
    "mxfp6_e3m2_literal": ("mxfp6", "e3m2_seed_struct"),
    "mxfp6_e2m3_literal": ("mxfp6", "e2m3_seed_struct"),
    "nvfp4_literal": ("nvfp4", "seed_struct"),
}


@dataclass(frozen=True)
class Literal:
    """A form with one value of it; `declared` is empty where the vectors leave the type to the seed."""

    form: str
    shape: Shape
    params: Params
    payload: NDArray[np.uint8]
    expected: NDArray[Any]
    declared: dict[str, Any]

    @property
    def quantization(self) -> Quantization:
        """The profile of this shape and these parameters."""
        given = {item.name: item.default for item in SPECS[self.form].parameters}
        return SPECS[self.form].quantization(self.shape, given | self.params)


@cache
def literals() -> tuple[Literal, ...]:
    """All fifty."""
    found = [_literal(case) for case in cases("seed_literal")]
    for form, (scheme, name) in _BLOCKS.items():
        case = next(case for case in cases(scheme) if case.name == name)
        expected = case.arrays["expected"]
        found.append(Literal(form, expected.shape, {}, case.arrays["payload"], expected, {}))
    return tuple(found)


def _literal(case: Case) -> Literal:
    form = "binary_literal" if case.name == "binary_xnor" else case.name
    declared = {key: case.params[key] for key in ("types", "root", "dims")}
    declared["types"] = [_filled(type_, case) for type_ in declared["types"]]
    constants = {
        field["name"]: tuple(field["constant"]["values"])
        for field in declared["types"][declared["root"]].get("structure", [])
        if "constant" in field
    }
    # What the catalogue's example does not fix: vectors over channels, learned tables, a count, a smaller tile.
    params: dict[str, Any] = {}
    if form in ("int8_per_channel_vector_scale", "smoothquant_resolved"):
        params["scale"] = constants["scale"]
    if form == "smoothquant_resolved":
        params["smooth"] = constants["pre_rotation"]
    for table in ("codebook", "codebooks"):
        if any(item.name == table for item in SPECS[form].parameters):
            params[table] = constants[table]
    if form == "spqr_literal":
        params["outliers"] = 3
    if form == "block_tiled_float":
        params["tile"] = (4, 6)
    expected = case.arrays["expected"]
    return Literal(form, expected.shape, params, case.arrays["payload"], expected, declared)


def _filled(type_: dict[str, Any], case: Case) -> dict[str, Any]:
    """The type with the tables that the vectors keep beside it."""
    if "structure" not in type_:
        return type_
    fields = []
    for field in type_["structure"]:
        constant = field.get("constant")
        if constant is not None and isinstance(constant["values"], str):
            table = case.arrays.get(field["name"])
            if table is None:
                from ninfer_core.schemes.data import tables

                table = tables("ggml_iq_grids")["iq1_s"]
            values = table.astype(np.float64).ravel().tolist()
            field = {"name": field["name"], "constant": {**constant, "values": values}}
        fields.append(field)
    return {"structure": fields}


def words(values: NDArray[Any]) -> NDArray[np.uint32]:
    """Binary32 words, all NaN the same one: which NaN comes out of arithmetic is not part of the rules."""
    made = np.ascontiguousarray(values, np.float32).view(np.uint32).copy()
    made[np.isnan(values)] = 0x7FC00000
    return made
