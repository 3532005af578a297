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
suppress_warnings = ["myst.header"]  # the op reference is a file of its own, whose first heading is a page's
exclude_patterns = ["extensions", "README.md"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_title = f"Dovetail {version}"
html_copy_source = False
