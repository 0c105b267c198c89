"""The pictures of the methods show what the methods do today."""

import re

import pytest
import torch
from benchmarks.method_pages import pages
from docs.pictures import FOLDER, PICTURES, Panel, draw, make_points, path_of

NUMBER = re.compile(r"-?\d+\.\d")
LARGEST = 60_000


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_the_method_makes_now(name):
    old, new = path_of(name).read_text(), draw(PICTURES[name]())
    assert NUMBER.sub("0", old) == NUMBER.sub("0", new), "make pictures"
    apart = [
        abs(float(a) - float(b)) for a, b in zip(*map(NUMBER.findall, (old, new)), strict=True)
    ]
    assert max(apart) < 0.25, "make pictures"  # of a pixel: another machine rounds otherwise


def test_no_picture_is_left_over_or_too_large():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES) - {"still"}
    assert max(path_of(name).stat().st_size for name in PICTURES) < LARGEST


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_page_of_a_method_has_its_picture_in_words_too(page):
    (words,) = re.findall(rf"!\[(.*?)\]\(pictures/{page.stem}\.svg\)", page.read_text())
    assert len(words) > 40


def test_points_are_where_they_belong():
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [-9.0, 9.0]])
    svg = draw([Panel("three points", points, points, span=(1.0, 1.0))])
    places = re.findall(r"<circle cx='(.*?)' cy='(.*?)' r='3'/>", svg)
    # The middle, the right upper corner, and what lies outside at the nearest edge.
    assert places == [("156.0", "102.0"), ("290.0", "26.0"), ("22.0", "26.0")]
    assert len(make_points()[0]) == 48
