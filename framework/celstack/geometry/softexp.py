"""An exponential that cannot overflow, for scales told by their logarithm."""

from jaxtyping import Float
from torch import Tensor

BOUND = 8.0


def softexp(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Return e^x, continued along its tangent beyond 8."""
    bounded = values.clamp_max(BOUND)
    # At e^8 a sprite is smaller than a pixel of any canvas below 2981, so no picture tells
    # the difference. e^89 would be infinite, infinity times zero no number, and the run
    # dead; and where a plain clamp would stop gradients, the tangent leads back.
    return bounded.exp() * (1 + values - bounded)
