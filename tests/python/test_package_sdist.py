"""The sources that people build from: whole, without what only this repository needs, unpacked for `make wheels`."""

import sys
import tarfile

import pytest

pytest.importorskip("scikit_build_core", reason="tools/deps wheel installs it")

from package_support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from unpack_sdist import unpack, write_sdist


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write_sdist(tmp_path_factory.mktemp("dist"))


def test_the_archive_has_the_files_of_a_build_and_no_others(archive):
    with tarfile.open(archive) as sources:
        names = {name.split("/", 1)[1] for name in sources.getnames()}
    assert {"examples/resnet50-train.graph.json.gz", "CMakeLists.txt", "cmake/Room.cmake", "pyproject.toml", "LICENSE",
            "README.md", "python/lowtide/__init__.py", "python/bindings/module.cpp"} <= names
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*") if path.is_file()}
    assert ours <= names
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"cmake", "examples", "python", "src"}
    assert {name for name in names if name.startswith("examples/")} == {"examples/resnet50-train.graph.json.gz"}


def test_unchanged_files_keep_their_time(archive, tmp_path):
    """So that only what has is compiled again."""
    unpack(archive, tmp_path)
    same, changed, gone = (tmp_path / name for name in ("README.md", "CMakeLists.txt", "src/old.cpp"))
    before = same.stat().st_mtime_ns
    changed.write_text("")
    gone.write_text("")
    unpack(archive, tmp_path)
    assert same.stat().st_mtime_ns == before and not gone.exists()
    assert changed.read_bytes() == (ROOT / "CMakeLists.txt").read_bytes()
