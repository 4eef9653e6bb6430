"""The wheel in a fresh environment that has nothing else: no compiler, no numpy, no torch."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from package_support import CHAIN, ROOT

WHEELS = sorted((ROOT / "build/wheels").glob("lowtide-*.whl"))
if not WHEELS:
    pytest.skip("tools/wheel builds it", allow_module_level=True)
WHEEL = WHEELS[-1]
TORCH = "torch<2.15,>=2.11"  # as pip writes what pyproject.toml says


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The folder of programs of an environment with the wheel, and what its processes see."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    subprocess.run([sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-index",
                    "--no-deps", "--disable-pip-version-check", WHEEL], check=True)
    programs = folder / "bin"
    assert not any(shutil.which(name, path=str(programs)) for name in ("cc", "c++", "gcc", "g++", "clang", "cmake"))
    return programs, {"PATH": str(programs), "HOME": str(folder)}


def run(fresh, program, *arguments):
    programs, env = fresh
    done = subprocess.run([programs / program, *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env=env, cwd=programs)
    return done.returncode, done.stdout, done.stderr


def test_the_command_and_the_module_are_one(fresh):
    code, version, _ = run(fresh, "lowtide", "--version")
    assert code == 0 and re.fullmatch(r"lowtide \d+\.\d+\.\d+\n", version)
    assert run(fresh, "python", "-m", "lowtide", "--version") == (0, version, "")
    assert run(fresh, "python", "-m", "lowtide", "plan")[0] == 2


def test_a_fresh_environment_plans(fresh, tmp_path):
    code, out, err = run(fresh, "python", "-W", "error", "-c", f"""
import sys, lowtide
graph = lowtide.Graph.from_dict({CHAIN!r})
outcome = lowtide.plan(graph, "100%", time=5)
outcome.save({str(tmp_path / 'chain.plan.json')!r})
graph.save({str(tmp_path / 'chain.graph.json.gz')!r})
print(outcome.status, lowtide.verify(graph, outcome.plan).peak, lowtide.simulate(graph, outcome.plan).memory.nbytes % 8)
try:
    import numpy
except ImportError:
    print("no numpy")
""")
    assert (code, err) == (0, "")
    assert out == "optimal 24 0\nno numpy\n"
    assert run(fresh, "lowtide", "verify", tmp_path / "chain.graph.json.gz", tmp_path / "chain.plan.json")[0] == 0


def test_the_wheel_has_the_graph_of_the_demo(fresh, tmp_path):
    code, out, err = run(fresh, "lowtide", "demo", "--no-open", "--time", "1", "-o", tmp_path / "x.html")
    assert (code, err) == (0, "") and str(tmp_path / "x.html") in out and "ResNet-50" in out
    assert (tmp_path / "x.html").read_text().rstrip().endswith("</html>")


def test_a_torch_that_is_missing_is_one_sentence(fresh):
    code, _, err = run(fresh, "python", "-c", "import lowtide.torch")
    said = err.splitlines()[-1]
    assert code == 1 and said.startswith("lowtide.torch.UnsupportedTorchError: lowtide.torch needs PyTorch, and none is installed here; ")
    assert set(said.rpartition("pip install ")[2].strip("'").removeprefix("torch").split(",")) == set(TORCH.removeprefix("torch").split(","))
    caught = "import lowtide\ntry: lowtide.torch\nexcept ImportError as error: print(error.name)"
    assert run(fresh, "python", "-c", caught) == (0, "torch\n", "")


def test_contents_of_the_wheel():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
        stubs = wheel.read("lowtide/_core.pyi").decode()
    assert [name for name in names if ".so" in name] == [n for n in names if n.startswith("lowtide/_core.")
                                                         and n.endswith(".so")]
    assert "lowtide/py.typed" in names
    assert not [name for name in names if name.startswith(("lowtide/tools", "torch_capture", "tests", "include", "lib"))]
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/lowtide").rglob("*.py")}
    assert sources <= set(names)
    needed = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    extras = {name: {re.match(r"\w+", line)[0] for line in needed if re.search(rf"extra == .{name}\b", line)}
              for name in re.findall(r"^Provides-Extra: (.*)$", metadata, re.MULTILINE)}
    assert extras == {"engines": {"ortools", "highsbox"}, "jax": {"jax"}, "onnx": {"onnx"}, "torch": {"torch"}}
    assert all("extra ==" in line for line in needed)  # by itself it needs nothing
    assert "License-Expression: Apache-2.0" in metadata
    compile(stubs, "_core.pyi", "exec")
    for name in ("class Graph:", "class Outcome:", "def plan(", "def curve(", "class Error(ValueError):"):
        assert name in stubs
    assert "handle" not in stubs and "std::" not in stubs


def test_the_wheel_needs_only_libraries_of_every_linux(fresh):
    if shutil.which("ldd") is None:
        pytest.skip("no ldd")
    site = next((fresh[0].parent / "lib").glob("python*/site-packages/lowtide"))
    for binary in (*site.glob("_core*.so"), fresh[0] / "lowtide"):
        listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
        needed = {re.split(r"[.\s]", line.strip().split("/")[-1])[0] for line in listed.splitlines()}
        assert needed <= {"linux-vdso", "linux-gate", "libstdc++", "libm", "libgcc_s", "libc", "libz", "ld-linux-x86-64",
                          "ld-linux-aarch64", "libpthread", "librt", "libdl"}, binary


def test_torch_finds_the_backend():
    if sys.version_info < (3, 10):
        pytest.skip("asks in another way")
    found = importlib.metadata.entry_points(group="torch_dynamo_backends", name="lowtide")
    assert [entry.value for entry in found] == ["lowtide.torch:backend"]


def test_stubs_say_what_the_module_has():
    lowtide = pytest.importorskip("lowtide")
    stubs = (Path(lowtide.__file__).parent / "_core.pyi").read_text()
    from lowtide import _core

    ours = [name for name in lowtide.__all__ if hasattr(_core, name)]  # the others are Python
    assert "plan" in ours
    for name in ours:
        assert re.search(rf"^(class|def) {name}\b|^{name}\b", stubs, re.MULTILINE), name
