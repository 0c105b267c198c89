"""Use AugmentedMLPRegressor as any regressor of scikit-learn: score it, search, save, load.

    python examples/sklearn_regressor.py

The settings are small, so that it takes seconds; the defaults (8 nets, up to 200 epochs) are
better and take a little longer.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split

from regaug.integrations.sklearn import AugmentedMLPRegressor


def main() -> None:
    """Search the method on the diabetes table, and keep the best model in a folder."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)  # noqa: N806
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)  # noqa: N806

    model = AugmentedMLPRegressor(members=4, max_iter=100, random_state=0)
    search = GridSearchCV(model, {"method": ["erm", "c-mixup", "foma-rho"]}, cv=3)
    search.fit(X_train, y_train)
    for method, score in zip(
        search.cv_results_["param_method"], search.cv_results_["mean_test_score"], strict=True
    ):
        print(f"{method:10} R2 {score:.3f} in a 3-fold cross-validation")

    best = search.best_estimator_
    print(f"{best.method_:10} R2 {best.score(X_test, y_test):.3f} on test rows")
    mean, std = best.predict(X_test[:3], return_std=True)
    for center, spread in zip(mean, std, strict=True):
        print(f"           {center:.0f}, the members differ by {spread:.0f}")

    with TemporaryDirectory() as folder:
        best.save(Path(folder, "model"))  # tensors and JSON; `regaug predict` reads it too
        again = AugmentedMLPRegressor.load(Path(folder, "model"))
    print("the same after loading:", bool((again.predict(X_test) == best.predict(X_test)).all()))


if __name__ == "__main__":
    main()
