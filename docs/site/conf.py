# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx makes a site of the docs: see tools/site, which puts everything below one folder."""

import os
import sys

sys.path.insert(0, os.environ["NEP49_PACKAGE"])
os.environ.setdefault("NEP49_HANDLERS", os.environ["NEP49_PACKAGE"])  # nothing is loaded here

project = "conform"
author = "the authors of conform"
copyright = "its authors, BSD-3-Clause; conform " + os.environ["CONFORM_VERSION"]  # pylint: disable=redefined-builtin
release = version = os.environ["CONFORM_VERSION"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
nitpicky = True
# What numpydoc says of types in words, and NumPy's, whose own site is not asked.
nitpick_ignore_regex = [
    ("py:class", r"optional|sequence|data type|context manager|\{'C'|'F'\}|numpy\.ndarray")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
myst_heading_anchors = 4
highlight_language = "none"

html_theme = "pydata_sphinx_theme"
html_title = "conform"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "collapse_navigation": True,
}
