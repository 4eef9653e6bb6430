"""The checks of the house must fail where they should: on a small tree that breaks each rule."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ["LOWTIDE_SOURCE_DIR"])
SOLVER = '#pragma once\nclass A : public Solver {};\n'
FINE = {
    "src/lowtide/base/CMakeLists.txt": "lowtide_room(NAME base\n  HEADERS\n    units.h)",
    "src/lowtide/base/units.h": "#pragma once\n#include <cstdint>\n",
    "src/lowtide/base/inner.h": '#pragma once\n#include "lowtide/base/units.h"\n',
    "src/lowtide/plan/plan.h": "#pragma once\n",
    "src/lowtide/solve/a/a.h": SOLVER,
    "src/lowtide/solve/kumar/common/shared.h": "#pragma once\n",
    "src/lowtide/solve/kumar/tree/tree.h": '#pragma once\n#include "lowtide/solve/kumar/common/shared.h"\n',
    "python/lowtide/torch/tensors/a.py": "from ...frontend.errors import some\nfrom .b import other\n",
    "python/lowtide/frontend/planning/a.py": "from .. import errors\nfrom . import b\nimport lowtide\n",
    "src/lowtide/solve/table.cpp": '#include "lowtide/solve/a/a.h"\n',
}


def check(name, folder, files):
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return subprocess.run(
        [sys.executable, ROOT / f"tools/check_{name}.py", folder], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["includes", "style"])
def test_a_tree_without_fault_passes(name, tmp_path):
    assert check(name, tmp_path, FINE).returncode == 0


@pytest.mark.parametrize("name, path, text, said", [
    ("includes", "src/lowtide/base/x.cpp", '#include "lowtide/solve/a/a.h"', "may not know room solve"),
    ("includes", "src/lowtide/io/x.cpp", '#include "lowtide/solve/a/a.h"', "may not know room solve"),
    ("includes", "src/lowtide/transforms/x.cpp", '#include "lowtide/plan/plan.h"', "may not know room plan"),
    ("includes", "src/lowtide/base/units.h", "#include <fmt/core.h>", "not of the standard library"),
    ("includes", "src/lowtide/base/x.cpp", '#include "units.h"', "is to be written"),
    ("includes", "src/lowtide/base/x.cpp", '#include "lowtide/base/y.h"', "does not exist"),
    ("includes", "src/lowtide/solve/b/b.cpp", '#include "lowtide/solve/a/a.h"', "no solver includes another"),
    ("includes", "src/lowtide/solve/interface/x.cpp", '#include "lowtide/solve/a/a.h"', "no solver includes another"),
    ("includes", "src/lowtide/solve/kumar/path/path.cpp", '#include "lowtide/solve/kumar/tree/tree.h"',
     "no solver includes another"),
    ("includes", "src/lowtide/solve/b/b.cpp", '#include "lowtide/solve/kumar/common/shared.h"',
     "no solver includes another"),
    ("includes", "src/lowtide/base/units.h", '#include "lowtide/base/inner.h"', "is not public"),
    ("includes", "python/bindings/x.cpp", '#include "lowtide/base/inner.h"', "is not public"),
    ("includes", "src/lowtide/base/units.cpp", '#include "lowtide/base/inner.h"', "a loop of includes"),
    ("includes", "src/lowtide/attic/x.cpp", "", "not in the table"),
    ("includes", "python/lowtide/torch/tensors/x.py", "from ..graphs.calls import Calls", "may not know room torch.graphs"),
    ("includes", "python/lowtide/torch/device/x.py", "from lowtide.torch.ranks import shared", "may not know room torch.ranks"),
    ("includes", "python/lowtide/torch/tensors/x.py", "if TYPE_CHECKING:\n    from ..graphs import calls",
     "may not know room torch.graphs"),
    ("includes", "python/lowtide/frontend/x.py", "def later():\n    import torch.fx", "imports no framework"),
    ("includes", "python/lowtide/torch/tensors/x.py", "from onnx import helper", "only room onnx imports it"),
    ("includes", "python/lowtide/frontend/x.py", "from .planning import a", "may not know room frontend.planning"),
    ("includes", "python/lowtide/torch/tensors/b.py", "from .a import one", "a loop of imports"),
    ("includes", "python/lowtide/attic/x.py", "", "not in the table"),
    ("style", "src/lowtide/base/units.h", "#pragma once\n" * 201, "201 lines, more than 200"),
    ("style", "tests/base/x.cpp", "\n" * 501, "501 lines, more than 500"),
    ("style", "src/lowtide/base/units.h", "", "no #pragma once"),
])
def test_a_fault_is_named(name, path, text, said, tmp_path):
    result = check(name, tmp_path, {**FINE, path: text})
    assert result.returncode == 1
    assert said in result.stdout and (path in result.stdout or "loop" in said)


def test_deps_says_what_to_type_where_it_may_not_install(tmp_path):
    """A machine with a shell and nothing else."""
    for tool in ["bash", "dirname", "env", "id", "grep", "sort", "head", "awk"]:
        (tmp_path / tool).symlink_to(subprocess.check_output(["which", tool], text=True).strip())
    result = subprocess.run(
        [ROOT / "tools/deps", "build"], capture_output=True, text=True,
        env={"PATH": str(tmp_path), "LOWTIDE_NO_INSTALL": "1"})
    assert result.returncode == 1
    assert "apt-get install --no-install-recommends --no-upgrade g++ cmake" in result.stderr
    assert result.stdout == ""


def test_suites_of_one_name_that_end_at_once_are_all_counted(tmp_path):
    """Six suites, of which one fails, end while others are started: none may be lost, nor take another's results."""
    suites = [tmp_path / str(i) / "test_same.py" for i in range(6)]
    for i, suite in enumerate(suites):
        suite.parent.mkdir()
        suite.write_text(f"def test_it(): assert {i != 2}")
    run = [sys.executable, ROOT / "tools/suites.py", tmp_path / "release", tmp_path / "results", "--jobs", "3"]
    done = subprocess.run([*run, *suites], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stdout.count(" passed ") == 5 and done.stdout.count(" FAILED (1) ") == 1
    results = sorted((tmp_path / "results").iterdir())
    summary = subprocess.run([sys.executable, ROOT / "tools/test_summary.py", *results], capture_output=True, text=True)
    assert summary.returncode == 1 and summary.stdout.endswith("5 passed, 1 failed, 0 skipped\n")
