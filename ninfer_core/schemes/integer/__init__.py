"""Forms of integer codes and of small tables: what ONNX, GPTQ, AWQ, HQQ, bitsandbytes and compressed-tensors store."""

from typing import Final

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.integer.awq import AWQ, AWQ_GEMV
from ninfer_core.schemes.integer.bitsandbytes import BNB_FP4, BNB_NF4
from ninfer_core.schemes.integer.compressed import PACK_QUANTIZED
from ninfer_core.schemes.integer.gptq import GPTQ, GPTQ_V2
from ninfer_core.schemes.integer.hqq import HQQ
from ninfer_core.schemes.integer.linear_onnx import LINEAR_ONNX
from ninfer_core.schemes.integer.matmulnbits import MATMULNBITS

FORMS: Final[tuple[Form, ...]] = (
    LINEAR_ONNX,
    GPTQ,
    GPTQ_V2,
    AWQ,
    AWQ_GEMV,
    PACK_QUANTIZED,
    HQQ,
    BNB_NF4,
    BNB_FP4,
    MATMULNBITS,
)
