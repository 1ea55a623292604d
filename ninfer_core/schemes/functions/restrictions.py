"""What may stand in a decoder or encoder: deterministic operators of the standard domain, and nothing from outside.

No captures, no functions of the model, no subgraphs, no external data (struct types 6). The types inside are then
inferred by ONNX itself, so that a body whose result is not what the function declares is refused without running it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import onnx
from onnx import defs

from ninfer_core.schemes.functions.inference import DoesNotType, Types
from ninfer_core.schemes.structs.faults import Faults

MAX_NODES: Final = 16_384  # a few seconds of judging; the largest decoders here have some hundreds
_STANDARD: Final = ("", "ai.onnx")
_CODE: Final = "decoder_restriction"
_GRAPHS: Final = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def check_body(
    function: onnx.FunctionProto,
    counts: Mapping[str, int],
    typed: bool,
    signature: str,
    faults: Faults,
    place: str,
) -> None:
    """The faults of the nodes; `signature` is the code for a body that does not fit the declared types.

    Without `typed`, that is without every input and the one output typed, no types are inferred.
    """
    if len(function.node) > MAX_NODES:
        faults.add(_CODE, place, f"more than {MAX_NODES:,} nodes.", MAX_NODES, len(function.node))
        return
    before = len(faults.findings)
    version = _opset(function, faults, place)
    if version is None:
        return
    known = set(function.input)
    for number, node in enumerate(function.node):
        _check_node(node, version, faults, f"{place}.node[{number}]")
        captured = [name for name in node.input if name and name not in known]
        if captured:
            message = "a node reads what the function does not have at that point."
            faults.add(_CODE, f"{place}.node[{number}]", message, "inputs and earlier results", captured[0])
        for name in node.output:
            if name and name in known:
                faults.add(signature, f"{place}.node[{number}]", "a result is made twice.", "one node", name)
            known.add(name)
    made = {name for node in function.node for name in node.output}
    for name in function.output:
        if name not in made:
            faults.add(signature, place, "the output is made by no node.", "a node", name)
    if typed and len(faults.findings) == before:
        _check_types(function, version, counts, signature, faults, place)


def _opset(function: onnx.FunctionProto, faults: Faults, place: str) -> int | None:
    """The version of the standard domain, if it is the one thing imported and exists."""
    imports = {item.domain: item.version for item in function.opset_import}
    foreign = [domain for domain in imports if domain not in _STANDARD]
    if foreign:
        message = "operators of another domain are imported."
        faults.add(_CODE, place, message, "the standard domain", foreign[0])
    standard = [version for domain, version in imports.items() if domain in _STANDARD]
    newest = defs.onnx_opset_version()
    if len(standard) != 1 or not 1 <= standard[0] <= newest:
        message = "no version of the standard domain that exists here."
        faults.add(_CODE, place, message, f"one of 1 to {newest}", standard)
        return None
    version: int = standard[0]
    return version


def _check_node(node: onnx.NodeProto, version: int, faults: Faults, place: str) -> None:
    if node.domain not in _STANDARD or node.overload:
        message = "an operator of another domain, or a function of the model."
        faults.add(_CODE, place, message, "the standard domain", f"{node.domain}:{node.op_type}")
        return
    try:
        schema = defs.get_schema(node.op_type, version, "")
    except defs.SchemaError:
        message = f"no standard operator of version {version}."
        faults.add(_CODE, place, message, "a standard operator", node.op_type)
        return
    determinism = schema.node_determinism  # type: ignore[attr-defined]  # the stub lacks it
    if schema.deprecated or determinism == defs.OpSchema.NodeDeterminism.NonDeterministic:
        what = "deprecated" if schema.deprecated else "not deterministic, or has a subgraph"
        faults.add(_CODE, place, f"the operator is {what}.", "another operator", node.op_type)
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            faults.add(_CODE, place, "an attribute refers to the caller.", "a value", attribute.name)
        if attribute.type in _GRAPHS or attribute.HasField("g") or attribute.graphs:
            faults.add(_CODE, place, "an attribute is a graph.", "no subgraph", attribute.name)
        if any(
            tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL
            for tensor in _tensors(attribute)
        ):
            faults.add(_CODE, place, "a tensor has external data.", "inline data", attribute.name)


def _tensors(attribute: onnx.AttributeProto) -> Iterator[onnx.TensorProto]:
    yield attribute.t
    yield from attribute.tensors
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        yield sparse.values
        yield sparse.indices


def _check_types(
    function: onnx.FunctionProto,
    version: int,
    counts: Mapping[str, int],
    signature: str,
    faults: Faults,
    place: str,
) -> None:
    declared = {}
    for info in function.value_info:
        bound = onnx.TypeProto()
        bound.CopyFrom(info.type)
        for dim in bound.tensor_type.shape.dim:
            if dim.dim_param in counts:
                dim.dim_value = counts[dim.dim_param]
        declared[info.name] = bound
    types = Types({name: declared[name] for name in function.input}, version)
    for number, node in enumerate(function.node):
        try:
            types.add(node)
        except DoesNotType as fault:
            faults.add(
                signature, f"{place}.node[{number}]", f"the node does not fit: {fault}.", "", node.op_type
            )
            return
    for name in function.output:
        if types.contradicts(name, declared[name]):
            faults.add(signature, place, "the body makes another type than is declared.", "", name)
