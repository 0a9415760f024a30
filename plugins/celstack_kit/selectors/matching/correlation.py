"""Cross-correlation of templates with feature maps, directly or by FFT."""

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn.functional import conv2d, pad

FFT_VALUE_COST = 10.0
"""Cost of one value of a transformed map, in multiplications of a direct correlation."""


class Correlation:
    """Cross-correlates K templates of G channels with maps of a fixed size.

    The template may extend over the map's border by half its size; maps are zero-padded. Output
    (0, 0) has the template's first pixel ``margin`` rows above and columns left of the map's.

    Args:
        templates: The templates.
        canvas: Height and width of the maps.
        use_fft: Whether to use the FFT; by default, whatever is estimated to be faster.
    """

    def __init__(
        self,
        templates: Float[Tensor, "K G h w"],
        canvas: tuple[int, int],
        use_fft: bool | None = None,
    ) -> None:
        # Imported here because it takes longer than the rest of the module.
        from scipy.fft import next_fast_len

        self.templates = templates
        self.canvas = canvas
        height, width = templates.shape[-2:]
        self.margin = (height // 2, width // 2)
        self.output_size = output_size((height, width), canvas)
        # The circular correlation wraps around, but only into the zero padding.
        self.period = (
            next_fast_len(canvas[0] + self.margin[0], real=True),
            next_fast_len(canvas[1] + self.margin[1], real=True),
        )
        if use_fft is None:
            area = math.prod(self.period)
            direct = height * width * math.prod(self.output_size)
            use_fft = FFT_VALUE_COST * area * math.log2(area) < direct
        self.spectrum: Tensor | None = None
        if use_fft:
            self.spectrum = torch.fft.rfft2(templates, s=self.period).conj().resolve_conj()
            self.inverse_rows, self.inverse_columns = _inverse_dft(
                self.period, self.output_size, templates
            )

    def __call__(self, maps: Float[Tensor, "B g H W"]) -> Float[Tensor, "B K P Q"]:
        """Return the cross-correlation with each template, summed over channels.

        Maps may have fewer channels than the templates; missing ones count as zero.
        """
        above, left = self.margin
        if self.spectrum is None:
            used = self.templates[:, : maps.shape[1]]
            return conv2d(pad(maps, (left, left, above, above)), used)
        spectrum = torch.fft.rfft2(pad(maps, (left, 0, above, 0)), s=self.period)
        product = spectrum[:, None, 0] * self.spectrum[:, 0]
        for channel in range(1, maps.shape[1]):
            product.addcmul_(spectrum[:, None, channel], self.spectrum[:, channel])
        # irfft2, but only at the outputs that are needed; as matrices it takes half the time.
        return torch.view_as_real(self.inverse_rows @ product).flatten(3) @ self.inverse_columns


def _inverse_dft(
    period: tuple[int, int], size: tuple[int, int], like: Tensor
) -> tuple[Complex[Tensor, "P N"], Float[Tensor, "M Q"]]:
    """Return the matrices of a truncated inverse real DFT, for rows and for columns."""
    (tall, wide), (rows, columns) = period, size

    def phases(length: int, shifts: int, frequencies: int) -> Tensor:
        steps = torch.outer(torch.arange(shifts), torch.arange(frequencies)) % length
        return steps.to(like) * (2 * math.pi / length)

    phase = phases(tall, rows, tall)
    down = torch.complex(phase.cos(), phase.sin()) / tall
    # Each frequency also stands for its conjugate, except zero and the Nyquist frequency.
    half = wide // 2 + 1
    weight = like.new_full((half,), 2.0 / wide)
    weight[0] = 1.0 / wide
    if wide % 2 == 0:
        weight[-1] = 1.0 / wide
    phase = phases(wide, columns, half)
    across = torch.stack([weight * phase.cos(), -weight * phase.sin()], dim=2)
    return down, across.flatten(1).T.contiguous()


def output_size(size: tuple[int, int], canvas: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns of the correlation of a template of this size with a canvas."""
    rows, columns = (
        side - length + 2 * (length // 2) + 1 for side, length in zip(canvas, size, strict=True)
    )
    return rows, columns
