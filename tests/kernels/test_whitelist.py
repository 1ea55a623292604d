"""Kernels are a closed whitelist, and a device is what could change their answers."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.compute import COMPUTE_PROFILES
from ninfer_core.formats import BF16, FP8_E4M3FN_ROW_BF16S, FP32, I32, NVFP4, Q4G64_F16S
from ninfer_core.kernels import devices as listing
from ninfer_core.kernels import sources
from ninfer_core.kernels.devices import NoDevice, devices, find_device
from ninfer_core.kernels.processor import cpu_processor
from ninfer_core.kernels.registry import KERNELS, REGIMES, NoKernel, find_kernel


def test_every_row_has_a_profile_for_its_operation_and_format() -> None:
    for kernel in KERNELS:
        assert kernel.profile in tuple(COMPUTE_PROFILES)
        assert kernel.profile.operation == kernel.operation
        assert kernel.format in kernel.profile.formats
        assert kernel.format in kernel.layout.formats
        assert kernel.regime in tuple(REGIMES)
    assert len({kernel.digest for kernel in KERNELS}) == len(KERNELS)


def test_what_is_not_listed_is_refused() -> None:
    assert find_kernel("encode", Q4G64_F16S, "BF16", "cpu").name == "encode.Q4G64_F16S.BF16.cpu"
    for asked in (
        ("encode", NVFP4, "BF16", "cpu"),
        ("encode", Q4G64_F16S, "I32", "cpu"),
        ("encode", Q4G64_F16S, "F64", "cuda"),
        ("encode", FP8_E4M3FN_ROW_BF16S, "BF16", "cuda"),
        ("reconstruct", BF16, "FP32", "cpu"),
        ("check", I32, None, "cpu"),
        ("parity", I32, "F32", "cpu"),
        ("matvec", FP32, "BF16", "cpu"),
    ):
        with pytest.raises(NoKernel, match="no kernel does") as refused:
            find_kernel(*asked)
        assert refused.value.code == "no_kernel"


def test_a_shape_outside_of_the_regime_is_refused() -> None:
    assert find_kernel("check", NVFP4, None, "cpu", shape=(128, 64)).regime.name == "nvfp4-tiles"
    for fmt, operation, shape in (
        (NVFP4, "check", (128, 65)),
        (NVFP4, "check", (127, 64)),
        (Q4G64_F16S, "check", (3,)),
        (Q4G64_F16S, "check", (0, 64)),
        (Q4G64_F16S, "check", (1 << 32, 1 << 31)),
        (Q4G64_F16S, "matvec", (1, 1 << 20)),
        (NVFP4, "matvec", (128, 1 << 20)),
    ):
        dtype = "BF16" if operation == "matvec" else None
        with pytest.raises(NoKernel, match="does not take the shape"):
            find_kernel(operation, fmt, dtype, "cpu", shape=shape)  # type: ignore[arg-type]
    assert find_kernel("statistics", I32, None, "cpu", shape=()).regime.name == "any-words"


PACKAGE = Path(sources.__file__).parents[1]
# Imported by kernels, or by what these import, and no answer goes through them: names, errors, types, whole payloads.
BESIDE_ANSWERS = {
    "compute.py",
    "errors.py",
    "identity.py",
    "locked.py",
    "registry.py",
    "retired.py",
    "layouts/__init__.py",
    "layouts/arrays.py",
    "layouts/contiguous.py",
    "layouts/row_scale.py",
}


def imported(path: Path) -> set[Path]:
    """Modules of the package that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ninfer_core"):
            place = PACKAGE.parent / str(node.module).replace(".", "/")
            for name in node.names:
                candidates = (place / f"{name.name}.py", place.with_suffix(".py"), place / "__init__.py")
                found.add(next(one for one in candidates if one.exists()))
    return found


def test_whatever_an_answer_goes_through_is_in_the_digest() -> None:
    told = set(sources.source_files("cuda"))
    reached, left = set(told), list(told)
    while left:
        for path in imported(left.pop()) - reached:
            reached.add(path)
            left.append(path)
    names = {path.relative_to(PACKAGE).as_posix() for path in reached - told}
    names -= {f"kernels/{name}" for name in (*sources._BESIDE, *sources._HANDING_ON)}
    assert names == BESIDE_ANSWERS
    assert not {"kernels/host.py", "words.py"} & names


@pytest.mark.parametrize(
    ("name", "changed", "compiled_anew"),
    [
        ("kernels/gpu_more.py", {"cuda"}, False),
        ("kernels/registry.py", set(), False),  # what lists kernels computes nothing
        ("kernels/host.py", {"cpu", "cuda"}, False),
        ("kernels/scalar.py", {"cpu", "cuda"}, True),
        ("words.py", {"cpu", "cuda"}, True),
        ("reconstruct.py", {"cpu", "cuda"}, True),
        ("formats.py", {"cpu", "cuda"}, True),
        ("layouts/row_split.py", {"cpu", "cuda"}, True),
        ("encoders/maxabs_f16.py", {"cpu", "cuda"}, True),
    ],
)
def test_a_changed_source_is_another_kernel(
    name: str, changed: set[str], compiled_anew: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (".", "kernels", "layouts", "encoders"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for path in (PACKAGE / folder).glob("*.py"):
            shutil.copy(path, tmp_path / folder)
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "kernels" / "sources.py"))

    def digests() -> dict[str, str]:
        own = {one: sources.sources_digest.__wrapped__(one) for one in ("cpu", "cuda")}
        return {**own, "compiled": sources.digest_of(sources.source_files("cpu"))}

    before = digests()
    with (tmp_path / name).open("a") as source:
        source.write("# changed\n")
    after = digests()
    assert {one for one in after if after[one] != before[one]} == changed | (
        {"compiled"} if compiled_anew else set()
    )


def test_the_processor_is_always_here_and_comes_first() -> None:
    first = devices()[0]
    assert first == find_device("cpu")
    assert (first.device_class, first.simulated, first.driver) == ("cpu", False, None)
    assert first.capability.split()[0] in ("baseline", "avx2", "avx512")
    with pytest.raises(NoDevice, match=r"there is no device 'cuda:9' here \(here: cpu"):
        find_device("cuda:9")


@pytest.mark.parametrize(
    ("settings", "capability"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, "baseline generic"),
        ({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}, "avx2 haswell"),
    ],
)
def test_the_code_path_is_that_of_the_compilers_settings(settings: dict[str, str], capability: str) -> None:
    script = "from ninfer_core.kernels.devices import find_device; print(find_device('cpu').capability)"
    shown = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **settings},
    )
    assert shown.stdout.strip() == capability


def test_a_simulator_is_a_device_that_says_so() -> None:
    pytest.importorskip("numba_cuda", reason="the extra `gpu` is not installed")
    script = "from ninfer_core.kernels.devices import find_device as f; d = f('cuda:0'); print(d.simulated, d.capability)"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert shown.stdout.strip() == "True simulator"


def test_no_driver_and_no_simulator_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba_cuda", reason="the extra `gpu` is not installed")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "true")  # the compiler reads numbers, and takes this for no
    monkeypatch.setattr(listing, "_driver_here", lambda: False)
    with pytest.raises(NoDevice, match="there is no driver for GPUs"):
        find_device("cuda:0")
    monkeypatch.setattr(listing, "_driver_here", lambda: True)

    def broken(name: str) -> None:
        raise ImportError(f"{name} is broken")

    monkeypatch.setattr(listing, "import_module", broken)
    with pytest.raises(NoDevice, match=r"numba\.cuda is broken"):
        find_device("cuda:0")


def test_the_processor_runs_what_the_whitelist_has_and_no_more() -> None:
    source, out = np.ones((1, 4)).view(np.uint64), (np.empty(4, np.uint8), np.empty(1, np.uint16))
    largest = cpu_processor().largest_magnitudes(source, "F64")
    with pytest.raises(NoKernel, match="encode of FP8_E4M3FN_ROW_BF16S with F64 words"):
        cpu_processor().encode_rows(source, "F64", largest, *out)
