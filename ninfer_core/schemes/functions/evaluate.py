"""Decoders and encoders run: by the ONNX reference evaluator, and by onnxruntime where it has the types.

The reference evaluator is the meaning (struct types 6). A function says nothing about the memory of its steps, so what
comes from elsewhere is checked by `signatures` first and run where memory is bounded.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ninfer_core.errors import NinferError
from ninfer_core.schemes.form import Array
from ninfer_core.schemes.structs.leaves import LEAVES

# How a leaf array of the view becomes the array of its ONNX type: sub-byte integers by value, small floats by code.
_BY_VALUE: Final = frozenset(leaf.onnx for leaf in LEAVES if leaf.bits < 8 and leaf.kind != "float")
_BY_CODE: Final = frozenset(
    leaf.onnx for leaf in LEAVES if leaf.kind == "float" and (leaf.bits < 16 or leaf.name == "BFLOAT16")
)


class FunctionFailed(NinferError):
    """A function that does not run on the leaves, or whose result is not what it declares."""

    code = "function_failed"


class Unsupported(NinferError):
    """A function that onnxruntime cannot run: a type or an operator that it lacks, or no onnxruntime here."""

    code = "function_unsupported"


def run_reference(function: onnx.FunctionProto, leaves: Sequence[Array]) -> Array:
    """The function's output in the ONNX reference evaluator; `leaves` in canonical order, as the view gives them.

    Raises: FunctionFailed.
    """
    from onnx.reference import ReferenceEvaluator

    inputs = _inputs(function, leaves)
    try:
        with np.errstate(all="ignore"):
            (output,) = ReferenceEvaluator(model_of(function)).run(None, inputs)
    except Exception as fault:  # whatever numpy says about operands that do not fit
        raise FunctionFailed(f"{function.name}: the reference evaluator stops: {fault}") from fault
    return _as_declared(function, np.asarray(output))


def run_onnxruntime(function: onnx.FunctionProto, leaves: Sequence[Array]) -> Array:
    """The function's output in onnxruntime on the CPU, its graph unchanged by optimizers.

    Raises: Unsupported, with the reason; FunctionFailed.
    """
    try:
        import onnxruntime
    except ImportError as fault:
        raise Unsupported("onnxruntime is not installed; it comes with the extra `onnx`") from fault

    # Numpy arrays of most small types cannot be handed over, initializers of all of them can.
    model = model_of(function)
    for name, array in _inputs(function, leaves).items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    del model.graph.input[:]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what it would log is raised
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as fault:  # its classes are not public
        raise Unsupported(f"{function.name}: onnxruntime does not take it: {_line(fault)}") from fault
    try:
        (output,) = session.run(None, {})
    except Exception as fault:
        raise FunctionFailed(f"{function.name}: onnxruntime stops: {_line(fault)}") from fault
    return _as_declared(function, np.asarray(output))


def _inputs(function: onnx.FunctionProto, leaves: Sequence[Array]) -> dict[str, Array]:
    types = {info.name: info.type.tensor_type for info in function.value_info}
    if len(leaves) != len(function.input) or not set(function.input) <= types.keys():
        raise FunctionFailed(f"{function.name} takes {len(function.input)} leaves, not {len(leaves)}")
    return {
        name: _native(array, types[name].elem_type)
        for name, array in zip(function.input, leaves, strict=True)
    }


def _native(array: Array, element: int) -> Array:
    """The array of the ONNX type for a leaf array of the view."""
    wanted = helper.tensor_dtype_to_np_dtype(element)
    if element in _BY_VALUE:
        return array.astype(wanted)
    if array.dtype != wanted and element in _BY_CODE:
        return np.ascontiguousarray(array).view(wanted)
    if array.dtype != wanted:
        raise FunctionFailed(f"a leaf of {wanted} comes as {array.dtype}")
    return array


def model_of(function: onnx.FunctionProto) -> onnx.ModelProto:
    """A model whose graph is the function's body, typed by its ValueInfos."""
    types = {info.name: info for info in function.value_info}
    names = [*function.input, *function.output]
    if len(function.output) != 1 or not set(names) <= types.keys():
        raise FunctionFailed(f"{function.name} does not type its inputs and its one output")
    graph = helper.make_graph(
        list(function.node),
        function.name or "function",
        [types[name] for name in function.input],
        [types[name] for name in function.output],
    )
    imports = list(function.opset_import)
    try:
        version = helper.find_min_ir_version_for(imports)
    except ValueError as fault:
        raise FunctionFailed(f"{function.name}: {fault}") from fault
    return helper.make_model(graph, opset_imports=imports, ir_version=version)


def _as_declared(function: onnx.FunctionProto, output: Array) -> Array:
    """The output, if its type and shape are those that the function declares."""
    declared = next(info for info in function.value_info if info.name == function.output[0]).type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(declared.elem_type)
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in declared.shape.dim]
    fits = len(sizes) == output.ndim and all(
        size in (None, n) for size, n in zip(sizes, output.shape, strict=True)
    )
    if output.dtype != dtype or not fits:
        raise FunctionFailed(
            f"{function.name} declares {dtype} {sizes} and makes {output.dtype} {list(output.shape)}"
        )
    return output


def _line(fault: Exception) -> str:
    return " ".join(str(fault).split())[:300]
