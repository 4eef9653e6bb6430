"""What the site is made of: links and anchors of all pages, lists that must name every page, and the scripts that make pages of
docstrings and headers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ["LOWTIDE_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tools/docs"))
import check_links
import cpp_pages
import stage

PAGES = stage.pages_of(ROOT)
RESULTS = ROOT / "bench/results"


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """As renderers of Markdown make them of headings."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return found


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_and_anchors_lead_somewhere(page):
    faults = []
    for _, _, target in stage.LINK.findall(without_code((ROOT / page).read_text())):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        found = (ROOT / page).parent / path if path else ROOT / page
        if not found.exists() or anchor and found.suffix == ".md" and anchor not in anchors(found):
            faults.append(target)
    assert not faults


FILES = [f"/{file.relative_to(ROOT)}" for folder in ("src", "python", "tests", "tools", "bench", "examples")
         for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cpp", ".py")]


def missing_files(text, pattern):
    return [name for name in re.findall(pattern, text) if not any(file.endswith(f"/{name}") for file in FILES)]


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[0] != "bench"], ids=str)
def test_source_files_that_a_page_names_exist(page):
    assert not missing_files(without_code((ROOT / page).read_text()), r"`([\w./-]+\.(?:h|cpp|py))`")


def test_source_files_that_a_comment_names_exist():
    faults = {}
    for file in (ROOT / "src").rglob("*"):
        if file.suffix in (".h", ".cpp"):
            comments = re.findall(r"//.*", file.read_text())
            if names := missing_files("\n".join(comments), r"\b([a-z]\w*(?:/\w+)*\.(?:h|cpp|py))\b(?!\.\w)"):
                faults[str(file.relative_to(ROOT))] = names
    assert not faults


def rows(text):
    """Cells of tables, and the options of solvers as the command prints them."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield from line.strip("| ").split(" | ")
        elif option := re.match(r" +--option \S+  (.*)", line):
            yield option[1]


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[:2] == ("docs", "reference")], ids=str)
def test_rows_of_the_reference_have_sentences_of_at_most_thirty_words(page):
    faults = []
    for cell in rows((ROOT / page).read_text()):
        text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", cell))
        faults += [sentence for sentence in re.split(r"(?<=[.?!]) ", text) if len(re.findall(r"\S*\w\S*", sentence)) > 30]
    assert not faults


def test_the_list_of_pages_has_every_page():
    sections = stage.sections((ROOT / "docs/README.md").read_text())
    listed = {Path("docs", re.search(r"<docs/(.*)>", entry)[1]) for _, entries in sections for entry in entries}
    assert listed == {page for page in PAGES if page.parts[0] == "docs"} - {Path("docs/README.md")}


def test_every_result_stands_in_the_index():
    index = (RESULTS / "README.md").read_text()
    linked = set(re.findall(r"\]\(([\w.-]+)\)", index))
    for file in RESULTS.iterdir():
        # figures of a report have its name and an ending
        of_a_report = file.suffix != ".md" and any(file.name.startswith(name.removesuffix(".md")) for name in linked)
        assert file.name in linked | {"README.md"} or of_a_report, f"{file.name} is not in bench/results/README.md"


def test_the_change_log_names_the_version():
    version = re.search(r"project\(lowtide VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    first = re.search(r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first[1] == version
    assert first[2] == "not released yet" or re.fullmatch(r"\d{4}-\d{2}-\d{2}", first[2])


HEADER = """// Boxes, say \\
// docs/README.md, of List<int>.
#pragma once

#include <vector>

namespace lowtide {

class Later;

// A box:
// - wide
//   or not;
// - high.
//
//   drawn  |_|
class Box {
 public:
  int width() const { return width_; }

 private:
  struct Corner {
    int x;
  };

  int width_ = 0;

 public:
  // Of both.
  int area(int a,
           int b) const;
};

// `a` and b.
int sum(int a, int b);
int sum(int a, int b, int c);

enum class Kind { open, closed };
std::string_view to_string(Kind kind);

// By itself.

}  // namespace lowtide
"""


def test_a_header_becomes_text_and_code():
    header = cpp_pages.read_header(HEADER)
    names = [declaration.type_name for declaration in header.declarations]
    assert names == ["Box", None, "Kind", None, None]
    assert [declaration.title for declaration in header.declarations] == ["Box", "sum()", "Kind", "to_string()", None]
    box, sums, kind, to_string, alone = header.declarations
    assert "  int width() const { return width_; }" in box.code and "           int b) const;" in box.code
    assert not [line for line in box.code if "Corner" in line or "width_ =" in line or "private" in line]
    assert len(sums.code) == 2 and sums.comment == ["`a` and b."]
    assert to_string.code == ["std::string_view to_string(Kind kind);"] and not to_string.comment
    assert alone.comment == ["By itself."] and not alone.code

    page = Path("api/cpp/base.md")
    text = cpp_pages.markdown(box.comment, ROOT, page)
    assert "\n\n- wide\n  or not;\n- high.\n" in text and "```text\n  drawn  |_|\n```" in text
    head = cpp_pages.markdown(header.comment, ROOT, page)
    assert "[docs/README.md](../../docs/README.md)" in head and r"List\<int>" in head


def test_every_public_name_of_the_headers_is_on_a_page():
    for page, text in cpp_pages.pages(ROOT, Path("api/cpp")):
        room = ROOT / "src/lowtide" / page.stem
        for name in cpp_pages.public_headers(room):
            assert f"## {name}\n" in text
            for kind in re.findall(r"^(?:class|struct|enum class) (\w+)[^;]*\{", (room / name).read_text(), re.MULTILINE):
                assert f"### {kind}\n" in text, f"{name}: {kind}"


def test_pages_are_made_of_docstrings_and_signatures(tmp_path):
    griffe = pytest.importorskip("griffe", reason="no griffe (tools/deps site)")
    import python_pages

    (tmp_path / "box.py").write_text('''"""Boxes."""
__all__ = ["Box", "BoxError", "pack"]

class BoxError(ValueError):
    """A bad box."""

class Box:
    """One box."""
    def __init__(self, width: int, /, *, high: bool = False) -> None: ...
    @property
    def area(self) -> int:
        """Of both."""
    @staticmethod
    def load(path: str) -> "Box":
        """Reads one."""
    def _hidden(self): ...

def pack(boxes: list[Box], *more: Box, work: int | None = None, **options: str) -> Box:
    """Packs.

    boxes: all of them,
        in any order.
    work: how much.
    """
''')
    text = python_pages.page_of(griffe.load("box", search_paths=[tmp_path], allow_inspection=False))
    assert "{py:function} pack(boxes: list[Box], *more: Box, work: int | None = None, **options: str) -> Box" in text
    assert "{py:class} Box(width: int, /, *, high: bool = False)" in text
    assert "{py:property} area\n:type: int" in text and ":staticmethod:" in text and "_hidden" not in text
    assert "- **boxes**: all of them,\n  in any order.\n- **work**: how much." in text
    assert text.index("{py:function}") < text.index("{py:class}") < text.index("{py:exception} BoxError")


def test_pages_are_staged_with_links_that_the_site_has(tmp_path):
    files = set()
    text = ("[a](../README.md#x) [b](../bench) [`c`](../CMakeLists.txt) ![d](images/d.png) [e](https://e.org/)\n"
            "```\n[f](../bench)\n```\n")
    root = tmp_path / "root"
    for path in ("bench/x.py", "README.md", "CMakeLists.txt", "docs/images/d.png"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    staged = stage.with_site_links(text, Path("docs/page.md"), root, files)
    assert staged == ("[a](../index.md#x) b [`c`](../CMakeLists.txt) ![d](images/d.png) [e](https://e.org/)\n"
                      "```\n[f](../bench)\n```\n")
    assert files == {Path("CMakeLists.txt"), Path("docs/images/d.png")}


def test_a_link_of_the_site_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top"></a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html#gone"></a><img src="none.png"></p>')
    assert sorted(check_links.faults(tmp_path)) == ["b.html: a.html#gone leads to no element of its page",
                                                    "b.html: none.png leads to no file"]
    run = [sys.executable, ROOT / "tools/docs/check_links.py", tmp_path]
    assert subprocess.run(run, capture_output=True).returncode == 1
