"""A GPU that computes nothing, under PyTorch's own code for CUDA: its allocator, streams, events and graphs run as on a card.

The library of tests/stand_in_gpu is loaded before all others (LD_PRELOAD) and takes the place of the CUDA runtime, its driver, cuBLAS and
cuDNN.  Memory reads as zero, kernels only take time.  It is built for the PyTorch that is installed, with the headers of its packages.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "stand_in_gpu"
_FLAGS = ["-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden"]
_OF_CUDA = re.compile(r" U ((?:__cuda|cu[A-Za-z]|nccl[A-Z]|nvml)\w+)")
_OWN = re.compile(r" T (\w+)")
_LEFT_ALONE = ("cupti", "cuFile", "nvrtc")  # these work without a card, or say that there is none
_NAMES = re.compile(rb"\0((?:cu[A-Z]|nvml)\w+)(?=\0)")  # that PyTorch looks up in the driver
_OF_TRITON = {"cuFuncSetAttribute", "cuFuncSetCacheConfig", "cuCtxSetCurrent", "cuCtxGetLimit", "cuCtxSetLimit"}  # and its launcher


def why_not() -> str:
    """Why there cannot be one here; empty if there can."""
    import torch

    if torch.version.cuda is None:
        return "this PyTorch is not built for CUDA"
    if not all(map(shutil.which, ("g++", "nm"))):
        return "no g++ or nm here"
    missing = [str(folder) for folder in _headers() if not folder.is_dir()]
    return f"no headers of CUDA: {', '.join(missing)}" if missing else ""


def build(folder: Path) -> dict[str, str]:
    """Build the library in that folder; the environment of a process that is to see the GPU."""
    import torch

    include = folder / "include"
    include.mkdir(parents=True)
    runtime, cudnn, compiler = _headers()
    (include / "crt").symlink_to(compiler / "crt")  # the one part that the package of the runtime lacks
    headers = [f"-isystem{path}" for path in (runtime, cudnn, include)]
    objects = [folder / f"{source.stem}.o" for source in sorted(SOURCES.glob("*.cpp"))]
    _run(*(["g++", *_FLAGS, *headers, "-c", str(SOURCES / f"{made.stem}.cpp"), "-o", str(made)] for made in objects))
    libraries = Path(torch.__file__).parent / "lib"
    wanted = {name for library in libraries.glob("*.so") for name in _OF_CUDA.findall(_symbols(library, "-D"))}
    wanted |= {name.decode() for name in _NAMES.findall((libraries / "libc10_cuda.so").read_bytes())} | _OF_TRITON
    own = {name for made in objects for name in _OWN.findall(_symbols(made))}
    stubs = folder / "stubs.cpp"  # what returns success, and does nothing
    stubs.write_text("\n".join(f'extern "C" __attribute__((visibility("default"))) int {name}() {{ return 0; }}'
                               for name in sorted(wanted - own) if not name.startswith(_LEFT_ALONE)))
    library = folder / "libcuda.so.1"
    _run(["g++", *_FLAGS, "-shared", f"-Wl,-soname,{library.name}", str(stubs), *map(str, objects), "-o", str(library), "-ldl", "-lpthread"])
    for other in ("libcuda.so", "libnvidia-ml.so.1"):
        (folder / other).symlink_to(library.name)
    # attention of cuDNN is a graph of operations that the stand-in does not know
    return {**os.environ, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(folder), "TRITON_LIBCUDA_PATH": str(folder),
            "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def _headers() -> list[Path]:
    """The folders of headers of the CUDA runtime, of cuDNN, and of CUDA's compiler."""
    import torch

    packages = Path(torch.__file__).parent.parent
    found = importlib.util.find_spec("triton")
    triton = Path(found.origin).parent if found is not None and found.origin else packages / "triton"
    runtime = packages / "nvidia" / f"cu{str(torch.version.cuda).partition('.')[0]}" / "include"
    return [runtime, packages / "nvidia" / "cudnn" / "include", triton / "backends" / "nvidia" / "include"]


def _symbols(path: Path, *flags: str) -> str:
    return subprocess.run(["nm", *flags, str(path)], capture_output=True, text=True, check=True).stdout


def _run(*commands: list[str]) -> None:
    """All at once."""
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for command, process in zip(commands, running, strict=True):
        _, errors = process.communicate()
        assert process.returncode == 0, f"{' '.join(command)}:\n{errors}"
