"""What kernels can run on here. The compiler is asked inside the functions: importing this module does not load it."""

import ctypes
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ninfer_core.errors import NinferError
from ninfer_core.kernels.sources import DeviceClass


class NoDevice(NinferError):
    """A device that is not here."""

    code = "no_device"


@dataclass(frozen=True, slots=True)
class Device:
    """A processor or a GPU, with whatever beside the kernels could change their answers.

    `capability` is the code path and the compiler's name of the processor, or the compute capability of a GPU.
    """

    name: str
    device_class: DeviceClass
    model: str
    capability: str
    driver: str | None
    runtime: str | None
    compiler: str
    simulated: bool = False

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def devices() -> tuple[Device, ...]:
    """What is here; the processor comes first."""
    return (_cpu(), *_gpus()[0])


def find_device(name: str) -> Device:
    """The device called `name`, as `cpu` or `cuda:0`. Raises: NoDevice, which says what is here."""
    if name == "cpu":
        return _cpu()
    gpus, why_none = _gpus()
    for device in gpus:
        if device.name == name:
            return device
    known = ", ".join(f"{device.name} ({device.model})" for device in (_cpu(), *gpus))
    raise NoDevice(f"there is no device {name!r} here (here: {known}){why_none}")


@cache
def _cpu() -> Device:
    name, features = _target()
    path = "baseline"
    if {"avx512f", "avx512bw", "avx512vl"} <= features:
        path = "avx512"
    elif "avx2" in features:
        path = "avx2"
    return Device("cpu", "cpu", _processor_model(), f"{path} {name}", None, None, _compiler())


def _target() -> tuple[str, set[str]]:
    """The processor that the compiler writes for, and its features: those of the machine, or as Numba is told to."""
    llvm = _llvm()
    name = os.environ.get("NUMBA_CPU_NAME")
    stated = os.environ.get("NUMBA_CPU_FEATURES")
    if stated is None:  # as Numba understands its settings
        generic = (name or "").lower() == "generic"
        stated = "" if generic else llvm.get_host_cpu_features().flatten()
    features = {one.removeprefix("+") for one in stated.split(",") if one.startswith("+")}
    return name or llvm.get_host_cpu_name(), features


def _processor_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        label, _, value = line.partition(":")
        if label.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "unknown processor"


def _compiler() -> str:
    release = ".".join(map(str, _llvm().llvm_version_info))
    return f"numba {version('numba')}, llvmlite {version('llvmlite')}, LLVM {release}"


def _llvm() -> Any:
    return import_module("llvmlite.binding")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _gpus() -> tuple[tuple[Device, ...], str]:
    """The GPUs, or why there are none."""
    package, simulated = _installed("numba-cuda"), _simulated()
    if package is None:
        return (), "; GPUs need the extra `gpu`"
    if not (simulated or _driver_here()):
        return (), "; there is no driver for GPUs"
    try:
        cuda: Any = import_module("numba.cuda")
    except Exception as error:  # noqa: BLE001  a broken installation has no GPU to offer
        return (), f"; numba-cuda does not load: {error}"
    compiler = f"numba {version('numba')}, numba-cuda {package}"
    if simulated:
        return (Device("cuda:0", "cuda", "CUDA simulator", "simulator", None, None, compiler, True),), ""
    try:
        here = tuple(_boards(cuda, compiler)) if cuda.is_available() else ()
    except Exception as error:  # noqa: BLE001  a driver that fails on being asked has no GPU to offer either
        return (), f"; the driver of GPUs fails: {error}"
    return here, "" if here else "; the driver answers with no GPU"


def _boards(cuda: Any, compiler: str) -> Iterator[Device]:
    runtime = "CUDA {}.{}".format(*cuda.runtime.get_version())
    for index, gpu in enumerate(cuda.gpus):
        capability = "{}.{}".format(*gpu.compute_capability)
        yield Device(
            f"cuda:{index}", "cuda", _text(gpu.name), capability, _driver_version(), runtime, compiler
        )


def _simulated() -> bool:
    """Whether the compiler simulates a GPU; what it cannot read it takes for no."""
    try:
        return bool(int(os.environ.get("NUMBA_ENABLE_CUDASIM") or 0))
    except ValueError:
        return False


def _driver_here() -> bool:
    """Whether a driver could be asked: without one, the second that its compiler takes to load is saved."""
    for library in ("nvcuda.dll",) if os.name == "nt" else ("libcuda.so.1", "libcuda.so"):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _driver_version() -> str:
    """The driver's own version where the system tells it, and the CUDA version that it speaks."""
    driver: Any = import_module("numba.cuda.cudadrv.driver")
    speaks = "CUDA {}.{}".format(*driver.get_version())
    try:
        words = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return speaks
    own = next((word for word in words if word[:1].isdigit() and "." in word), None)
    return speaks if own is None else f"{own}, {speaks}"
