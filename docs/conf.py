"""The guides: `make docs` builds them into build/docs, warnings as errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "Dovetail"
author = "The Dovetail authors"
copyright = author
version = release = (HERE.parent / "VERSION").read_text().strip()

extensions = ["myst_parser", "header_reference"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# The op reference is included below a heading. Links to pages outside of docs are for readers of the files, and
# tests/unit/test_docs.py checks them.
suppress_warnings = ["myst.header", "myst.xref_missing"]
exclude_patterns = ["extensions", "README.md"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_title = f"Dovetail {version}"
html_copy_source = False
