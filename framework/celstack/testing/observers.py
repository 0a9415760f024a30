"""check_observer: the laws of Observer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pluggy
import torch

from celstack.errors import StopTraining
from celstack.interfaces.observer import Observer
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss
from celstack.recipe.assembly import Assembly, Stage
from celstack.recipe.schedule import schedule
from celstack.registry.kinds import KINDS
from celstack.registry.manager import new_plugin_manager
from celstack.runs.findings import Finding
from celstack.runs.validated import Validated
from celstack.testing.assertions import require_law, seeded
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
)
from celstack.training.callbacks import checked_rates

STEPS = 2
RATES = {"prototypes": 1e-3, "heads": 1e-3}
FINDING = Finding("unused-sprite", "sprite 1", "of 40 uses")


@seeded()
def check_observer(observer: Observer) -> None:
    """Check the laws of Observer: it implements hooks, and does not affect the run.

    Its hooks are called as in a run without a folder that finishes, then as in a run with a
    folder that is stopped. Nothing is trained.
    """
    manager = _register(observer)
    assembly = Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(name="only", steps=STEPS)],
    )
    decomposer = assembly.decomposer()
    decomposer.prepare(assembly.dataset.read("train", range(4)).images)
    with tempfile.TemporaryDirectory() as folder:
        _call_hooks(observer, manager, assembly, decomposer, None)
        _call_hooks(observer, manager, assembly, decomposer, Path(folder))


def _register(observer: Observer) -> pluggy.PluginManager:
    manager = new_plugin_manager()
    try:
        manager.register(observer)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        law = f"its hooks are those of celstack.hookspecs, but: {' '.join(str(error).split())}"
        raise AssertionError(f"{type(observer).__name__}: {law}") from error
    implemented = [caller.name for caller in manager.get_hookcallers(observer) or ()]
    require_law(
        observer, bool(implemented), "it implements at least one hook, marked with hookimpl"
    )
    provided = {kind.hook for kind in KINDS.values()}
    foreign = sorted(provided.intersection(implemented))
    require_law(observer, not foreign, f"it provides no parts, but has {foreign}")
    return manager


def _call_hooks(
    observer: Observer,
    manager: pluggy.PluginManager,
    assembly: Assembly,
    decomposer: Decomposer,
    folder: Path | None,
) -> None:
    (phase,) = schedule(assembly.stages, 16, 4)
    loss = Loss(torch.tensor(0.5), torch.tensor(0.0))
    scores = {"mse": 0.5}
    validations = [Validated(1, scores)]
    with torch.no_grad():
        scene = decomposer.explain(assembly.dataset.read("train", range(4)).images)
    about = {"loss": loss, "images": 4, "scene": scene, "rates": RATES}
    events: list[tuple[str, dict[str, Any]]] = [
        (
            "run_started",
            {
                "assembly": assembly,
                "decomposer": decomposer,
                "folder": folder,
                "steps": STEPS,
                "step": 0,
            },
        ),
        ("phase_started", {"phase": phase, "step": 0}),
        ("step_started", {"step": 1, "rates": RATES, "validations": []}),
        ("step_finished", {"step": 1, **about}),
        ("health_checked", {"step": 1, "findings": [FINDING]}),
        ("sprites_reassigned", {"step": 1, "sprites": [1]}),
    ]
    if folder is None:
        events += [
            ("validated", {"step": 1, "scores": scores}),
            ("step_started", {"step": 2, "rates": RATES, "validations": validations}),
            ("step_finished", {"step": 2, **about}),
            ("training_ended", {"step": 2, "reason": "enough"}),
            ("evaluated", {"step": 2, "scores": scores, "decomposer": decomposer}),
            ("run_finished", {"folder": folder, "scores": scores}),
        ]
    else:
        events += [
            ("checkpoint_saved", {"step": 1}),
            ("run_stopped", {"step": 1, "reason": "interrupted"}),
        ]
    for event, arguments in events:
        before = _state(decomposer)
        hook = f"celstack_{event}"
        try:
            for given in getattr(manager.hook, hook)(**arguments):
                if event == "step_started":
                    checked_rates(given, RATES)
        except StopTraining:
            pass  # as any observer may
        except Exception as error:
            law = f"it does not fail, but in {hook}: {type(error).__name__}: {error}"
            raise AssertionError(f"{type(observer).__name__}: {law}") from error
        after = _state(decomposer)
        same = before.keys() == after.keys() and all(
            map(torch.equal, before.values(), after.values())
        )
        law = f"observers change neither model nor random state, but {hook} did"
        require_law(observer, same, law)


def _state(decomposer: Decomposer) -> dict[str, torch.Tensor]:
    weights = {name: value.clone() for name, value in decomposer.state_dict().items()}
    mode = torch.tensor(decomposer.training)
    return {**weights, "random state": torch.get_rng_state(), "training mode": mode}
