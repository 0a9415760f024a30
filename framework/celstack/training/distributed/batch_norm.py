"""Batch normalisation over batches that are divided among processes.

torch's own ``SyncBatchNorm`` computes on accelerators only, and counts a batch that every
process has whole once for each of them.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from celstack.training.distributed.process_group import Processes


def share_norms(module: nn.Module, processes: Processes) -> None:
    """Let every batch normalisation in a module know the whole batch; weights stay theirs."""
    if processes.count == 1:
        return
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, SharedNorm):
                setattr(parent, name, SharedNorm(child, processes))


class SharedNorm(_BatchNorm):
    """A batch normalisation whose statistics are those of all processes' images."""

    def __init__(self, norm: _BatchNorm, processes: Processes) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, affine=False)
        self.affine, self.track_running_stats = norm.affine, norm.track_running_stats
        self.weight, self.bias = norm.weight, norm.bias
        self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.num_batches_tracked = norm.num_batches_tracked
        self.training = norm.training
        self.processes = processes

    def _check_input_dim(self, values: Tensor) -> None:
        """Take images and vectors."""

    def forward(self, values: Float[Tensor, "B C ..."]) -> Float[Tensor, "B C ..."]:
        """Normalise; a batch that every process has whole is as if there were one process."""
        if not self.training or not self.processes.divided:
            return super().forward(values)
        normal, mean, variance, count = _SharedNormalise.apply(
            values, self.weight, self.bias, self.eps, self.processes
        )
        if self.track_running_stats and self.running_mean is not None:
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            self.num_batches_tracked += 1
            momentum = self.momentum
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance * (count / (count - 1)), momentum)
        return normal


class _SharedNormalise(torch.autograd.Function):
    """(x - mean) / deviation * weight + bias, and its gradient through mean and deviation."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        processes: Processes,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        own = values.float() if values.dtype.itemsize < 4 else values
        mean, variance = torch.ops.aten.batch_norm_update_stats(own, None, None, 0.0)
        number = mean.new_tensor([values.numel() / values.shape[1]])
        # Means and squares around them add up without the loss of digits of sums of squares.
        found = processes.stack(torch.cat([number, mean, variance]))
        numbers, means, variances = found.split([1, len(mean), len(mean)], dim=1)
        count = numbers.sum()
        shares = numbers / count
        mean = (shares * means).sum(0)
        variance = (shares * (variances + (means - mean).square())).sum(0)
        ctx.save_for_backward(values, weight, mean, variance, count)
        ctx.processes, ctx.eps = processes, eps
        ctx.mark_non_differentiable(mean, variance, count)
        ctx.set_materialize_grads(False)
        return (
            batch_norm(values, mean, variance, weight, bias, training=False, eps=eps),
            mean,
            variance,
            count,
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        values, weight, mean, variance, count = ctx.saved_tensors
        # As if mean and variance were constants: that is one pass of torch's own.
        own, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            grad, values, weight, mean, variance, None, None, False, ctx.eps, [True] * 3
        )
        level, tilt = (ctx.processes.sum(torch.stack([of_bias, of_weight])) / count).unbind()
        scale = (variance + ctx.eps).rsqrt()
        gain = scale if weight is None else scale * weight
        # What they add is linear in the values.
        slope = -gain * scale * tilt
        shape = [1, -1, *[1] * (values.dim() - 2)]
        own.addcmul_(values, slope.to(own).view(shape))
        own.sub_((gain * level + slope * mean).to(own).view(shape))
        learns = (of_weight, of_bias) if weight is not None else (None, None)
        return own, *learns, None, None
