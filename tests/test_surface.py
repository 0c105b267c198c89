"""The public surface changes only on purpose."""

import json

from tests.surface import FILE, surface


def test_the_public_surface_is_the_one_that_is_listed():
    assert surface() == json.loads(FILE.read_text()), "if it was meant: make surface"
