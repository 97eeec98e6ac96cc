"""What compression leaves of a data set's images: bytes of an image, how many take those of 20, and how near they are.

python docs/results/scripts/codecs.py DATA NAME

DATA is the folder of a data set called NAME (`cifar100`), of which 2,000 images are taken. Prints a table in Markdown.
"""

import sys

import numpy as np
import torch

from episodica.config import resolve
from episodica.data.compression import CompressedStore
from episodica.engine.experiment import load_experiment

LOOKED_AT, PLAIN = 2_000, 20
SETTINGS = (("jpeg", 20), ("jpeg", 50), ("jpeg", 75), ("jpeg", 90), ("avif", 50), ("avif", 80), ("avif", 90))


def main(data: str, name: str) -> None:
    images = load_experiment(resolve({"data": {"name": name, "root": data}})).store.images
    rows = torch.linspace(0, len(images) - 1, LOOKED_AT).long()
    whole = np.asarray(images[rows.numpy()], dtype=np.float64)
    print(f"| codec | quality | bytes an image | images in the bytes of {PLAIN} | PSNR, dB |")
    print("|---|---:|---:|---:|---:|")
    for codec, quality in SETTINGS:
        store = CompressedStore(images, codec, quality)
        size = store.bytes(rows).double().mean().item()
        errors = ((store.read(rows).numpy() - whole) ** 2).mean((1, 2, 3))
        likeness = (10 * np.log10(255**2 / errors)).mean()
        print(f"| {codec} | {quality} | {size:.0f} | {PLAIN * store.plain_bytes / size:.0f} | {likeness:.1f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
