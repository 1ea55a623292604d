"""Types inside of a function, inferred node by node with ONNX's own rules, so that work and memory stay bounded.

ONNX's inference of whole models follows shapes wherever they lead: two dozen nodes that double a rank or a shape tensor
take all memory. Here a rank is limited after every node, and only small constants are followed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import onnx
from onnx import checker, defs, helper, shape_inference

MAX_RANK: Final = 32
_FOLLOWED: Final = 1024  # bytes of a constant whose contents may decide a shape
# Text that the C++ library raises reaches Python as several kinds of errors.
_REFUSALS: Final = (
    shape_inference.InferenceError,
    checker.ValidationError,
    RuntimeError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
)


class DoesNotType(Exception):
    """A node whose operands or attributes its operator does not take, or a result of too many dimensions."""


class Types:
    """What is known of the values of a function of the standard domain, version `version`."""

    def __init__(self, inputs: Mapping[str, onnx.TypeProto], version: int) -> None:
        self._known = dict(inputs)
        self._constants: dict[str, onnx.TensorProto] = {}
        self._version = version
        self._imports = [helper.make_opsetid("", version)]
        self._context = checker.C.CheckerContext()
        self._context.ir_version = helper.find_min_ir_version_for(self._imports)
        self._context.opset_imports = {"": version}

    def add(self, node: onnx.NodeProto) -> None:
        """Infer the results of the next node. Raises: DoesNotType."""
        schema = defs.get_schema(node.op_type, self._version, "")
        operands = {name: self._known.get(name) for name in node.input if name}
        try:
            checker.check_node(node, self._context)
            known = {name: type_ for name, type_ in operands.items() if type_ is not None}
            _check_elements(schema, node, known)
            if len(known) < len(operands):
                return  # what follows from something unknown is unknown
            constants = {name: self._constants[name] for name in operands if name in self._constants}
            results = shape_inference.infer_node_outputs(
                schema, node, known, constants, opset_imports=self._imports
            )
        except _REFUSALS as fault:
            raise DoesNotType(" ".join(str(fault).split())[:300]) from fault
        for name, type_ in results.items():
            if len(type_.tensor_type.shape.dim) > MAX_RANK:
                raise DoesNotType(f"{name} has more than {MAX_RANK} dimensions")
            self._known[name] = type_
        self._keep_constant(node)

    def contradicts(self, name: str, declared: onnx.TypeProto) -> bool:
        """Whether a value is known to be of another type than the declared one, a tensor of concrete dimensions."""
        found = self._known.get(name)
        if found is None or not found.WhichOneof("value"):
            return False
        if not found.HasField("tensor_type"):
            return True
        tensor, wanted = found.tensor_type, declared.tensor_type
        if tensor.elem_type not in (onnx.TensorProto.UNDEFINED, wanted.elem_type):
            return True
        if not tensor.HasField("shape"):
            return False
        sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        stated = [dim.dim_value for dim in wanted.shape.dim]
        return len(sizes) != len(stated) or any(
            size not in (None, n) for size, n in zip(sizes, stated, strict=True)
        )

    def _keep_constant(self, node: onnx.NodeProto) -> None:
        if node.op_type != "Constant" or len(node.attribute) != 1:
            return
        (attribute,) = node.attribute
        if attribute.HasField("t") and attribute.t.ByteSize() <= _FOLLOWED:
            self._constants[node.output[0]] = attribute.t
        elif attribute.name in ("value_int", "value_ints"):
            numbers = [attribute.i] if attribute.name == "value_int" else list(attribute.ints)
            dims = [] if attribute.name == "value_int" else [len(numbers)]
            if 8 * len(numbers) <= _FOLLOWED:
                tensor = helper.make_tensor("", onnx.TensorProto.INT64, dims, numbers)
                self._constants[node.output[0]] = tensor


def _check_elements(schema: defs.OpSchema, node: onnx.NodeProto, known: Mapping[str, onnx.TypeProto]) -> None:
    """The element types that the operator takes, and the same one wherever its schema names one. Raises: ValueError."""
    formals: Sequence[defs.OpSchema.FormalParameter] = schema.inputs
    bound: dict[str, str] = {}
    for number, name in enumerate(node.input):
        type_ = known.get(name)
        if type_ is None or not type_.HasField("tensor_type") or not formals:
            continue
        formal = formals[min(number, len(formals) - 1)]
        element = type_.tensor_type.elem_type
        text = f"tensor({_element_name(element)})"
        if text not in formal.types:
            raise ValueError(f"{node.op_type} does not take {text} as {formal.name}")
        if formal.is_homogeneous and bound.setdefault(formal.type_str, text) != text:
            raise ValueError(f"{node.op_type} takes one type, not {bound[formal.type_str]} and {text}")


def _element_name(element: int) -> str:
    if element not in onnx.TensorProto.DataType.values():
        return str(element)
    name: str = onnx.TensorProto.DataType.Name(element)
    return name.lower()
