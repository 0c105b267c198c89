"""Gradient boosting on scikit-learn's diabetes table, with new rows in the training folds only.

    python examples/imblearn_pipeline.py

The search decides whether new rows help and which method makes them: "no new rows" is one of its
choices. On many tables that is the one it should take.
"""

from imblearn.pipeline import Pipeline
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, train_test_split

from regaug.integrations.sklearn import AugmentingSampler


def main() -> None:
    """Search method and number of rows on training rows, and print the error on the others."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)  # noqa: N806
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)  # noqa: N806
    model = Pipeline(
        [
            ("sampler", AugmentingSampler(random_state=0)),  # the step that is new
            ("boosting", HistGradientBoostingRegressor(max_iter=50, random_state=0)),
        ]
    )
    choices = [
        {"sampler__rows": [0]},  # plain training
        {"sampler__rows": [0.5, 1.0], "sampler__method": ["mixup", "foma-rho", "cems"]},
    ]
    search = GridSearchCV(model, choices, scoring="neg_root_mean_squared_error", cv=3)
    search.fit(X_train, y_train)
    results = search.cv_results_
    print(f"diabetes, {len(X_train)} training rows, RMSE in cross-validation:")
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        method = params.get("sampler__method", "plain")
        print(f"  {method:9} {params['sampler__rows']:4.0%} new rows  {-score:6.2f}")
    error = -search.score(X_test, y_test)
    print(f"the best, {search.best_params_}, on {len(X_test)} test rows: {error:.2f}")


if __name__ == "__main__":
    main()
