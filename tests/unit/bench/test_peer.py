"""The peer's loop learns what the engine learns: it differs in speed only."""

import time

import numpy as np
import pytest
import torch
from PIL import Image

from episodica.bench.peer import PeerLoop, Pictures, Transform, in_memory, loaded, rows_of
from episodica.bench.training import peer_loop
from episodica.bench.workload import DEFAULT, STILL, EngineLoop, Workload, available_kernels
from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.rng import generator

WORKLOAD = Workload(size=16)


@pytest.mark.parametrize("kernels", available_kernels())
@pytest.mark.parametrize("network", ["4-Conv", "Relation Networks"])  # ResNet-12 drops at random, each its own way
def test_the_losses_of_a_few_steps_are_those_of_the_engine(kernels: str, network: str) -> None:
    workload = Workload(size=16, network=network)
    peer, engine = peer_loop(workload, in_memory(workload), time.perf_counter), EngineLoop(workload, kernels)
    for _ in range(3):
        ours = torch.stack(list(engine.step().values())).sum().detach()
        torch.testing.assert_close(peer.step(), ours, rtol=1e-3, atol=1e-4)


def test_the_loader_gives_what_lies_in_memory() -> None:
    one_by_one, at_once = loaded(WORKLOAD, workers=0), in_memory(WORKLOAD)
    for _ in range(2):
        torch.testing.assert_close(next(one_by_one), next(at_once), rtol=0, atol=0)


def test_pictures_are_the_engine_s_pixels() -> None:
    rows, pictures = rows_of(WORKLOAD, 3), Pictures(WORKLOAD)
    ours = augment.plain(WORKLOAD.store.read(rows), STILL)
    torch.testing.assert_close(torch.stack([pictures[row] for row in rows.tolist()]), ours.contiguous())


def test_the_account_covers_the_step() -> None:
    peer = PeerLoop(WORKLOAD, loaded(WORKLOAD, workers=0), time.perf_counter)
    started = time.perf_counter()
    peer.step()
    assert list(peer.spent) == ["loading", "forward", "backward", "optimiser"]
    assert 0 < sum(peer.spent.values()) <= time.perf_counter() - started


def test_an_augmented_view_is_a_window_of_the_padded_image_mirrored_or_not() -> None:
    how = AugmentConfig(brightness=0, contrast=0, colour=0)
    image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    padded = np.pad(image, ((4, 4), (4, 4), (0, 0)))
    windows = [padded[y : y + 8, x : x + 8] for y in range(9) for x in range(9)]
    possible = {window.tobytes() for window in windows} | {window[:, ::-1].tobytes() for window in windows}
    transform, g = Transform(how), generator("views")
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (how.mean, how.std))
    seen = set()
    for _ in range(200):
        view = transform(Image.fromarray(image), g)
        pixels = ((view * std + mean) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
        seen.add(pixels.tobytes())
    assert seen <= possible
    assert len(seen) > 50


def test_jitter_changes_an_image_within_its_strength() -> None:
    how = AugmentConfig(crop="none", flip=False, contrast=0, colour=0, brightness=0.4, mean=(0, 0, 0), std=(1, 1, 1))
    grey, g = Image.new("RGB", (4, 4), (100, 100, 100)), generator("jitter")
    values = [float(Transform(how)(grey, g).mean()) * 255 for _ in range(50)]
    assert 59 <= min(values) < 70
    assert 130 < max(values) <= 140


def test_the_default_augmentation_is_one_that_the_peer_has() -> None:
    view = Transform(DEFAULT)(Image.new("RGB", (16, 16), (10, 200, 30)), generator("default"))
    assert view.shape == (3, 16, 16)
    assert view.isfinite().all()
