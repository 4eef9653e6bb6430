"""Fails where an include, or an import of the Python package, runs against the arrows between the rooms.

Of Python: each folder of python/lowtide is a room, imports for types alone count, no files import each other in a loop, and
the rooms in FREE_OF_TORCH import no framework, and each framework of OWNERS is imported in its own room alone.

Of C++: headers include only the standard library and Lowtide; every Lowtide include is written
"lowtide/room/file.h" and exists; a public header (one among the HEADERS of its room, which are
installed) includes only public ones, and so do the Python bindings, which build against what is
installed; no solver includes another; no files include each other in a
loop, where a header and its source count as one.
"""
import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# What each room may include besides itself; all of what its neighbours may is spelled out.
CORE = ["base", "graph", "ops", "device", "transforms", "plan", "sim"]
ALLOWED = {
    **{room: CORE[:at] for at, room in enumerate(CORE)},
    "engines": CORE[:1],
    "solve": CORE + ["engines", "rewrite"],
    "rewrite": CORE,
    "layout": CORE,
    "driver": CORE + ["engines", "solve", "rewrite", "layout"],
    "io": CORE + ["layout"],
    "report": CORE + ["layout"],
    "cli": CORE + ["engines", "solve", "rewrite", "layout", "driver", "io", "report"],
}
# Of room solve: what all solvers share, and the folders whose solvers share a folder `common`.
SHARED = ["interface", "sequence"]
FAMILIES = ["kumar", "exact", "local"]
# The rooms of python/lowtide from the bottom to the top: each may import those of the lines above its own.  A file that is no
# folder's is a room of its own.
PYTHON = [
    ["cache", "_engines"],
    [""],  # lowtide itself: what is bound of the core
    ["sweeps"],
    ["frontend"],
    ["frontend.planning"],
    ["onnx"],
    ["onnx.__main__"],
    ["jax.compat"],
    ["jax.tracing"],
    ["jax.program"],
    ["jax.emission", "jax.settings"],
    ["jax.loops"],
    ["jax.api"],
    ["jax"],
    ["torch.compat", "torch.step_errors"],
    ["torch.tensors"],
    ["torch.device", "torch.ranks"],
    ["torch.pricing", "torch.runtime"],
    ["torch.optimizer", "torch.tracing"],
    ["torch.clusters"],
    ["torch.program", "torch.program.lowerings"],
    ["torch.transforms"],
    ["torch.emission"],
    ["torch.settings"],
    ["torch.graphs"],
    ["torch.api"],
    ["torch"],
    ["torch.__main__", "torch.check", "torch.check.sections"],
    ["__main__"],
]
# Rooms that may import each other, file by file.
TOGETHER = [{"torch.program", "torch.program.lowerings"}, {"torch.check", "torch.check.sections"}]
FREE_OF_TORCH = ["cache", "_engines", "", "frontend", "frontend.planning"]
FRAMEWORKS = {"torch", "numpy", "jax", "onnx"}
OWNERS = {"onnx": "onnx"}  # framework -> the room that may import it
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
OURS = re.compile(r"lowtide/(\w+)/(.+)")


def solver_of(path: Path, solve: Path) -> tuple[str, ...]:
    """The solver a file of room solve belongs to, by its folders; empty for what all share."""
    folders = path.relative_to(solve).parts[:-1]
    if not folders or folders[0] in SHARED:
        return ()
    if folders[0] in FAMILIES:
        return folders[:1] if folders[1:2] == ("common",) else folders[:2]
    return folders[:1]


def loops(includes: dict[str, set[str]]):
    """Each loop of includes, as the files along it."""
    left = dict(includes)
    while True:
        try:
            TopologicalSorter(left).prepare()
            return
        except CycleError as error:
            files = error.args[1]
            yield files
            left = {file: others - {files[0]} for file, others in left.items()}


def module_of(path: Path, package: Path) -> str:
    """The module's name below the package; empty for the package itself."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of PYTHON that a module is in: the innermost folder, or the file itself."""
    known = {room for line in PYTHON for room in line}
    while module and module not in known:
        module = module.rpartition(".")[0]
    return module


def imports_of(path: Path, module: str, modules: set[str]):
    """The line, the module and the name of each import, at whatever depth; of ours below the package, of others by `None`."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top, _, rest = alias.name.partition(".")
                yield node.lineno, rest if top == "lowtide" else None, top
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".") if package else []
                base = ".".join([*parts[:len(parts) - node.level + 1], *([base] if base else [])])
            elif base.partition(".")[0] != "lowtide":
                yield node.lineno, None, base.partition(".")[0]
                continue
            else:
                base = base.partition(".")[2]
            for alias in node.names:
                inner = f"{base}.{alias.name}" if base else alias.name
                yield node.lineno, inner if inner in modules else base, alias.name


def python_faults(root: Path):
    package = root / "python/lowtide"
    files = {module_of(path, package): path for path in sorted(package.rglob("*.py"))}
    level = {room: at for at, line in enumerate(PYTHON) for room in line}
    imports: dict[str, set[str]] = {}
    for module, path in files.items():
        room = room_of(module)
        folder = module if path.name == "__init__.py" else module.rpartition(".")[0]
        if room not in (module, folder):
            yield path, f"folder {folder} is not in the table of tools/check_includes.py"
        for line, other, name in imports_of(path, module, set(files)):
            at = path.with_name(f"{path.name}:{line}")
            if other is None:
                if room in FREE_OF_TORCH and name in FRAMEWORKS:
                    yield at, f"{name}: {room or 'the package'} imports no framework"
                elif name in OWNERS and room.partition(".")[0] != OWNERS[name]:
                    yield at, f"{name}: only room {OWNERS[name]} imports it"
                continue
            if other == "_core" or other.startswith("_core."):
                continue
            imports.setdefault(module, set()).add(other)
            theirs = room_of(other)
            if theirs != room and level[theirs] >= level[room] and {room, theirs} not in TOGETHER:
                yield at, f"{other or 'lowtide'}: room {room or 'lowtide'} may not know room {theirs or 'lowtide'}"
    for names in loops({module: others - {module} for module, others in imports.items()}):
        yield files[names[0]], f"a loop of imports: {' <- '.join(names)}"


def faults(root: Path):
    src = root / "src"
    solve = src / "lowtide/solve"
    public = {
        (path.parent / name).resolve()
        for path in (src / "lowtide").rglob("CMakeLists.txt")
        for block in re.findall(r"\bHEADERS((?:\s+[\w/.${}]+)+)", path.read_text())
        for name in block.split()
    }
    includes = {}
    for path in sorted((src / "lowtide").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        room = path.relative_to(src / "lowtide").parts[0]
        if room not in ALLOWED:
            yield path, f"room {room} is not in the table of tools/check_includes.py"
            continue
        for bracket, name in INCLUDE.findall(path.read_text()):
            ours = OURS.fullmatch(name)
            if bracket == '"' and not ours:
                yield path, f'"{name}" is to be written "lowtide/room/file.h"'
            elif bracket == "<" and path.suffix == ".h" and re.search(r"[./]", name):
                yield path, f"<{name}> is not of the standard library, in a public header"
            if not ours:
                continue
            target = src / name
            if not target.exists() and not target.with_name(target.name + ".in").exists():
                yield path, f'"{name}" does not exist'
            elif ours[1] != room and ours[1] not in ALLOWED[room]:
                yield path, f'"{name}": room {room} may not know room {ours[1]}'
            elif path in public and target.exists() and target not in public:
                yield path, f'"{name}" is not public, so a public header cannot include it'
            elif room == ours[1] == "solve" and path.stem != "table":
                other = solver_of(target, solve)
                if other != solver_of(path, solve)[:len(other)]:
                    yield path, f'"{name}": no solver includes another'
            includes.setdefault(str(path.with_suffix("")), set()).add(str(target.with_suffix("")))
    for path in sorted((root / "python/bindings").glob("*.*")):
        for _, name in INCLUDE.findall(path.read_text()):
            if OURS.fullmatch(name) and (src / name).exists() and src / name not in public:
                yield path, f'"{name}" is not public, and the bindings build against what is installed'
    for files in loops({file: others - {file} for file, others in includes.items()}):
        names = [str(Path(file).relative_to(src)) for file in files]
        yield Path(f"{files[0]}.h"), f"a loop of includes: {' <- '.join(names)}"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = [f"{path.relative_to(root)}: {fault}" for check in (faults, python_faults) for path, fault in check(root)]
    print("\n".join(found) or "every include and import runs with the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
