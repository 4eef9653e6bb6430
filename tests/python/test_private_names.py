"""lowtide.torch.compat alone names what is private to PyTorch, and has no block that no supported version needs."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "python/lowtide"
COMPAT = ROOT / "torch/compat"


def supported():
    """OLDEST and NEWEST of compat/versions.py, which cannot be imported without torch."""
    tree = ast.parse((COMPAT / "versions.py").read_text())
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "(OLDEST, NEWEST)")


def is_private(path):
    """Is one of the names of a dotted path private?  Operators are called what their kernels are called."""
    names = path.split(".")
    return names[0] == "torch" and names[1:2] != ["ops"] and any(re.match(r"_(?!_)", name) for name in names)


def private_names(source):
    """What a file imports of PyTorch, or reads of `torch` and its public modules, under a private name."""
    known, found = {"torch": "torch"}, set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module.split(".")[0] == "torch":
            for name in node.names:
                known[name.asname or name.name] = f"{node.module}.{name.name}"
                found.add(f"{node.module}.{name.name}")
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.Attribute):
            at, names = node, []
            while isinstance(at, ast.Attribute):
                names.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name) and at.id in known:
                found.add(".".join([known[at.id], *reversed(names)]))
    return {name for name in found if is_private(name)}


def stale_blocks(source, oldest, newest):
    """Calls of before and since in a file whose answer is the same for all versions."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
             and ast.unparse(node.func) in ("before", "since") and all(isinstance(a, ast.Constant) for a in node.args))
    return [ast.unparse(call) for call in calls
            if not oldest < tuple(ast.literal_eval(a) for a in call.args) <= newest]


def test_no_private_name_stands_elsewhere():
    elsewhere = {str(path.relative_to(ROOT)): names for path in ROOT.rglob("*.py") if COMPAT not in path.parents
                 if (names := private_names(path.read_text()))}
    assert not elsewhere, "give these a public name in lowtide/torch/compat"


def test_private_names_are_found():
    found = private_names("import torch._dynamo\nfrom torch.utils import _pytree\nfrom torch import nn, ops\nimport torch\n"
                          "torch._C._x(1), nn._y, ops.aten._z, torch.__version__, t._version, torch.ops.aten._to_copy")
    assert found == {"torch._dynamo", "torch.utils._pytree", "torch._C", "torch._C._x", "torch.nn._y"}


def test_no_block_is_older_than_the_oldest_version():
    oldest, newest = supported()
    assert oldest < newest
    for path in COMPAT.glob("*.py"):
        assert not stale_blocks(path.read_text(), oldest, newest), f"{path.name}: no version that is supported needs this"


def test_stale_blocks_are_found():
    source = "if before(2, 11): a\nif before(2, 12): b\nif since(2, 10): c\nif since(2, 13): d\nif since(2, 15): e"
    assert stale_blocks(source, (2, 11), (2, 14)) == ["before(2, 11)", "since(2, 10)", "since(2, 15)"]
