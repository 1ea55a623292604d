"""Exact words by tensor name out of safetensors checkpoints: ranges, never whole files."""

from ninfer_core.sources.checkpoint import Checkpoint, CheckpointFile, Kind, Located, detect, open_checkpoint
from ninfer_core.sources.dtypes import DTYPES, Dtype
from ninfer_core.sources.pointer import PointerStub, pointer_stub
from ninfer_core.sources.safetensors import Header, HeaderLimits, SourceTensor, read_header

__all__ = [
    "DTYPES",
    "Checkpoint",
    "CheckpointFile",
    "Dtype",
    "Header",
    "HeaderLimits",
    "Kind",
    "Located",
    "PointerStub",
    "SourceTensor",
    "detect",
    "open_checkpoint",
    "pointer_stub",
    "read_header",
]
