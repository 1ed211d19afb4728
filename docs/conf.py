"""Sphinx builds these pages: `bash docs/build.sh`."""

import re
from importlib import import_module
from typing import Any

from docutils.nodes import Node
from sphinx.util.docutils import SphinxDirective

project = "jaxenc"
html_title = "jaxenc"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["static"]
html_show_copyright = False
html_css_files = ["style.css"]
# A heading is a target: [rows](building_data.md#rows).
myst_heading_anchors = 3
# In our docstrings single backticks mark code.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Lines in code blocks start a command or show output: no language to colour.
highlight_language = "none"
# The prompt of a command is not copied, nor is what the command printed.
copybutton_prompt_text = "$ "


def fields_as_a_list(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Shows the lines `name: meaning` in the docstring of a class of settings (`jaxenc/fields.py`) as a list."""
    if not isinstance(obj, type):
        return
    entry, another = re.compile(r"([a-z]\w*(?:, [a-z]\w*)*): (.*)"), re.compile(r"[.;] [a-z]\w*(, [a-z]\w*)*: ")
    shown: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        match = entry.match(line)
        # An entry ends with its line or goes on indented; a sentence that begins like one goes on at the margin, or in the same line.
        if match and not another.search(line) and (not after or after.startswith(" ") or entry.match(after)):
            if shown and shown[-1] and shown[-1][0] != " ":
                shown.append("")
            shown.append(f"`{match[1]}`")
            line = f"    {match[2]}"
        elif line and line[0] != " " and shown and shown[-1].startswith(" "):
            shown.append("")
        shown.append(line)
    lines[:] = shown


class Kinds(SphinxDirective):
    """`.. kinds:: jaxenc.families.MODELS` shows the classes of a registry, {kind: class}, in its order."""

    required_arguments = 1

    def run(self) -> list[Node]:
        module, _, name = self.arguments[0].rpartition(".")
        classes = getattr(import_module(module), name).values()
        return self.parse_text_to_nodes("\n".join(f".. autoclass:: {cls.__module__}.{cls.__qualname__}" for cls in classes))


def setup(app: Any) -> None:
    """Sphinx calls it."""
    app.add_directive("kinds", Kinds)
    app.connect("autodoc-process-docstring", fields_as_a_list)
