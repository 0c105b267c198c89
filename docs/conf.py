"""How Sphinx builds the documentation: `make docs` calls it, `site/` is what comes out."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "src")]

import sklearn  # noqa: E402

import regaug  # noqa: E402 - from this checkout, whatever else is installed

sklearn.set_config(display="text")  # estimators in the gallery are shown as they print

project = "regaug"
author = "the regaug authors"
version = release = regaug.__version__
language = "en"
smartquotes = False  # it would make one dash of the two of an option

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Ours, in docs/_ext.
    "api_page",
    "demo_report",
    "mathml",
    "navigation",
    "notebooks",
    "reading_aids",
    "references",
]
templates_path = ["_templates"]
# Beside its pages the gallery puts notebooks to be downloaded.
exclude_patterns = ["_ext", "_static", "_templates", "gallery", "examples/*.ipynb"]
nitpicky = True

# Markdown. Headings have the anchors that GitHub gives them.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_digits = False
myst_dmath_allow_space = False

# The API: docstrings in Google style, with Sphinx's roles.
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autoclass_content = "class"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# The gallery: docs/gallery/plot_*.py are run, and come out in docs/examples.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"[/\\]plot_",
    "backreferences_dir": "examples/used",
    "doc_module": ("regaug",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 0,
    "write_computation_times": False,  # its page asks other hosts for scripts
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "regaug"
html_static_path = ["_static"]
html_css_files = ["regaug.css"]
html_js_files = ["regaug.js"]
html_favicon = "_static/regaug.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "logo": {"text": "regaug"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": [], "faq": []}
copyright = "the regaug authors, MIT license"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
