"""The facts about every named data set, in one place."""

from collections.abc import Mapping

from regaug.data.base import Info

_DTA_SPLIT = "the folds of DeepDTA: one to test, one of five to validate; pairs at random"
_DTA = "https://github.com/hkmztrk/DeepDTA"

_ALL = (
    Info(
        name="diabetes",
        task="table",
        metric="rmse",
        split="Rows at random by the seed, 60 / 20 / 20 %.",
        license="not stated; distributed with scikit-learn (BSD-3-Clause)",
        citation="Efron, Hastie, Johnstone, Tibshirani (2004): Least Angle Regression",
        origin="scikit-learn, load_diabetes; not in the paper",
    ),
    Info(
        name="airfoil",
        task="table",
        metric="rmse",
        split="Rows at random by the seed, 1003 / 300 / 200.",
        license="CC BY 4.0",
        citation="Brooks, Pope, Marcolini (1989): Airfoil Self-Noise and Prediction",
        origin="UCI Machine Learning Repository, dataset 291 (NASA)",
    ),
    Info(
        name="no2",
        task="table",
        metric="rmse",
        split="Rows at random by the seed, 200 / 200 / 100; the paper's own split is not public.",
        license="not stated beyond StatLib's request for acknowledgement; PMLB is MIT",
        citation="Aldrin, StatLib data set NO2 (Norwegian Public Roads Administration)",
        origin="StatLib NO2.dat; OpenML 547; PMLB 547_no2",
    ),
    Info(
        name="crimes",
        task="table",
        metric="rmse",
        split="Whole states in ascending order of code, 70 / 10 / 20 % by the paper's rule: "
        "1390 / 231 / 373 rows. The seed has no effect.",
        groups="state",
        license="CC BY 4.0",
        citation="Redmond (2009): Communities and Crime",
        origin="UCI Machine Learning Repository, dataset 183",
    ),
    Info(
        name="skillcraft",
        task="table",
        metric="rmse",
        split="Whole leagues in ascending order, 70 / 10 / 20 % by the paper's rule: "
        "1878 / 806 / 711 rows. The seed has no effect.",
        groups="LeagueIndex",
        license="CC BY 4.0",
        citation="Thompson, Blair, Chen, Henrey (2013): Video Game Telemetry as a Critical Tool",
        origin="UCI Machine Learning Repository, dataset 272",
    ),
    Info(
        name="exchange-rate",
        task="series",
        metric="rmse",
        split="By time, 60 / 20 / 20 % of the rows: 4373 / 1518 / 1518 windows. The seed has "
        "no effect.",
        citation="Lai, Chang, Yang, Liu (SIGIR 2018): Modeling Long- and Short-Term Temporal "
        "Patterns with Deep Neural Networks",
        origin="github.com/laiguokun/multivariate-time-series-data",
    ),
    Info(
        name="electricity",
        task="series",
        metric="rmse",
        split="By time, 60 / 20 / 20 % of the rows: 15591 / 5261 / 5261 windows for 26304 "
        "rows. The seed has no effect.",
        license="CC BY 4.0",
        citation="Trindade (2015): ElectricityLoadDiagrams20112014; Lai, Chang, Yang, Liu (2018)",
        origin="UCI Machine Learning Repository, dataset 321, made hourly by Lai et al. (2018)",
    ),
    Info(
        name="etth1",
        task="series",
        metric="rmse",
        split="By time, 60 / 20 / 20 % of the rows: 10261 / 3484 / 3484 windows. The seed has "
        "no effect.",
        license="CC BY-ND 4.0",
        citation="Zhou et al. (AAAI 2021): Informer",
        origin="github.com/zhouhaoyi/ETDataset; not in the paper, a stand-in for electricity",
    ),
    Info(
        name="rcf-mnist",
        task="image",
        metric="rmse",
        split="random, 40,000 / 10,000 / 10,000 images; the test colors are inverted",
        license="MIT (Fashion-MNIST, Zalando SE)",
        citation="Xiao, Rasul, Vollgraf (2017), Fashion-MNIST; Yao et al. (2022), C-Mixup",
        origin="https://github.com/zalandoresearch/fashion-mnist",
    ),
    Info(
        name="povertymap",
        task="image",
        metric="pearson",
        split="whole countries are held out, by fold A to E",
        groups="urban or rural; the worse of the two is reported",
        license="images: U.S. public domain (as WILDS states); surveys: not stated",
        citation="Yeh et al. (2020); Koh et al. (2021), WILDS",
        origin="https://wilds.stanford.edu/datasets/#povertymap",
    ),
    Info(
        name="dti",
        task="pair",
        metric="pearson",
        split="by year: 2013 to 2018 to train and validate (80 / 20 in each), 2019, 2020 to test",
        groups="year of the patent; the later years are held out",
        license="that of BindingDB, see tdcommons.ai",
        citation="Huang et al. (2021), Therapeutics Data Commons; Liu et al. (2007), BindingDB",
        origin="https://tdcommons.ai/benchmark/dti_dg_group/bindingdb_patent/",
    ),
    Info(
        name="davis",
        task="pair",
        metric="pearson",
        split=_DTA_SPLIT,
        groups="protein; none is held out",
        citation="Davis et al. (2011); folds of Oeztuerk et al. (2018), DeepDTA",
        origin=_DTA,
    ),
    Info(
        name="kiba",
        task="pair",
        metric="pearson",
        split=_DTA_SPLIT,
        groups="protein; none is held out",
        citation="Tang et al. (2014), filtered by He et al. (2017); folds of DeepDTA",
        origin=_DTA,
    ),
    Info(
        name="echo",
        task="video",
        metric="rmse",
        split="the list's own TRAIN, VAL and TEST",
        license="Stanford University research use agreement; not to be passed on",
        citation="Ouyang et al. (2020), Video-based AI for beat-to-beat assessment of function",
        origin="https://echonet.github.io/dynamic/",
    ),
)

FACTS: Mapping[str, Info] = {info.name: info for info in _ALL}
