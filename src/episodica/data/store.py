"""The image store: all images of a data set as one array of bytes, in memory or mapped from a file."""

import numpy as np
import torch
from torch import Tensor


class ImageStore:
    """Gathers images by row. uint8 [n, H, W, 3], so that a gathered batch is channels-last already."""

    def __init__(self, images: np.ndarray) -> None:
        assert images.dtype == np.uint8
        assert images.ndim == 4
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    @property
    def size(self) -> int:
        return self._images.shape[1]

    def read(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self._images[rows.numpy()])
