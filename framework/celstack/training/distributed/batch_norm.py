"""Batch normalization with statistics over the global batch, on any device.

``torch.nn.SyncBatchNorm`` is not used because it needs an accelerator (here training with gloo
on CPUs must work), and because it counts a replicated batch once for every rank.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from celstack.training.distributed.process_group import ProcessGroup


def convert_batch_norm(module: nn.Module, group: ProcessGroup) -> None:
    """Replace every batch normalization in a module by ``SharedBatchNorm``, in place.

    Parameters and buffers are shared with the replaced modules. Does nothing with one process.
    """
    if group.world_size == 1:
        return
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, SharedBatchNorm):
                setattr(parent, name, SharedBatchNorm(child, group))


class SharedBatchNorm(_BatchNorm):
    """A batch normalization whose statistics are those of all ranks' images."""

    def __init__(self, norm: _BatchNorm, group: ProcessGroup) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, affine=False)
        self.affine, self.track_running_stats = norm.affine, norm.track_running_stats
        self.weight, self.bias = norm.weight, norm.bias
        self.running_mean, self.running_var = norm.running_mean, norm.running_var
        self.num_batches_tracked = norm.num_batches_tracked
        self.training = norm.training
        self.group = group

    def _check_input_dim(self, values: Tensor) -> None:
        """Accept images and vectors."""

    def forward(self, values: Float[Tensor, "B C ..."]) -> Float[Tensor, "B C ..."]:
        """Normalize; a replicated batch is handled as if there were one process."""
        if not self.training or not self.group.is_sharded:
            return super().forward(values)
        normalized, mean, variance, count = _SharedNormalize.apply(
            values, self.weight, self.bias, self.eps, self.group
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
        return normalized


class _SharedNormalize(torch.autograd.Function):
    """(x - mean) / deviation * weight + bias, with gradients through mean and deviation."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        group: ProcessGroup,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        own = values.float() if values.dtype.itemsize < 4 else values
        mean, variance = torch.ops.aten.batch_norm_update_stats(own, None, None, 0.0)
        number = mean.new_tensor([values.numel() / values.shape[1]])
        # Combining means and variances loses fewer digits than sums of squares would.
        gathered = group.all_gather(torch.cat([number, mean, variance]))
        numbers, means, variances = gathered.split([1, len(mean), len(mean)], dim=1)
        count = numbers.sum()
        shares = numbers / count
        mean = (shares * means).sum(0)
        variance = (shares * (variances + (means - mean).square())).sum(0)
        ctx.save_for_backward(values, weight, mean, variance, count)
        ctx.group, ctx.eps = group, eps
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
        # First the gradient with mean and variance held constant, by torch's own kernel.
        own, weight_grad, bias_grad = torch.ops.aten.native_batch_norm_backward(
            grad, values, weight, mean, variance, None, None, False, ctx.eps, [True] * 3
        )
        sums = ctx.group.all_reduce_sum(torch.stack([bias_grad, weight_grad]))
        offset, tilt = (sums / count).unbind()
        scale = (variance + ctx.eps).rsqrt()
        gain = scale if weight is None else scale * weight
        # The gradient through mean and variance is linear in the values.
        slope = -gain * scale * tilt
        shape = [1, -1, *[1] * (values.dim() - 2)]
        own.addcmul_(values, slope.to(own).view(shape))
        own.sub_((gain * offset + slope * mean).to(own).view(shape))
        affine = (weight_grad, bias_grad) if weight is not None else (None, None)
        return own, *affine, None, None
