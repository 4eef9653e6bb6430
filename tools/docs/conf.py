"""Sphinx's settings for the site, which tools/site builds."""
import os
import re
from pathlib import Path

root = Path(os.environ["LOWTIDE_SOURCE_DIR"])
project = "Lowtide"
author = "the Lowtide authors"
release = version = re.search(r"project\(lowtide VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6  # the anchors that other renderers of Markdown give to headings
root_doc = "index"
smartquotes = False  # texts have code in them
highlight_language = "none"  # what a block without a language is
exclude_patterns = ["live"]
suppress_warnings = [
    "misc.highlighting_failure",  # a fragment of a file is no file
    "myst.header",  # tables that a script writes begin below a first heading
]
add_module_names = False
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Lowtide {version}"
html_static_path = [str(root / "tools/docs/static")]
html_css_files = ["lowtide.css"]
html_extra_path = [str(root / "build/site-source/live")]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
linkcheck_timeout = 20
