"""Axes and text of the plots."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.report import drawing
from regaug.report.drawing import Axis

numbers = st.floats(-1e12, 1e12)


@given(st.lists(numbers, max_size=5), st.integers(1, 9))
def test_every_axis_has_ticks_on_it_and_holds_its_values(values, about):
    axis = Axis.around(values, 0.0, 100.0)
    assert all(axis.holds(value) for value in values)
    ticks = axis.ticks(about)
    assert 1 <= len(ticks) <= 2 * about + 2
    assert all(0.0 <= axis(value) <= 100.0 for value, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


@pytest.mark.parametrize("high", [3.0, 700_000.0, 1.3e9])
def test_labels_below_an_axis_do_not_touch(high):
    axis = Axis(-high, high, 122.0, 352.0)
    places = sorted((axis(value), label) for value, label in drawing._fitting_ticks(axis))
    for (left, name), (right, other) in pairwise(places):
        assert right - left > 3.5 * (len(name) + len(other))


def test_large_numbers_are_told_in_thousands_and_millions():
    labels = [label for _, label in Axis(0.0, 1_300_000.0, 0.0, 100.0).ticks()]
    assert labels == ["0", "200k", "400k", "600k", "800k", "1,000k", "1,200k"]
    assert Axis(0.0, 30e6, 0.0, 100.0).ticks(3)[1][1] == "10M"
    assert [label for _, label in Axis(0.0, 9_000.0, 0.0, 100.0).ticks(3)][1] == "5,000"


def test_values_outside_of_an_axis_lie_at_its_end():
    axis = Axis(0.0, 10.0, 100.0, 0.0)
    assert [axis(value) for value in (-5.0, 0.0, 5.0, 99.0)] == [100.0, 100.0, 50.0, 0.0]


@given(st.text())
def test_any_text_can_be_drawn(content):
    svg = drawing.drawing(10, drawing.text(0, 0, content, style="small"), content)
    root = ElementTree.fromstring(drawing.as_file(svg).encode())
    found = [element.text or "" for element in root if element.tag.endswith("text")]
    assert len(found) == 1
    if content.isprintable():
        assert found == [content]


def test_a_file_needs_no_variables_and_has_a_size():
    file = drawing.as_file(drawing.drawing(123, drawing.mark(1, 2, "good-dot"), "a dot"))
    assert "var(" not in file
    assert drawing.LIGHT["good"] in file
    assert drawing.DARK["good"] in file
    assert ElementTree.fromstring(file).get("height") == "123"


def test_page_style_takes_all_colors_from_the_page():
    style = drawing.page_style()
    assert "#" not in style
    assert "var(--good)" in style


@pytest.mark.parametrize("palette", [drawing.LIGHT, drawing.DARK])
@pytest.mark.parametrize("name", ["ink", "muted", "good", "bad"])
def test_colors_of_text_have_contrast_enough(palette, name):
    def luminance(color):
        parts = [number / 255 for number in bytes.fromhex(color[1:])]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(luminance(palette[key]) for key in (name, "paper"))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
