"""The methods of this package, each with its defaults, its space and the settings to try first."""

from regaug.augment import (
    ADA,
    CEMS,
    FOMA,
    CMixup,
    FeatureMix,
    GaussianNoise,
    Identity,
    Mixup,
    SKMixup,
    TeacherRows,
)
from regaug.methods.method import INPUT, LAYER, LAYERS, SHARE, Method
from regaug.methods.space import Between, OneOf, Space

# How often and how long a method acts, in every search: from almost never to always.
_STRENGTH: Space = {"p": Between(0.05, 1.0), "anneal": OneOf((None, 0.3, 0.7, 1.0))}
_PLACE: Space = {"place": OneOf((INPUT, LAYER))}
_MIXING: Space = {**_STRENGTH, "alpha": Between(0.02, 2.0, log=True)}
# FOMA: how much of the small directions is left, half of it on average or next to nothing.
_REST: Space = {"alpha": Between(0.2, 5.0, log=True), "lam_range": OneOf((None, (0.0, 0.3)))}
_FOMA: Space = {**_STRENGTH, "sampler": OneOf(("random", "nearest")), **_PLACE, **_REST}
_START = {"sampler": "random", "place": INPUT, "p": 1.0, "anneal": 0.7}
_NEAR = {**_START, "sampler": "nearest", "alpha": 1.0, "lam_range": None}
# Much of the noise taken out of random batches, for data near a plane.
_STRONG = {"sampler": "random", "lam_range": (0.0, 0.3)}
# First settings are portfolios that were learned on real tables, most of which act seldom: see
# benchmarks/results/atlas/methods.md. The strong ones of FOMA cost there; they find a plane.

OWN: dict[str, Method] = {
    "erm": Method(
        "plain training",
        Identity,
        {"sampler": "random", "place": INPUT},
        formula="(x, y)",
        paper="Vapnik, NIPS 1991",
    ),
    "noise": Method(
        "add Gaussian noise to inputs and targets",
        GaussianNoise,
        {**_START, "sigma": 0.01},
        {**_STRENGTH, "sigma": OneOf((0.1, 0.01, 0.001, 0.0001))},
        starts=({"p": 0.3, "anneal": None}, {"p": 0.2, "anneal": 0.3, "sigma": 0.1}),
        formula="(x, y) + sigma z, z ~ N(0, 1)",
        paper="Bishop, Neural Computation 1995",
    ),
    "mixup": Method(
        "mix every sample with a random one",
        Mixup,
        {**_START, "alpha": 1.0},
        _MIXING,
        starts=(
            {"p": 0.25, "anneal": 0.3},
            {"p": 0.4, "anneal": None, "alpha": 0.4},
            {"p": 0.65, "anneal": 0.3, "alpha": 0.15},
        ),
        formula="lam (x_i, y_i) + (1 - lam) (x_j, y_j), lam ~ Beta(alpha, alpha)",
        paper="Zhang et al., ICLR 2018, arXiv 1710.09412",
    ),
    "manifold-mixup": Method(
        "mix every sample with a random one at a hidden layer, another one in every step",
        Mixup,
        {**_START, "place": LAYERS, "alpha": 1.0},
        _MIXING,
        starts=(
            {"p": 0.3, "alpha": 1.2},
            {"p": 0.35, "anneal": 0.3, "alpha": 0.03},
            {"p": 0.75, "anneal": None, "alpha": 1.6},
        ),
        formula="mixup of (h(x), y), h the layers up to that one",
        paper="Verma et al., ICML 2019, arXiv 1806.05236",
    ),
    "c-mixup": Method(
        "mix every sample with one whose target is close",
        CMixup,
        {**_START, "sampler": "kernel-pairs", "paired": True, "alpha": 1.0, "bandwidth": 0.3},
        {**_STRENGTH, **_PLACE, **_MIXING, "bandwidth": Between(0.01, 3.0, log=True)},
        starts=(
            {"p": 0.1, "anneal": 1.0, "alpha": 0.08, "bandwidth": 0.01},
            {"p": 0.9, "anneal": 1.0, "alpha": 0.05, "bandwidth": 0.75},
        ),
        sampler_options=("bandwidth",),
        formula="mixup, P(j) ∝ exp(-(y_i - y_j)^2 / (2 bandwidth^2))",
        paper="Yao et al., NeurIPS 2022, arXiv 2210.05775",
    ),
    "ada": Method(
        "move samples toward or away from the centers of clusters",
        ADA,
        {**_START, "alpha": 2.0, "clusters": 8},
        {**_STRENGTH, "alpha": Between(1.01, 4.0, log=True), "clusters": OneOf((4, 8, 16))},
        starts=(
            {"p": 0.15, "anneal": 1.0, "alpha": 1.3, "clusters": 4},
            {"p": 0.9, "anneal": 0.3, "alpha": 3.2},
            {"p": 0.95, "anneal": 1.0, "alpha": 2.1, "clusters": 16},
        ),
        counts=("clusters",),
        formula="c + ((x, y) - c) / sqrt(gamma), c the mean of its cluster",
        paper="Schneider et al., NeurIPS 2023, arXiv 2311.06965",
    ),
    "foma": Method(
        "shrink the small singular values of a batch, those beyond its intrinsic dimension",
        FOMA,
        {**_NEAR, "k": "two_nn"},
        # Noise has many dimensions: where there is much of it the estimate is too high.
        {**_FOMA, "k": OneOf(("two_nn", 1, 2, 4))},
        starts=(
            {"p": 0.25, "anneal": 1.0, "place": LAYER, "alpha": 0.55, "k": 4},
            *({**_STRONG, "k": k} for k in (4, 2, 1)),
        ),
        formula="[x, y] = U S V', s_i -> lam s_i for i > k, k by TwoNN",
        paper="Kaufman and Azencot, ICML 2024, arXiv 2406.10914",
    ),
    "foma-rho": Method(
        "shrink the small singular values of a batch, those beyond a share of their sum",
        FOMA,
        {**_NEAR, "rho": 0.9},
        {**_FOMA, "rho": OneOf((0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99))},
        starts=(
            {"p": 0.55, "anneal": None, "sampler": "random", "place": LAYER, "alpha": 1.5},
            {**_STRONG, "rho": 0.5},
            {**_STRONG, "rho": 0.8},
        ),
        formula="[x, y] = U S V', s_i -> lam s_i for i > k, s_1 + ... + s_k <= rho sum(s)",
        paper="Kaufman and Azencot, ICML 2024, arXiv 2406.10914",
    ),
    "cems": Method(
        "sample the curved surface that a neighborhood lies on",
        CEMS,
        {**_START, "sigma": 0.1, "neighbors": 16, "d": "two_nn_data"},
        {**_STRENGTH, "sigma": Between(0.001, 0.5, log=True), "neighbors": OneOf((8, 16, 32))},
        starts=(
            {"p": 0.1, "anneal": 0.3},
            {"p": 0.65, "anneal": 0.3, "sigma": 0.01, "neighbors": 32},
            {"p": 0.15, "anneal": 1.0, "sigma": 0.002, "neighbors": 32},
        ),
        formula="(x, y) + B [eta, g eta + eta' H eta / 2], eta ~ N(0, sigma^2)",
        paper="Kaufman and Azencot, ICML 2025, arXiv 2506.06853",
    ),
    "k-mixup": Method(
        "mix every sample with the one that the best assignment of inputs gives it",
        Mixup,
        {**_START, "alpha": 1.0, "pairs": "assignment"},
        _MIXING,
        usual=False,
        formula="mixup, j(i) with the smallest sum of (x_i - x_j(i))^2",
        paper="Greenewald et al., 2021, arXiv 2106.02933",
    ),
    "neighbor-mixup": Method(
        "mix every sample with one of those whose inputs are nearest",
        Mixup,
        {**_START, "alpha": 1.0, "pairs": "neighbors", "neighbors": 4},
        {**_MIXING, "neighbors": OneOf((1, 2, 4, 8))},
        usual=False,
        formula="mixup, j one of the nearest x_j of the batch",
        paper="Baena et al., 2022, arXiv 2201.04368; Hwang and Whang, 2021, arXiv 2106.03374",
    ),
    "epbeta-mixup": Method(
        "mix every sample with a random one, and past it, so that the spread of the data stays",
        Mixup,
        {**_START, "alpha": 1.0, "spread": "keep"},
        _MIXING,
        usual=False,
        formula="mixup with 1/2 + sqrt(2 alpha + 1) (lam - 1/2) for lam",
        paper="Lee et al., AISTATS 2025, arXiv 2503.02645",
    ),
    "sk-mixup": Method(
        "mix every sample with a random one, the less the farther apart the two are",
        SKMixup,
        {**_START, "alpha": 1.0, "width": 1.0, "distance": "targets"},
        {
            **_MIXING,
            "width": Between(0.2, 5.0, log=True),
            "distance": OneOf(("targets", "inputs")),
        },
        usual=False,
        formula="mixup, lam ~ Beta(t, t), t = alpha exp((1 - d_ij) / (2 width^2))",
        paper="Bouniot et al., ICLR 2025, arXiv 2311.01434",
    ),
    "feature-mix": Method(
        "swap some columns of every sample for those of a random one",
        FeatureMix,
        {**_START, "alpha": 0.5, "rate": None, "targets": "information"},
        {
            **_STRENGTH,
            "rate": OneOf((None, 0.1, 0.2, 0.5)),
            "targets": OneOf(("information", "share", "keep")),
        },
        starts=({"p": 0.3, "anneal": None}, {"p": 0.3, "rate": 0.1, "targets": "keep"}),
        usual=False,
        formula="x_b -> x_jb for some blocks b, y + L (y_j - y), L their share of the information",
        paper="Chen et al., 2023, arXiv 2301.02819",
    ),
    "teacher-rows": Method(
        "take new samples near the data, with targets that a teacher predicts",
        TeacherRows,
        {**_START, "p": 0.5, "teacher": "boosting", "rows": "noise", "sigma": 0.2},
        {
            **_STRENGTH,
            "teacher": OneOf(("boosting", "trees", "gp")),
            "rows": OneOf(("noise", "mixup", "foma", "cems")),
            "sigma": Between(0.02, 1.0, log=True),
        },
        starts=({"p": 0.5, "teacher": "trees"}, {"p": 0.5, "teacher": "gp"}),
        usual=False,
        teachers=("boosting", "trees", "gp"),
        formula="(x', g(x')), x' near x_i, g fitted on the rows of other folds",
        paper="2025, arXiv 2501.03654",
    ),
    "rare": Method(
        "draw samples with rare targets more often",
        Identity,
        {"sampler": "rare", "place": INPUT, "alpha": 0.5},
        {"alpha": Between(0.05, 1.0)},
        sampler_options=("alpha",),
        usual=False,
        for_rare=True,
        formula="P(i) ∝ f(y_i)^-alpha, f the density of the targets",
        paper="Steininger et al., Machine Learning 2021",
    ),
}

# In a study of a regressor: what the others are compared with; rows that were made elsewhere;
# training rows once more, for regressors whose settings count rows, as the size of a leaf does; and
# rows where targets are rare, which are made from the whole table and not from batches of it.
NO_ROWS, ROWS, REPEATS, SMOGN = "no-rows", "rows", "repeats", "smogn"
MAKERS: dict[str, Method] = {
    NO_ROWS: Method("no new rows", Identity, {}),
    ROWS: Method("rows from elsewhere", Identity, {"share": 1.0}, {"share": SHARE}),
    REPEATS: Method("training rows once more", Identity, {"share": 0.5}, {"share": SHARE}),
    SMOGN: Method(
        "rows between rare ones and near them (SMOGN)",
        Identity,
        {"share": 0.5, "neighbors": 5, "sigma": 0.1, "focus": None},
        {"share": SHARE, "neighbors": OneOf((3, 5, 9)), "sigma": Between(0.01, 0.5, log=True)},
        usual=False,
        for_rare=True,
        formula="z = (x, y): z_i + u (z_j - z_i) where j is near, else z_i + min(reach, sigma) e",
        paper="Branco et al., LIDTA 2017",
    ),
}
