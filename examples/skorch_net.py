"""A skorch net on scikit-learn's diabetes table, with and without FOMA.

    python examples/skorch_net.py

Two things change for someone who has a ``NeuralNetRegressor``: the name of the class, and the
``method``. Everything else is skorch as before, here a pipeline and a grid search.
"""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from regaug.integrations.skorch import AugmentedNetRegressor  # line one


class Net(nn.Module):
    """A small net whose first layer has a name."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(10, 64), nn.LeakyReLU(0.1))
        self.head = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a prediction for every row."""
        output: torch.Tensor = self.head(self.hidden(x))
        return output


def main() -> None:
    """Compare plain training, FOMA at the inputs and FOMA at a layer by cross-validation."""
    data, target = load_diabetes(return_X_y=True)
    x, y = data.astype(np.float32), target[:, None].astype(np.float32)
    x, test_x, y, test_y = train_test_split(x, y, random_state=0)
    scale = StandardScaler().fit(y)
    torch.manual_seed(0)
    net = AugmentedNetRegressor(
        Net,
        method="foma-rho",  # line two
        optimizer=torch.optim.Adam,
        lr=3e-3,
        max_epochs=20,
        batch_size=32,
        verbose=0,
    )
    choices = [
        {"net__method": ["erm"]},
        {"net__method": ["foma-rho"], "net__method_settings": [None, {"place": "hidden"}]},
    ]
    model = Pipeline([("scale", StandardScaler()), ("net", net)])
    search = GridSearchCV(model, choices, scoring="neg_root_mean_squared_error", cv=3)
    search.fit(x, scale.transform(y))
    results = search.cv_results_
    print("diabetes, RMSE in cross-validation, in standard deviations of the target:")
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        place = (params.get("net__method_settings") or {}).get("place", "input")
        print(f"  {params['net__method']:9} at {place:7} {-score:.3f}")
    errors = scale.inverse_transform(search.predict(test_x)) - test_y
    print(f"the best on {len(test_y)} test rows: {np.sqrt(np.mean(errors**2)):.2f}")


if __name__ == "__main__":
    main()
