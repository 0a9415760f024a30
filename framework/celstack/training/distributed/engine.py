"""The engine of a run: in which processes it computes, and in what precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from celstack.interfaces.encoder import Encoder
from celstack.model.decomposer import Decomposer
from celstack.model.objective import Loss
from celstack.scene import Scene
from celstack.tensor_fields import tensor_fields
from celstack.training.distributed.batch_norm import share_norms
from celstack.training.distributed.process_group import Processes

FULL = "32"
MIXED = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
"""What recipes call a precision, and what Lightning Fabric calls it."""


class Engine:
    """Computes gradients of whole batches, of which each process has its share.

    Encoders may compute in 16 bits, as Lightning Fabric does it: where torch holds that to be
    safe, with weights in 32 bits and, for fp16, a loss that is scaled. All else, which says
    where things are to a fraction of a pixel, computes in 32 bits.
    """

    def __init__(self, processes: Processes | None = None, precision: str = FULL) -> None:
        self.processes = processes or Processes(torch.device("cpu"))
        self.mixed: Any = None
        if precision in MIXED:
            from lightning_fabric.plugins import MixedPrecision

            self.mixed = MixedPrecision(MIXED[precision], self.processes.device.type)  # type: ignore[arg-type]

    def fit(self, decomposer: Decomposer) -> Decomposer:
        """Put a model where it is to be trained."""
        decomposer.to(self.processes.device)
        share_norms(decomposer, self.processes)
        if self.mixed is not None:
            for part in decomposer.modules():
                if isinstance(part, Encoder):
                    _compute_mixed(part, self.mixed)
        return decomposer

    def share(self, loss: Loss) -> Loss:
        """Weigh the loss of this process's images, so that those of all processes add up."""
        weight = self.processes.weight
        return loss if self.processes.count == 1 else loss.each(lambda term: term * weight)

    def total(self, loss: Loss) -> Loss:
        """Add up what all processes' images lose."""
        if self.processes.count == 1:
            return loss.detach()
        terms = loss.detach().terms()
        added = self.processes.sum(torch.stack([*terms.values()]))
        return Loss(**dict(zip(terms, added, strict=True)))

    def learn(self, loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
        """Take one step against the gradient of all processes' losses together."""
        optimizer.zero_grad()
        if self.mixed is None:
            loss.backward()
        else:
            self.mixed.backward(loss, None)
        self._add_gradients([p for group in optimizer.param_groups for p in group["params"]])
        if self.mixed is None:
            optimizer.step()
        else:
            self.mixed.optimizer_step(optimizer)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint has to keep: how the loss is scaled, if it is."""
        scaler = self.mixed.state_dict() if self.mixed is not None else {}
        return {"scaler": scaler} if scaler else {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on as a checkpoint says."""
        if self.mixed is not None and state:
            self.mixed.load_state_dict(state)

    def _add_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Give every parameter the sum of its gradients; none where no process has one."""
        if self.processes.count == 1:
            return
        missing = [parameter.grad is None for parameter in parameters]
        pieces = [
            torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten()
            for p in parameters
        ]
        there = pieces[0].new_tensor(missing).logical_not().to(pieces[0])
        added = self.processes.sum(torch.cat([*pieces, there]))
        *gradients, there = added.split([*map(len, pieces), len(parameters)])
        for parameter, gradient, number in zip(
            parameters, gradients, there.tolist(), strict=True
        ):
            parameter.grad = gradient.view_as(parameter) if number else None

    def whole(self, scene: Scene) -> Scene:
        """Return the scenes of all processes' images, in their order."""
        if self.processes.count == 1:
            return scene
        there = tensor_fields(scene)
        return Scene(**dict(zip(there, self.processes.gather([*there.values()]), strict=True)))

    def follow(self, decomposer: Decomposer, optimizer: torch.optim.Optimizer) -> None:
        """Let all processes have the first one's weights, memory and random state.

        They are the same already, unless machines round differently or a part draws random
        numbers for images.
        """
        if self.processes.count == 1:
            return
        random = torch.get_rng_state()
        self.processes.follow([*_state(decomposer, optimizer), random])
        torch.set_rng_state(random)


def _state(decomposer: Decomposer, optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    yield from decomposer.state_dict().values()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            memory = optimizer.state.get(parameter, {})
            yield from (value for value in memory.values() if torch.is_tensor(value))


def _compute_mixed(encoder: Encoder, mixed: Any) -> None:
    """Let an encoder compute in 16 bits while it learns, from 32 and to 32."""
    contexts: list[Any] = []

    def begin(module: nn.Module, _: Any) -> None:
        if module.training:
            contexts.append(mixed.forward_context())
            contexts[-1].__enter__()

    def end(module: nn.Module, _: Any, features: Any) -> Any:
        if module.training:
            contexts.pop().__exit__(None, None, None)
            return mixed.convert_output(features)
        return features

    encoder.register_forward_pre_hook(begin)
    encoder.register_forward_hook(end, always_call=True)
