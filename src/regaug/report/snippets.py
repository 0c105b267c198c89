"""What to write next for a network of one's own: settings in a loop and in Lightning, weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regaug.methods import BOTH, INPUT, LAYER, LAYERS
from regaug.report.recipe import as_python, problem_of
from regaug.studies.study import Study
from regaug.training.settings import Settings


def is_of_network(study: Study) -> bool:
    """Tell whether a study is of a network of the problem's own, and it is known which layers."""
    return study.facts is not None and study.facts.kind == "network"


def loop_recipe(study: Study, method: str) -> str:
    """Return a training loop with a method's best settings, for a net and rows of one's own.

    The reader has ``net`` and the training rows ``x`` and ``y``. Empty if the study is not of such
    a network.
    """
    if not is_of_network(study):
        return ""
    own, place = study.settings_of(method), _place(study, method)
    at = [] if place is None else [f"acting = augment.at(net, {as_python(place)})"]
    schedule = _schedule(own, "epochs * len(batches)")
    lines = [
        *_imports(own, ["from torch.nn.functional import mse_loss"]),
        "",
        "# Yours: net, and the training rows x (n, ...) and y (n, targets),",
        f"# {_scale(study, method)}.",
        f"epochs, batch_size = {own.epochs}, {_batch_size(study, own)}",
        _settings(own, place),
        f"ready = methods.get({as_python(method)}).prepare(settings).fit(x, y)",
        "augment, batches = ready.augmentation, ready.sampler(y, batch_size, drop_last=True)",
        *at,
        f"optimizer = {_optimizer(own, 'net')}",
        *schedule,
        "net.train()",
        "for epoch in range(epochs):",
        "    for step, batch in enumerate(batches):",
        "        augment.progress = (epoch + step / len(batches)) / epochs",
        *(f"        {line}" for line in _step(own, place)),
        *(["        schedule.step()"] if schedule else []),
    ]
    if own.patience is not None:
        lines.append(_about_patience(own))
    return "\n".join(lines) + "\n"


def lightning_recipe(study: Study, method: str) -> str:
    """Return the same for a Lightning ``Trainer``; the reader has ``module`` and ``loader``."""
    if not is_of_network(study):
        return ""
    own, place = study.settings_of(method), _place(study, method)
    named = None if place is None else _inside(place)
    schedule = _schedule(own, "module.trainer.estimated_stepping_batches")
    callback = "from regaug.integrations.lightning import AugmentCallback"
    clip = "" if own.clip is None else f", gradient_clip_val={as_python(own.clip)}"
    made = f"methods.get({as_python(method)}).prepare(settings)"
    where = "" if named is None else f", place={as_python(named)}"
    callbacks = "[callback]"
    lines = [
        *_imports(own, ["from lightning.pytorch import Trainer"], [callback]),
        "",
        "",
        "def configure_optimizers(module):  # a method of your LightningModule",
        f"    optimizer = {_optimizer(own, 'module')}",
    ]
    if schedule:
        lines += [
            *(f"    {line}" for line in schedule),
            '    every_step = {"scheduler": schedule, "interval": "step"}',
            '    return {"optimizer": optimizer, "lr_scheduler": every_step}',
        ]
    else:
        lines.append("    return optimizer")
    net = ", whose network is module.net" if named is not None else ""
    lines += [
        "",
        "",
        f"# Yours: module{net}; loader, of training rows (x, y),",
        f"# {_scale(study, method)}, in batches of {_batch_size(study, own)}.",
        _settings(own, place),
        f"ready = {made}",
    ]
    if own.method_settings.get("place") == BOTH:
        callbacks = "[on_inputs, callback]"
        lines.append("on_inputs = AugmentCallback(ready.augmentation, sampler=ready.sampler)")
        lines.append(f"callback = AugmentCallback({made}.augmentation{where})")
    else:
        shared = ", sampler=ready.sampler"
        lines.append(f"callback = AugmentCallback(ready.augmentation{where}{shared})")
    lines += [
        f"trainer = Trainer(max_epochs={own.epochs}{clip}, callbacks={callbacks})",
        "trainer.fit(module, loader)",
    ]
    if own.patience is not None:
        lines.append(_about_patience(own))
    return "\n".join(lines) + "\n"


def weights_recipe(study: Study, method: str) -> str:
    """Return what loads the weights of the net that the first split has chosen; empty without."""
    file = study.weights(method) if is_of_network(study) else None
    if file is None:
        return ""
    run = study.chosen[method][0].run
    log = ", log=True" if run.log else ""
    return f"""\
import regaug
import torch
from regaug.training.scores import own_units
from safetensors.torch import load_file

problem = {problem_of(study)}
split = problem.split({run.split}{log})
net = problem.make_net(split, seed=0)
net.load_state_dict(load_file({as_python(str(file))}))
net.eval()
with torch.inference_mode():
    prediction = own_units(split, net(split.test.x[:100]))  # in the target's own units
"""


@dataclass(frozen=True)
class KeptNet:
    """A net whose weights are in the folder of a study.

    Attributes:
        method: How it was trained.
        split: Number of the split that has chosen it, from 1 on.
        validation: Its score on the validation rows.
        test: Its score on the test rows.
        file: Where the weights are, below the folder.
    """

    method: str
    split: int
    validation: float | None
    test: float | None
    file: str


def kept_nets(study: Study) -> list[KeptNet]:
    """Return the nets that a study has kept, in the order of methods and splits."""
    metric, kept = study.config.metric, []
    for name in study.looked_at if is_of_network(study) else ():
        for number, record in enumerate(study.chosen[name]):
            if (file := study.weights(name, number)) is not None:
                validation, test = (record.score(part, metric) for part in ("validation", "test"))
                inner = f"{file.parent.name}/{file.name}"
                kept.append(KeptNet(name, number + 1, validation, test, inner))
    return kept


def _place(study: Study, method: str) -> str | list[str] | None:
    """Return the layer at which a method acts, or those of which one is drawn; None for none."""
    place = study.settings_of(method).method_settings.get("place", INPUT)
    known = [] if study.facts is None else list(study.facts.places)
    if place == INPUT:
        return None
    if place == LAYERS:
        return known
    if place in (LAYER, BOTH):
        return known[0] if known else None
    return place if isinstance(place, str) else list(place)


def _inside(place: str | Sequence[str]) -> str | list[str]:
    """Return what layers of a net are called in a module that holds it as ``net``."""
    if isinstance(place, str):
        return place if place == INPUT else f"net.{place}"
    return [str(_inside(own)) for own in place]


def _settings(own: Settings, place: object) -> str:
    """Write out the method's settings, with the names of the layers at which it acts."""
    values: dict[str, Any] = dict(own.method_settings)
    if values.get("place") in (LAYER, LAYERS):
        values["place"] = place
    items = "".join(f"    {as_python(name)}: {as_python(v)},\n" for name, v in values.items())
    return f"settings = {{\n{items}}}" if items else "settings = {}"


def _scale(study: Study, method: str) -> str:
    """Say what the rows are that the settings belong to."""
    logs = ", y by its logarithm" if study.best[method].log else ""
    return f"standardized{logs}"


def _step(own: Settings, place: object) -> list[str]:
    """Return one step of a loop, after the progress is known."""
    on_inputs = "new_x, new_y = augment(x[batch], y[batch])"
    if place is None:
        acts = [on_inputs, "prediction, weight = net(new_x), augment.weight"]
    elif own.method_settings.get("place") == BOTH:
        acts = [
            on_inputs,
            "weight = augment.weight",
            "prediction, new_y = acting(new_x, new_y)",
            "weight *= augment.weight",
        ]
    else:
        acts = ["prediction, new_y = acting(x[batch], y[batch])", "weight = augment.weight"]
    clip = []
    if own.clip is not None:
        clip = [f"torch.nn.utils.clip_grad_norm_(net.parameters(), {as_python(own.clip)})"]
    loss = "loss = weight * mse_loss(prediction, new_y)"
    return [*acts, loss, "optimizer.zero_grad()", "loss.backward()", *clip, "optimizer.step()"]


def _optimizer(own: Settings, owner: str) -> str:
    kind = "AdamW" if own.optimizer == "adamw" else "Adam"
    rate, decay = as_python(own.learning_rate), as_python(own.weight_decay)
    return f"torch.optim.{kind}({owner}.parameters(), lr={rate}, weight_decay={decay})"


def _schedule(own: Settings, total: str) -> list[str]:
    """Return what changes the rate step by step; nothing if nothing does."""
    if own.schedule == "constant":
        return []
    made = "CosineAnnealingLR(optimizer, total)"
    if own.schedule == "waves":
        made = "LambdaLR(optimizer, lambda step: waves.rate_at(step / total))"
    first = [f"total = {total}"]
    if own.schedule == "waves":  # the optimizer has the rate, the schedule its factor
        first.append('waves = Settings(learning_rate=1.0, schedule="waves")')
    return [*first, f"schedule = {made}"]


def _imports(own: Settings, others: Sequence[str], ours: Sequence[str] = ()) -> list[str]:
    """Return the lines that import what settings need, and more from elsewhere and from here."""
    named = {"cosine": "CosineAnnealingLR", "waves": "LambdaLR"}.get(own.schedule)
    schedule = [] if named is None else [f"from torch.optim.lr_scheduler import {named}"]
    settings = ["from regaug.training import Settings"] if own.schedule == "waves" else []
    here = ["from regaug import methods", *ours, *settings]
    return ["import torch", *sorted([*others, *schedule]), "", *here]


def _batch_size(study: Study, own: Settings) -> int:
    rows: Mapping[str, int] = {} if study.facts is None else study.facts.rows
    return min(own.batch_size, rows.get("train", own.batch_size))


def _about_patience(own: Settings) -> str:
    return (
        f"# The study took the epoch with the best validation error, and ended a training after\n"
        f"# {own.patience} epochs or more without a better one."
    )
