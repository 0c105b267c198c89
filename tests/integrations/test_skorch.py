"""skorch: training batches are augmented, at inputs or at a layer; nothing else is touched."""

import pickle
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from regaug import methods
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    MissingExtraError,
    PlaceError,
    UnknownNameError,
)
from regaug.integrations.skorch import AugmentedNetRegressor


class Net(nn.Module):
    """Two layers, with names, that note what they are given."""

    places = ("hidden", "act")

    def __init__(self, d=3, m=1, width=8):
        super().__init__()
        self.hidden, self.act, self.out = nn.Linear(d, width), nn.ReLU(), nn.Linear(width, m)
        self.seen = {True: [], False: []}

    def forward(self, x):
        self.seen[self.training].append(x.detach().clone())
        return self.out(self.act(self.hidden(x)))


class Loss(nn.MSELoss):
    """Notes predictions and targets."""

    def __init__(self):
        super().__init__()
        self.seen = {True: [], False: []}

    def forward(self, y_pred, y):
        self.seen[self.training].append((y_pred.detach().clone(), y.detach().clone()))
        return super().forward(y_pred, y)


def make_data(n=100, d=3, m=1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    y = x @ rng.normal(size=(d, m)) + 0.1 * rng.normal(size=(n, m))
    return x, y.astype(np.float32)


def make_net(method="foma-rho", kind=AugmentedNetRegressor, **changes):
    settings = {"batch_size": 16, "max_epochs": 2, "verbose": 0, "criterion": Loss, **changes}
    if kind is AugmentedNetRegressor:
        settings["method"] = method
    torch.manual_seed(0)
    return kind(Net, **settings)


def rows_of(batches):
    return {tuple(row) for batch in batches for row in np.asarray(batch).tolist()}


def weights(net):
    return torch.cat([p.detach().flatten() for p in net.module_.parameters()])


@pytest.mark.parametrize(
    "method", [name for name in methods.names() if name not in ("erm", "rare")]
)
def test_training_batches_differ_and_validation_batches_are_equal(method):
    x, y = make_data()
    net = make_net(method, method_settings={"anneal": None}).fit(x, y)
    plain = make_net(kind=NeuralNetRegressor).fit(x, y)
    for seen, expected in (
        (net.module_.seen[False], plain.module_.seen[False]),
        ([y for _, y in net.criterion_.seen[False]], [y for _, y in plain.criterion_.seen[False]]),
    ):
        assert len(seen) == 4  # 20 rows, in two epochs
        for batch, other in zip(seen, expected, strict=True):
            assert torch.equal(batch, other)
    targets = torch.cat([y for _, y in net.criterion_.seen[True]]).flatten().numpy()
    assert (~np.isin(targets, y)).mean() > 0.4
    if method != "manifold-mixup":
        assert not rows_of(net.module_.seen[True]) <= rows_of([x])
    assert np.isfinite(net.history[:, "train_loss"]).all()


def test_erm_is_plain_training_on_the_training_part_in_random_batches():
    x, y = make_data()
    net = make_net("erm", train_split=None, batch_size=20).fit(x, y)
    batches = net.module_.seen[True]
    assert [len(batch) for batch in batches] == [20] * 10
    assert rows_of(batches[:5]) == rows_of([x]) == rows_of(batches[5:])
    assert not torch.equal(batches[0], batches[5])


@pytest.mark.parametrize("method", ["foma-rho", "mixup", "c-mixup", "ada"])
@pytest.mark.parametrize("place", ["hidden", ["hidden", "act"]])
def test_at_a_layer_inputs_stay_and_targets_change(method, place):
    x, y = make_data(m=2)
    net = make_net(method, method_settings={"place": place, "anneal": None}, module__m=2)
    net.fit(x, y)
    assert rows_of(net.module_.seen[True]) <= rows_of([x])
    targets = torch.cat([y for _, y in net.criterion_.seen[True]]).numpy()
    assert (~np.isin(targets, y)).mean() > 0.2  # c-mixup: many are partners of themselves
    assert all(pred.shape == y.shape for pred, y in net.criterion_.seen[True])
    assert "forward" not in net.module_.__dict__
    assert not net.module_.hidden._forward_hooks


def test_the_layer_sees_what_the_targets_belong_to():
    """On a linear net mixing at a layer is mixing at the inputs."""
    x, y = make_data(64)
    nets = []
    for place in ("input", "0"):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        settings = {"place": place, "anneal": None}
        net = AugmentedNetRegressor(
            module, method="c-mixup", method_settings=settings, max_epochs=3, verbose=0
        )
        nets.append(net.fit(x, y))
    torch.testing.assert_close(weights(nets[0]), weights(nets[1]), rtol=1e-4, atol=1e-6)


def test_append_trains_on_originals_and_new_samples_at_a_layer_too():
    x, y = make_data()
    for place in ("input", "hidden"):
        settings = {"append": True, "anneal": None, "place": place}
        net = make_net("mixup", method_settings=settings, train_split=None, batch_size=20)
        net.fit(x, y)
        for y_pred, targets in net.criterion_.seen[True]:
            assert y_pred.shape == targets.shape == (40, 1)
            assert np.isin(targets[:20].numpy(), y).all()


def test_the_augmentation_learns_from_the_training_part_alone(monkeypatch):
    fitted = []
    ada = methods.get("ada").augmentation
    monkeypatch.setattr(
        ada, "fit", lambda self, x, y, fit=ada.fit: (fitted.append((x, y)), fit(self, x, y))[1]
    )
    x, y = make_data()
    train, valid = np.arange(60), np.arange(60, 100)
    split = predefined_split(TensorDataset(torch.tensor(x[valid]), torch.tensor(y[valid])))
    make_net("ada", train_split=split).fit(x[train], y[train])
    [(seen_x, seen_y)] = fitted
    np.testing.assert_array_equal(seen_x, x[train])
    np.testing.assert_array_equal(seen_y, y[train])


def test_nearest_batches_hold_neighbors():
    x, y = make_data(200)
    spread = {}
    for sampler in ("random", "nearest"):
        settings = {"p": 0.0, "sampler": sampler}
        net = make_net("foma-rho", method_settings=settings, train_split=None).fit(x, y)
        spread[sampler] = np.mean([y.std().item() for _, y in net.criterion_.seen[True]])
    assert spread["nearest"] < 0.5 * spread["random"]


def test_anneal_ends_within_a_training_and_starts_anew_with_the_next():
    x, y = make_data()
    settings = {"anneal": 0.5, "sampler": "random"}
    net = make_net("noise", method_settings=settings, max_epochs=8, train_split=None).fit(x, y)
    per_epoch = len(net.module_.seen[True]) // 8
    own = rows_of([x])
    is_new = [not rows_of([batch]) <= own for batch in net.module_.seen[True]]
    assert is_new[0]
    assert not any(is_new[4 * per_epoch :])
    net.partial_fit(x, y)
    assert not rows_of(net.module_.seen[True][8 * per_epoch : 10 * per_epoch]) <= own
    assert rows_of(net.module_.seen[True][-per_epoch:]) <= own


def test_partial_fit_goes_on_with_other_batches():
    x, y = make_data()
    net = make_net("erm", max_epochs=1, train_split=None).fit(x, y)
    net.partial_fit(x, y)
    first, second = net.module_.seen[True][0], net.module_.seen[True][6]
    assert len(net.module_.seen[True]) == 12
    assert not torch.equal(first, second)
    assert len(net.history) == 2


def test_the_weight_multiplies_the_loss():
    x, y = make_data()
    losses = {}
    for weight in ("one", "lam"):
        settings = {"weight": weight, "lam_range": (0.25, 0.25), "rho": 0.5, "anneal": None}
        net = make_net(method_settings=settings, max_epochs=1, batch_size=-1, train_split=None)
        losses[weight] = net.fit(x, y).history[0, "train_loss"]
    assert losses["lam"] == pytest.approx(0.25 * losses["one"], rel=1e-6)


def test_at_both_places_inputs_change_too_and_both_weights_count():
    x, y = make_data()
    losses = {}
    for weight in ("one", "lam"):
        settings = {"weight": weight, "lam_range": (0.25, 0.25), "rho": 0.5, "place": "both"}
        net = make_net(method_settings=settings, max_epochs=1, batch_size=-1, train_split=None)
        losses[weight] = net.fit(x, y).history[0, "train_loss"]
        assert not rows_of(net.module_.seen[True]) <= rows_of([x])
    assert losses["lam"] == pytest.approx(0.25**2 * losses["one"], rel=1e-5)


def test_the_seed_decides_and_the_global_generator_does_not():
    x, y = make_data()
    results = []
    for seed, elsewhere in ((1, 0), (1, 99), (2, 0)):
        net = make_net(seed=seed).initialize()
        torch.manual_seed(elsewhere)
        results.append(weights(net.partial_fit(x, y)))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_every_loss_of_one_step_is_the_same():
    x, y = make_data()
    for place in ("input", "hidden"):
        settings = {"place": place, "anneal": None}
        net = make_net(
            "mixup", method_settings=settings, optimizer=torch.optim.LBFGS, max_epochs=1, lr=0.1
        )
        net.fit(x, y)
        targets = [tuple(y.flatten().tolist()) for _, y in net.criterion_.seen[True]]
        assert len(targets) > 10
        assert len(set(targets)) == 5  # steps


def test_a_grid_chooses_the_method_and_clones_are_equal():
    x, y = make_data()
    pipeline = Pipeline([("scale", StandardScaler()), ("net", make_net(max_epochs=3))])
    grid = {
        "net__method": ["erm", "foma-rho", "mixup"],
        "net__method_settings": [None, {"place": "hidden"}],
        "net__lr": [0.05],
    }
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(x, y)
    assert len(set(search.cv_results_["mean_test_score"])) > 3
    copy = clone(search.best_estimator_["net"])
    assert copy.get_params()["method"] == search.best_params_["net__method"]
    assert copy.get_params()["method_settings"] == search.best_params_["net__method_settings"]
    assert copy.set_params(method="cems", seed=3).method == "cems"
    assert "augmenting_" not in copy.get_params()


def test_a_trained_net_can_be_pickled_and_predicts_the_same():
    x, y = make_data()
    net = make_net(method_settings={"place": "hidden"}).fit(x, y)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again.predict(x), net.predict(x))
    again.partial_fit(x, y)


def test_callbacks_work_while_it_trains():
    x, y = make_data()
    score = EpochScoring("r2", lower_is_better=False, on_train=True, use_caching=False)
    net = make_net("c-mixup", callbacks=[score, EarlyStopping(patience=50)]).fit(x, y)
    assert len(net.history[:, "r2"]) == 2


def test_after_an_exception_the_net_is_plain_again():
    class Stop(EarlyStopping):
        def on_batch_end(self, net, **kwargs):
            raise RuntimeError("enough")

    x, y = make_data()
    net = make_net(method_settings={"place": "hidden"}, callbacks=[Stop()])
    with pytest.raises(RuntimeError, match="enough"):
        net.fit(x, y)
    assert net.augmenting_ is None
    assert "forward" not in net.module_.__dict__
    net.forward(x, training=True)
    step = net.train_step((torch.tensor(x), torch.tensor(y)))
    assert torch.equal(net.criterion_.seen[True][-1][1], torch.tensor(y))
    assert step["y_pred"].shape == (100, 1)


class Accumulating(AugmentedNetRegressor):
    """Sums the gradients of two batches, as in skorch's documentation."""

    def train_step(self, batch, **fit_params):
        if len(self.history[-1, "batches"]) % 2:
            self.optimizer_.zero_grad()
        step = self.train_step_single(batch, **fit_params)
        if len(self.history[-1, "batches"]) % 2 == 0:
            self.optimizer_.step()
        return step


def test_a_train_step_of_the_users_own_is_augmented():
    x, y = make_data()
    net = Accumulating(Net, method="mixup", criterion=Loss, verbose=0, batch_size=10).fit(x, y)
    assert not rows_of(net.module_.seen[True]) <= rows_of([x])
    last = torch.cat(net.module_.seen[True][-8:])  # annealed by then
    assert rows_of([last]) <= rows_of([x])


def test_a_single_step_that_leaves_the_augmentation_out_is_refused():
    class Own(AugmentedNetRegressor):
        def train_step_single(self, batch, **fit_params):
            return NeuralNetRegressor.train_step_single(self, batch, **fit_params)

    with pytest.raises(PlaceError, match="Own has a `train_step_single` of its own"):
        Own(Net, verbose=0).fit(*make_data())


def test_own_data_sets_and_loader_options_are_kept():
    x, y = make_data()
    data = TensorDataset(torch.tensor(x), torch.tensor(y))
    net = make_net("mixup", train_split=None, iterator_train__batch_size=30)
    net.set_params(iterator_train__shuffle=True, iterator_train__drop_last=False)
    net.fit(data, None)
    assert sorted(map(len, net.module_.seen[True][:4])) == [10, 30, 30, 30]
    with pytest.raises(ArgumentError, match="`iterator_train__sampler` must be left out"):
        make_net(iterator_train__sampler=range(100)).fit(x, y)


def test_a_batch_larger_than_the_data_is_all_of_it():
    x, y = make_data(20)
    net = make_net("foma", batch_size=128, train_split=None).fit(x, y)
    assert [len(batch) for batch in net.module_.seen[True]] == [20, 20]


def test_targets_may_have_one_axis():
    x, y = make_data()
    module = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    net = AugmentedNetRegressor(module, max_epochs=2, verbose=0).fit(x, y[:, 0])
    assert net.predict(x).shape == (100,)


def test_wrong_arguments_are_named():
    x, y = make_data()
    with pytest.raises(UnknownNameError, match="Did you mean 'mixup'"):
        make_net("mixap").fit(x, y)
    with pytest.raises(UnknownNameError, match="hiden"):
        make_net(method_settings={"place": "hiden"}).fit(x, y)
    with pytest.raises(PlaceError, match="does not say where 'layers' is"):
        AugmentedNetRegressor(nn.Linear(3, 1), method="manifold-mixup", verbose=0).fit(x, y)
    with pytest.raises(ArgumentTypeError, match=r"`x\['x'\]` must hold floating-point numbers"):
        make_net("mixup").fit({"x": x.astype(np.int64)}, y)


def test_a_missing_package_gives_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "skorch", None)
    monkeypatch.delitem(sys.modules, "regaug.integrations.skorch")
    with pytest.raises(MissingExtraError, match=r'pip install "regaug\[skorch\]"'):
        import regaug.integrations.skorch  # noqa: F401


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, a, b):
        return self.inner(torch.cat([a, b], dim=1))


@pytest.mark.parametrize("method", ["foma-rho", "ada", "c-mixup"])
@pytest.mark.parametrize("place", ["input", "inner.hidden"])
def test_several_inputs_are_augmented_as_one(method, place):
    x, y = make_data()
    found = []
    for module, data in ((TwoInputs, {"a": x[:, :1], "b": x[:, 1:]}), (Net, x)):
        torch.manual_seed(0)
        where = place if module is TwoInputs else place.removeprefix("inner.")
        net = AugmentedNetRegressor(
            module,
            method=method,
            method_settings={"place": where},
            max_epochs=3,
            verbose=0,
            train_split=None,
        )
        found.append(net.fit(data, y.astype(np.float32)).predict(data))
    np.testing.assert_allclose(*found, atol=1e-5)


class Reader(nn.Module):
    """A net whose inputs are numbers and the codes of something."""

    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(5, 2), nn.Linear(5, 1)

    def forward(self, numbers, codes):
        return self.out(torch.cat([numbers, self.embedding(codes)], dim=1))


def make_reader(kind=AugmentedNetRegressor, **options):
    torch.manual_seed(0)
    return kind(Reader, batch_size=10, max_epochs=2, verbose=0, train_split=None, **options)


def test_plain_training_takes_inputs_that_cannot_be_mixed():
    x, y = make_data(40)
    inputs = {"numbers": x, "codes": np.arange(40) % 5}
    net = make_reader(method="erm").fit(inputs, y)
    assert np.isfinite(net.predict(inputs)).all()
    with pytest.raises(ArgumentTypeError, match="codes"):
        make_reader(method="mixup").fit(inputs, y)
    make_reader(method="mixup", method_settings={"place": "embedding"}).fit(inputs, y)


def test_plain_training_with_batches_of_the_users_own_is_that_of_skorch():
    x, y = make_data(40)
    inputs = {"numbers": x, "codes": np.arange(40) % 5}
    order = {"iterator_train__sampler": torch.utils.data.SequentialSampler(range(40))}
    found = []
    for kind, own in ((AugmentedNetRegressor, {"method": "erm"}), (NeuralNetRegressor, {})):
        net = make_reader(kind, **own, **order)  # which seeds the weights
        found.append(net.fit(inputs, y).predict(inputs))
    np.testing.assert_array_equal(*found)


def test_ada_says_what_it_cannot_learn_from():
    x, y = make_data(40)
    inputs = {"numbers": x, "codes": np.arange(40) % 5}
    net = make_reader(method="ada", method_settings={"place": "embedding", "clusters": 2})
    with pytest.raises(
        PlaceError, match=r"ADA learns from the inputs, at a layer too.*X\['codes'\]"
    ):
        net.fit(inputs, y)


class Rows(Dataset):
    """Rows of any kind."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, row):
        return self.rows[row]


class Mean(nn.Module):
    """A loss that takes targets of any number, or several of them under names."""

    def forward(self, y_pred, y):
        parts = y.values() if isinstance(y, dict) else [y]
        return sum(((y_pred.mean() - part.mean()) ** 2 for part in parts), torch.zeros(()))


@pytest.mark.parametrize("kind", ["lengths", "names", "gaps"])
def test_plain_training_takes_targets_that_cannot_be_mixed(kind):
    x, y = make_data(12)
    targets = {
        "lengths": [torch.ones(1 + row % 3) for row in range(12)],
        "names": [{"height": y[row], "weight": y[row]} for row in range(12)],
        "gaps": [torch.full((1,), float("nan")) if row == 3 else y[row] for row in range(12)],
    }[kind]
    rows = Rows(list(zip(x, targets, strict=True)))
    options = {"batch_size": 1, "max_epochs": 1, "verbose": 0, "train_split": None}
    net = AugmentedNetRegressor(Net, method="erm", criterion=Mean, **options)
    net.fit(rows, y=None)
    assert len(net.history[-1, "batches"]) == 12
    words = {
        "lengths": r"`y`.* rows of shapes \(1,\) and \(2,\).*method=\"erm\"",
        "names": r"`y`.* got a dict.*method=\"erm\"",
        "gaps": "finite",
    }[kind]
    net = AugmentedNetRegressor(Net, method="mixup", criterion=Mean, **options)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        net.fit(rows, y=None)
