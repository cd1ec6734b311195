"""Sphinx's configuration of the site. `ci/docs` makes the sources that it reads."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent

project = "clfuse"
author = "the clfuse developers"
copyright = "2026, the clfuse developers"
release = re.search(r'version="(.*?)"', (TOP / "setup.py").read_text(encoding="utf-8"))[1]
version = release

extensions = ["myst_parser", "sphinx.ext.napoleon"]
root_doc = "index"
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
# In docstrings a word in single backticks is a name; one that leads nowhere is code.
default_role = "py:obj"
python_maximum_signature_line_length = 90
highlight_language = "python"

html_theme = "furo"
pygments_style = "default"
pygments_dark_style = "github-dark"
html_title = f"clfuse {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = []
html_show_sphinx = False
html_copy_source = False
# Results show no text of the pages: a browser does not let a page read files beside it.
html_show_search_summary = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0a5c8f", "color-brand-content": "#0a5c8f"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f5", "color-brand-content": "#7cc4f5"},
}
