"""Fails where an include runs against the arrows between the rooms.

Also: public headers include only the standard library and Lowtide, every Lowtide include is
written "lowtide/room/file.h" and exists, and no solver includes another.
"""
import re
import sys
from pathlib import Path

# What each room may include besides itself; all of what its neighbours may is spelled out.
CORE = ["base", "graph", "device", "plan", "sim"]
ALLOWED = {
    "base": [],
    "graph": CORE[:1],
    "device": CORE[:2],
    "plan": CORE[:3],
    "sim": CORE[:4],
    "engines": CORE[:1],
    "solve": CORE + ["engines"],
    "rewrite": CORE,
    "layout": CORE,
    "driver": CORE + ["engines", "solve", "rewrite", "layout"],
    "io": CORE,
    "cli": CORE + ["engines", "solve", "rewrite", "layout", "driver", "io"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
OURS = re.compile(r"lowtide/(\w+)/(.+)")


def solver_of(path: Path, solve: Path) -> str | None:
    """The solver a file of room solve belongs to: its folder, or its stem if it defines one."""
    inside = path.relative_to(solve)
    if len(inside.parts) > 1:
        return inside.parts[0]
    texts = [path.with_suffix(s) for s in (".h", ".cpp")]
    defines = any(re.search(r":\s*public\s+Solver\b", t.read_text()) for t in texts if t.exists())
    return path.stem if defines else None


def faults(root: Path):
    src = root / "src"
    solve = src / "lowtide/solve"
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
            elif room == ours[1] == "solve" and path.stem != "table":
                other = solver_of(target, solve)
                if other and other != solver_of(path, solve):
                    yield path, f'"{name}": no solver includes another'


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = [f"{path.relative_to(root)}: {fault}" for path, fault in faults(root)]
    print("\n".join(found) or "every include runs with the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
