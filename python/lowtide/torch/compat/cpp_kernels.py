"""Inductor's C++ kernels of several graphs, compiled in one source.

A compiler takes longer to read Inductor's headers, even if they are precompiled, than to compile the kernel of a cluster.  So one source
has several kernels, each with Inductor's Python bindings.  All of Inductor's kernels have the same name: a macro renames it, and a
namespace hides what else is in the source.  The library has a Python module for each kernel.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from .versions import needed

__all__ = ["CppKernel", "load_together"]

_LEAST = 4  # kernels in a source, where there are as many

_loaded: dict[str, Any] = {}  # functions of kernels by their names


class CppKernel:
    """A kernel to compile.  argtypes: C++ types of its arguments.  source: Inductor's."""

    def __init__(self, argtypes: Sequence[str], source: str) -> None:
        self.argtypes, self.source = list(argtypes), source
        text = repr((self.argtypes, source, _compiler_options()))
        self.name = "kernel_" + hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def function(self) -> Any:
        """The function that runs it; None if it is not loaded."""
        return _loaded.get(self.name)


def _compiler_options() -> list[tuple[str, Any]]:
    """Inductor's options for C++, which name the compiler and choose its flags."""
    with needed("compiler of Inductor"):
        from torch._inductor import config
    return sorted((name, value) for name, value in config.get_config_copy().items() if name.startswith("cpp."))


def load_together(kernels: Sequence[CppKernel]) -> None:
    """Compile and load kernels that are not loaded, in a few sources.  Those of a source that cannot be compiled stay as they are, and so
    does a single kernel: Inductor compiles and caches it by itself."""
    new = sorted({k.name: k for k in kernels if k.function is None}.values(), key=lambda k: (-len(k.source), k.name))
    if len(new) < 2:
        return
    with needed("compiler of Inductor"):
        from torch._inductor.async_compile import AsyncCompile, get_compile_threads
        from torch._inductor.compile_fx import with_fresh_cache_if_config
    threads = get_compile_threads()
    count = max(1, min(threads, len(new) // _LEAST))
    with with_fresh_cache_if_config():
        for load in [_begun(new[i::count], AsyncCompile.submit if threads > 1 else None) for i in range(count)]:
            with contextlib.suppress(Exception):  # of its compiler
                load()


def _begun(kernels: Sequence[CppKernel], submit: Any) -> Callable[[], None]:
    """Begin to compile the kernels in one source; what waits for its end, and loads them.  submit: starts a compiler beside this thread."""
    with needed("compiler of Inductor"):
        from torch._inductor.codecache import CppPythonBindingsCodeCache

    class Library(CppPythonBindingsCodeCache):
        cache: dict[str, Any] = {}

        @classmethod
        def _load_library_inner(cls, path: str, key: str) -> Any:
            return SimpleNamespace(path=path)

    bound = [_with_bindings(kernel) for kernel in kernels]
    lines = [line for code, _ in bound for line in code.splitlines()]
    includes = dict.fromkeys(line for line in lines if line.startswith("#include"))
    parts = [f"#define kernel {kernel.name}\nnamespace of_{kernel.name} {{\n{code}\n}}\n#undef kernel"
             for kernel, (code, _) in zip(kernels, bound, strict=True)]
    library = Library.load_async("\n".join(["#define PY_SSIZE_T_CLEAN", *includes, *parts]), submit_fn=submit)

    def load() -> None:
        found = library()
        _loaded.update({kernel.name: load_one(found.path, found.key) for kernel, (_, load_one) in zip(kernels, bound, strict=True)})

    return load


def _with_bindings(kernel: CppKernel) -> tuple[str, Callable[[str, str], Any]]:
    """The source of a kernel with Inductor's bindings; and what loads its function from a library of a path and a key."""
    with needed("compiler of Inductor"):
        from torch._inductor.codecache import CppPythonBindingsCodeCache
    sources: list[str] = []

    class Bindings(CppPythonBindingsCodeCache):
        entry_function = kernel.name

        @classmethod
        def load_async(cls, main_code: str, *_: Any, **__: Any) -> Any:
            sources.append(main_code)
            return lambda: None

    Bindings.load_pybinding_async(kernel.argtypes, kernel.source)
    return sources[0], lambda path, key: getattr(Bindings._load_library(path, key), kernel.name)
