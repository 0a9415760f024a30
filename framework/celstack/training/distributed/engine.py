"""The engine of a run: gradients of global batches, in full or mixed precision.

The model is not wrapped by Fabric's ``setup`` (DDP), because it is used by other methods than
``forward`` and its state_dict keys must stay, and because DDP averages gradients over ranks
with equal weights, whereas here ranks may hold different numbers of images.
"""

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
from celstack.training.distributed.batch_norm import convert_batch_norm
from celstack.training.distributed.process_group import ProcessGroup

FULL_PRECISION = "32"
FABRIC_PRECISION = {"bf16": "bf16-mixed", "fp16": "16-mixed"}
"""The precisions of a recipe and their names in Lightning Fabric."""


class Engine:
    """Computes gradients of global batches, of which each rank holds a shard.

    Encoders may run in mixed precision, by Lightning Fabric's plugin: autocast with weights in
    32 bits and, for fp16, a gradient scaler. Everything else, which locates things to a
    fraction of a pixel, computes in 32 bits.

    Args:
        group: The processes of the run; without one, this process alone on the CPU.
        precision: ``"32"``, ``"bf16"`` or ``"fp16"``.
    """

    def __init__(
        self, group: ProcessGroup | None = None, precision: str = FULL_PRECISION
    ) -> None:
        self.group = group or ProcessGroup(torch.device("cpu"))
        self.mixed: Any = None
        if precision in FABRIC_PRECISION:
            from lightning_fabric.plugins import MixedPrecision

            name: Any = FABRIC_PRECISION[precision]
            self.mixed = MixedPrecision(name, self.group.device.type)

    def place_model(self, decomposer: Decomposer) -> Decomposer:
        """Move a model to this rank's device and set it up for the group and the precision."""
        decomposer.to(self.group.device)
        convert_batch_norm(decomposer, self.group)
        if self.mixed is not None:
            for part in decomposer.modules():
                if isinstance(part, Encoder):
                    _use_mixed_precision(part, self.mixed)
        return decomposer

    def scale_loss(self, loss: Loss) -> Loss:
        """Weight the loss of this rank's images, so that the sum over ranks is the batch's."""
        weight = self.group.local_weight
        return loss if self.group.world_size == 1 else loss.each(lambda term: term * weight)

    def reduce_loss(self, loss: Loss) -> Loss:
        """Sum scaled losses over all ranks, without gradients."""
        if self.group.world_size == 1:
            return loss.detach()
        terms = loss.detach().terms()
        sums = self.group.all_reduce_sum(torch.stack([*terms.values()]))
        return Loss(**dict(zip(terms, sums, strict=True)))

    def backward_step(self, loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
        """Compute gradients, sum them over all ranks, and take an optimizer step."""
        optimizer.zero_grad()
        if self.mixed is None:
            loss.backward()
        else:
            self.mixed.backward(loss, None)
        self._reduce_gradients([p for group in optimizer.param_groups for p in group["params"]])
        if self.mixed is None:
            optimizer.step()
        else:
            self.mixed.optimizer_step(optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint must hold: the state of the gradient scaler, if any."""
        scaler = self.mixed.state_dict() if self.mixed is not None else {}
        return {"scaler": scaler} if scaler else {}

    def load_scaler(self, state: dict[str, Any]) -> None:
        """Restore the gradient scaler from a checkpoint; an empty state changes nothing."""
        if self.mixed is not None and state:
            self.mixed.load_state_dict(state)

    def _reduce_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Sum gradients over ranks; a parameter without one on every rank keeps None."""
        if self.group.world_size == 1:
            return
        missing = [parameter.grad is None for parameter in parameters]
        pieces = [
            torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten()
            for p in parameters
        ]
        present = pieces[0].new_tensor(missing).logical_not().to(pieces[0])
        sums = self.group.all_reduce_sum(torch.cat([*pieces, present]))
        *gradients, present = sums.split([*map(len, pieces), len(parameters)])
        for parameter, gradient, ranks in zip(
            parameters, gradients, present.tolist(), strict=True
        ):
            parameter.grad = gradient.view_as(parameter) if ranks else None

    def gather_scene(self, scene: Scene) -> Scene:
        """Return the scenes of the global batch, in its order."""
        if self.group.world_size == 1:
            return scene
        present = tensor_fields(scene)
        batch = self.group.gather_batch([*present.values()])
        return Scene(**dict(zip(present, batch, strict=True)))

    def broadcast_state(self, decomposer: Decomposer, optimizer: torch.optim.Optimizer) -> None:
        """Copy rank 0's weights, optimizer state and random state to all ranks.

        They already agree, unless machines round differently or a part draws random numbers
        per image.
        """
        if self.group.world_size == 1:
            return
        random = torch.get_rng_state()
        self.group.broadcast_([*_tensors(decomposer, optimizer), random])
        torch.set_rng_state(random)


def _tensors(decomposer: Decomposer, optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Return all tensors of a model and its optimizer, in the same order on every rank."""
    yield from decomposer.state_dict().values()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            yield from (value for value in state.values() if torch.is_tensor(value))


def _use_mixed_precision(encoder: Encoder, mixed: Any) -> None:
    """Run an encoder under autocast in training mode; inputs and outputs are in 32 bits."""
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
