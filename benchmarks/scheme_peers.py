"""Decoders of others that the compiled ones of the catalogue are measured beside, each of a package as it is published.

Whichever is not installed is None, and its rows are left out. What a peer makes is compared with ours before it is timed.
"""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Parts = Mapping[str, NDArray[Any]]
Decoder = Callable[[Parts], NDArray[np.float32]]
"""Stored arrays to binary32 values, in any shape."""


def gguf(block: str, block_bytes: int) -> Decoder | None:
    """The numpy decoder of the package gguf, which has none for some types."""
    try:
        from gguf import GGMLQuantizationType, quants
    except ImportError:
        return None
    kind = GGMLQuantizationType[block]
    try:
        quants.dequantize(np.zeros(block_bytes, np.uint8), kind)
    except NotImplementedError:
        return None
    return lambda parts: quants.dequantize(parts["payload"], kind)


def ggml(number: int, block_bytes: int, block_values: int) -> Decoder | None:
    """ggml's C library, one thread, as the package ggml-python builds it."""
    try:
        from ggml import ggml_get_type_traits
    except ImportError:
        return None
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    to_float = ctypes.cast(ggml_get_type_traits(number).contents.to_float, prototype)

    def decode(parts: Parts) -> NDArray[np.float32]:
        payload = parts["payload"]
        out = np.empty(payload.size // block_bytes * block_values, np.float32)
        to_float(payload.ctypes.data, out.ctypes.data, out.size)
        return out

    return decode


def bitsandbytes(kind: str, block_size: int) -> Decoder | None:
    """NF4 or FP4 by bitsandbytes, the tensor as one row: its decoder misplaces scales of blocks across rows."""
    try:
        import torch
        from bitsandbytes import functional
    except ImportError:
        return None
    code = functional.get_4bit_type(kind, device="cpu")

    def decode(parts: Parts) -> NDArray[np.float32]:
        payload, absmax = torch.from_numpy(parts["payload"]), torch.from_numpy(parts["absmax"])
        state = functional.QuantState(
            absmax=absmax,
            shape=torch.Size((1, 2 * payload.numel())),
            code=code,
            blocksize=block_size,
            quant_type=kind,
            dtype=torch.float32,
        )
        values: NDArray[np.float32] = functional.dequantize_4bit(payload.reshape(-1, 1), state).numpy()
        return values

    return decode


def compressed_tensors(rows: int, columns: int, group: int) -> Decoder | None:
    """MXFP4 or NVFP4 by compressed-tensors: its unpacking, then its scales by groups."""
    try:
        import torch
        from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    except ImportError:
        return None

    def decode(parts: Parts) -> NDArray[np.float32]:
        packed = torch.from_numpy(parts["weight_packed"])
        values = unpack_fp4_from_uint8(packed, rows, columns, torch.float32)
        words = torch.from_numpy(parts["weight_scale"])
        if "weight_global_scale" in parts:
            scales = words.view(torch.float8_e4m3fn).float() / torch.from_numpy(parts["weight_global_scale"])
        else:
            scales = torch.exp2(words.float() - 127)
        scaled: NDArray[np.float32] = (values.view(rows, -1, group) * scales[..., None]).numpy()
        return scaled

    return decode


def onnxruntime(parts: Parts, rows: int, columns: int, block_size: int) -> Decoder | None:
    """Four-bit blocks by onnxruntime: DequantizeLinear, the arithmetic of MatMulNBits without its product."""
    try:
        import onnxruntime as ort
        from onnx import TensorProto, helper
    except ImportError:
        return None
    packed = helper.make_tensor("B", TensorProto.UINT4, (rows, columns), parts["B"].tobytes(), raw=True)
    scales = helper.make_tensor(
        "s", TensorProto.FLOAT, (rows, columns // block_size), parts["scales"].ravel()
    )
    zeros = helper.make_tensor(
        "z", TensorProto.UINT4, (rows, columns // block_size), parts["zero_points"].tobytes(), raw=True
    )
    node = helper.make_node("DequantizeLinear", ["B", "s", "z"], ["y"], axis=1, block_size=block_size)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))
    graph = helper.make_graph([node], "blocks", [], [result], [packed, scales, zeros])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = (
        ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    )  # or it is folded once, before
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def decode(_parts: Parts) -> NDArray[np.float32]:
        values: NDArray[np.float32] = session.run(None, {})[0]
        return values

    return decode


def torch_columns(inputs: int, outputs: int, group: int) -> Decoder | None:
    """GPTQ of four bits as the packages that decode it with torch on a CPU do: shifts, mask, scales by group."""
    try:
        import torch
    except ImportError:
        return None
    shifts = torch.arange(0, 32, 4, dtype=torch.int32)

    def decode(parts: Parts) -> NDArray[np.float32]:
        words, zeros = torch.from_numpy(parts["qweight"]), torch.from_numpy(parts["qzeros"])
        codes = (words[:, None, :] >> shifts[None, :, None] & 15).reshape(inputs, outputs)
        offsets = ((zeros[:, :, None] >> shifts & 15) + 1 & 15).reshape(-1, outputs)
        index = torch.from_numpy(parts["g_idx"]).long()
        scales = torch.from_numpy(parts["scales"]).float()
        values: NDArray[np.float32] = (scales[index] * (codes - offsets[index]).float()).numpy()
        return values

    return decode


def torch_rows(inputs: int, outputs: int, group: int) -> Decoder | None:
    """AWQ as the packages that decode it with torch on a CPU do: shifts, an order of columns, scales by group."""
    try:
        import torch
    except ImportError:
        return None
    shifts = torch.arange(0, 32, 4, dtype=torch.int32)
    order = torch.tensor((0, 4, 1, 5, 2, 6, 3, 7))

    def unpacked(words: Any) -> Any:
        return (words[:, :, None] >> shifts & 15)[:, :, order].reshape(len(words), outputs)

    def decode(parts: Parts) -> NDArray[np.float32]:
        codes = unpacked(torch.from_numpy(parts["qweight"]))
        offsets = unpacked(torch.from_numpy(parts["qzeros"])).repeat_interleave(group, dim=0)
        scales = torch.from_numpy(parts["scales"]).float().repeat_interleave(group, dim=0)
        values: NDArray[np.float32] = (scales * (codes - offsets).float()).numpy()
        return values

    return decode
