"""Decoders of others that the compiled ones of the catalogue are measured beside: each by a package's own functions.

Whichever is not installed is None, and its rows are left out. What a peer makes is compared with ours, word by word,
before it is timed. onnxruntime's MatMulNBits is none of them: beside an identity matrix it is a product that is timed.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.packages import ggml_type, module_of

Parts = Mapping[str, NDArray[Any]]
Decoder = Callable[[Parts], Any]
"""Stored arrays to binary32 values: an array of numpy or a tensor of torch, of our shape once it is flat."""


def gguf(block: str, block_bytes: int) -> Decoder | None:
    """The numpy decoder of the package gguf, which has none for some types and runs on one thread."""
    try:
        from gguf import GGMLQuantizationType, quants
    except ImportError:
        return None
    kind = GGMLQuantizationType.__members__.get(block)
    try:
        quants.dequantize(np.zeros(block_bytes, np.uint8), kind)
    except (KeyError, NotImplementedError):
        return None
    return lambda parts: quants.dequantize(parts["payload"], kind)


def ggml(number: int, threads: int) -> Decoder | None:
    """ggml's C library by `to_float`, which runs on the calling thread: on several, each takes its share of the blocks."""
    try:
        kind = ggml_type(number)
    except (ImportError, LookupError):
        return None
    pool = ThreadPoolExecutor(threads)

    def decode(parts: Parts) -> NDArray[np.float32]:
        payload = parts["payload"]
        blocks = payload.size // kind.block_bytes
        out = np.empty(blocks * kind.block_values, np.float32)
        bounds = [blocks * k // threads for k in range(threads + 1)]

        def share(first: int, last: int) -> None:
            source = payload[first * kind.block_bytes : last * kind.block_bytes]
            kind.decode_into(source, out[first * kind.block_values : last * kind.block_values])

        if threads == 1:
            share(0, blocks)
        else:
            list(pool.map(share, bounds[:-1], bounds[1:]))
        return out

    return decode


def bitsandbytes(kind: str, block_size: int, count: int) -> Decoder | None:
    """NF4 or FP4 by bitsandbytes, the tensor as one row: its decoder misplaces scales of blocks across rows."""
    try:
        import torch
        from bitsandbytes import functional
    except ImportError:
        return None

    def state(absmax: Any, code: Any, **more: Any) -> Any:
        return functional.QuantState(absmax=absmax, code=code, dtype=torch.float32, **more)

    def decode(parts: Parts) -> Any:
        tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
        nested = {}
        if "absmax_u8" in parts:
            second = state(tensors["nested_absmax"], tensors["nested_code"], blocksize=256)
            nested = {"offset": tensors["offset"][0], "state2": second}
        absmax = tensors["absmax_u8" if nested else "absmax"]
        shape = torch.Size((1, count))
        whole = state(absmax, tensors["code"], shape=shape, blocksize=block_size, quant_type=kind, **nested)
        return functional.dequantize_4bit(tensors["payload"].reshape(-1, 1), whole)

    return decode


def _scheme(bits: int, kind: str, strategy: str, group: int, symmetric: bool) -> Any:
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    weights = QuantizationArgs(
        num_bits=bits, type=kind, strategy=strategy, group_size=group, symmetric=symmetric
    )
    return QuantizationScheme(targets=["Linear"], weights=weights)


def compressed_floats(rows: int, columns: int, group: int) -> Decoder | None:
    """MXFP4 or NVFP4 by compressed-tensors, its unpacking and its scales in binary32 where it takes bfloat16."""
    try:
        import torch
        from compressed_tensors.compressors import unpack_fp4_from_uint8
        from compressed_tensors.quantization.lifecycle.forward import dequantize
    except ImportError:
        return None
    twin = group == 16
    weights = _scheme(4, "float", "tensor_group" if twin else "group", group, True).weights

    def decode(parts: Parts) -> Any:
        tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
        levels = unpack_fp4_from_uint8(tensors["weight_packed"], rows, columns, torch.float32)
        words = tensors["weight_scale"]
        scales = words.view(torch.float8_e4m3fn).float() if twin else torch.exp2(words.float() - 127)
        second = tensors.get("weight_global_scale")
        return dequantize(levels, scales, args=weights, global_scale=second, dtype=torch.float32)

    return decode


def compressed_integers(bits: int, group: int, rows: int, columns: int) -> Decoder | None:
    """Packed rows by the decompressor of compressed-tensors."""
    try:
        import torch
        from compressed_tensors.compressors import PackedQuantizationCompressor
    except ImportError:
        return None
    scheme = _scheme(bits, "int", "group", group, False)
    shape = torch.tensor((rows, columns))

    def decode(parts: Parts) -> Any:
        tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
        return PackedQuantizationCompressor.decompress(tensors | {"weight_shape": shape}, scheme)["weight"]

    return decode


def transformers() -> Decoder | None:
    """MXFP4 as transformers takes GPT-OSS apart: it answers the transposed matrix, which is turned back for nothing here."""
    try:
        import torch
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    except ImportError:
        return None

    def decode(parts: Parts) -> Any:
        blocks, scales = torch.from_numpy(parts["weight_packed"]), torch.from_numpy(parts["weight_scale"])
        return convert_moe_packed_tensors(blocks[None], scales[None], dtype=torch.float32)[0].T

    return decode


def onnxruntime(
    parts: Parts, rows: int, columns: int, block_size: int, bits: int, threads: int
) -> Decoder | None:
    """Blocks of codes by onnxruntime's DequantizeLinear, which holds the arrays in its model."""
    try:
        import onnxruntime as ort
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    kind = {2: TensorProto.UINT2, 4: TensorProto.UINT4, 8: TensorProto.UINT8}[bits]
    grid = rows, columns // block_size
    tensors = [
        TensorProto(name="B", data_type=kind, dims=(rows, columns), raw_data=parts["B"].tobytes()),
        numpy_helper.from_array(parts["scales"], "s"),
        TensorProto(name="z", data_type=kind, dims=grid, raw_data=parts["zero_points"].tobytes()),
    ]
    node = helper.make_node("DequantizeLinear", ["B", "s", "z"], ["y"], axis=1, block_size=block_size)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))
    graph = helper.make_graph([node], "blocks", [], [result], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    # Else the node is folded into its result before the first run.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda _parts: session.run(None, {})[0]


def auto_gptq(inputs: int, outputs: int, group: int) -> Decoder | None:
    """GPTQ by auto-gptq's layer, which decodes its weight and then multiplies: here no rows at all.

    The weight itself is `auto_gptq_weight`.
    """
    layer = _gptq_layer(inputs, outputs, group)
    if layer is None:
        return None
    import torch

    return lambda parts: layer(parts)(torch.empty(0, inputs))


def auto_gptq_weight(inputs: int, outputs: int, group: int) -> Decoder | None:
    """What auto-gptq's layer multiplies by: its product with an identity matrix, in which plus zero stands for both."""
    layer = _gptq_layer(inputs, outputs, group)
    if layer is None:
        return None
    import torch

    return lambda parts: layer(parts)(torch.eye(inputs))


def _gptq_layer(inputs: int, outputs: int, group: int) -> Callable[[Parts], Any] | None:
    try:
        import torch

        file = module_of("auto_gptq", "nn_modules/qlinear/qlinear_cuda_old.py")
    except ImportError:
        return None
    layer = file.QuantLinear(4, group, inputs, outputs, False, weight_dtype=torch.float32)

    def filled(parts: Parts) -> Any:
        layer.qweight, layer.qzeros = torch.from_numpy(parts["qweight"]), torch.from_numpy(parts["qzeros"])
        layer.scales = torch.from_numpy(parts["scales"]).float()
        return layer

    return filled


def autoawq(group: int) -> Decoder | None:
    """AWQ by autoawq's `dequantize_gemm`, its scales in binary32."""
    try:
        import torch

        file = module_of("awq", "utils/packing_utils.py")
    except ImportError:
        return None

    def decode(parts: Parts) -> Any:
        words, zeros, scales = (torch.from_numpy(parts[name]) for name in ("qweight", "qzeros", "scales"))
        return file.dequantize_gemm(words, zeros, scales.float(), 4, group)

    return decode
