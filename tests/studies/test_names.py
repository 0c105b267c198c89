"""What the rows of a study are called."""

from regaug.studies.names import every_net, full_name, listed, reference_name
from regaug.studies.statistics import analyze


def test_short_names_are_explained():
    names = ("erm", "mixup", "ridge", "gp", "nets", "auto", "other")
    errors = {name: [1.0, 2.0] for name in names}
    beside = {"baselines": ["ridge", "gp"], "combined": ["nets", "auto", "other"]}
    found = analyze(errors, **beside, test_share=0.25)
    assert {row.name: full_name(row, "erm") for row in found.rows} == {
        "erm": "plain training",
        "mixup": "mixup",
        "ridge": "ridge regression",
        "gp": "a Gaussian process",
        "nets": "the ensemble of all nets",
        "auto": "the blend of nets and baselines",
        "other": "other",
    }
    assert full_name(found.row("mixup"), "mixup") == "mixup"
    assert reference_name("no-rows") == "no new rows"
    assert (every_net("erm"), every_net("no-rows")) == ("every net", "the regressor with any rows")


def test_names_are_listed_in_words():
    assert listed(["erm"]) == "erm"
    assert listed(["erm", "ridge"]) == "erm and ridge"
    assert listed(list("abcd")) == "a, b, c and d"
    assert listed(list("abcdefg")) == "a, b, c and 4 others"
