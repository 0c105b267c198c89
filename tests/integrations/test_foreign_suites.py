"""The tests that skorch and scikit-learn have for their own regressors pass with ours."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.serial]

# Those of the regressor that mean the same for ours. Others are about solvers, weights by name,
# `partial_fit`, `warm_start`, `sample_weight` and losses that it does not have.
OF_SCIKIT_LEARN = (
    "test_lbfgs_regression[",
    "test_multioutput_regression",
    "test_mlp_regressor_dtypes_casting",
    "test_preserve_feature_names[MLPRegressor]",
)


def run(package, method, module, folder):
    """Run a package's own tests in a process of their own; return what each came to, by name."""
    try:
        spec = find_spec(module)
    except ImportError:  # the folder of the tests is missing
        spec = None
    if spec is None or spec.origin is None:
        pytest.skip(f"the installed {package} comes without {module}")
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "REGAUG_SWAP": f"{package}:{method}", "PYTHONPATH": os.pathsep.join(path)}
    report = folder / "report.xml"
    # None of the settings of this project: a warning is an error here.
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-c", os.devnull, spec.origin]
    command += ["-p", "swapped", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    command += [f"--junit-xml={report}"]
    if package == "sklearn":
        names = " or ".join(name.partition("[")[0] for name in OF_SCIKIT_LEARN)
        command += ["-k", f"({names}) and not MLPClassifier and not maxfun"]
    options = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    done = subprocess.run(command, env=env, cwd=folder, **options)
    if not report.exists():
        pytest.fail(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    cases = ElementTree.parse(report).iter("testcase")
    return {case.attrib["name"]: [own.tag for own in case] for case in cases}, done.stdout


@pytest.mark.parametrize("method", ["erm", "mixup", "foma-rho"])
def test_what_skorch_asks_of_its_regressor(method, tmp_path):
    found, output = run("skorch", method, "skorch.tests.test_regressor", tmp_path)
    assert len(found) >= 10, output
    assert not any(found.values()), output


@pytest.mark.parametrize("method", ["erm", "foma-rho"])
def test_what_scikit_learn_asks_of_its_net_where_ours_means_the_same(method, tmp_path):
    module = "sklearn.neural_network.tests.test_mlp"
    found, output = run("sklearn", method, module, tmp_path)
    for name in OF_SCIKIT_LEARN:
        assert any(own.startswith(name) for own in found), output
    assert not any(found.values()), output
