"""One image, and what is known of its pixels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Labeled(NamedTuple):
    """An image (H, W, 3), and instance and class of each pixel (H, W), 0 for background."""

    image: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    classes: NDArray[np.uint8]
