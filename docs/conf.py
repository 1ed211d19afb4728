"""Sphinx builds these pages: `bash docs/build.sh`."""

project = "jaxenc"
html_title = "jaxenc"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
# A heading is a target: [rows](building_data.md#rows).
myst_heading_anchors = 3
# In our docstrings single backticks mark code.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Lines in code blocks start a command or show output: no language to colour.
highlight_language = "none"
