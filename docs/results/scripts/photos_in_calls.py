"""What `learn` makes of photographs that come in several calls, beside what a few lines of Python make of the same
embeddings. DATA has one sub-folder of images for each class.

    python docs/results/scripts/photos_in_calls.py DATA --calls 3 --test 10
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from torch import Tensor
from torch.nn.functional import normalize

from episodica.classifier.calibration import auroc
from episodica.classifier.exact_state import ExactState
from episodica.classifier.incoming.read import read_classes
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.engine.image_encoder import ImageEncoder
from episodica.rng import generator

Embedded = dict[str, Tensor]  # of each class [n, D]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--calls", type=int, default=3, help="in which the classes come")
    parser.add_argument("--test", type=int, default=10, help="images of each class that are only asked")
    parser.add_argument("--episodes", type=int, default=100, help="draws of the examples of classes that are new")
    given = parser.parse_args()
    classes = {name: sorted(paths, key=str) for name, paths in read_classes(given.data).classes.items()}
    test = {name: paths[: given.test] for name, paths in classes.items()}
    train = {name: paths[given.test :] for name, paths in classes.items()}
    names = list(classes)
    batches = [names[i :: given.calls] for i in range(given.calls)]
    with TemporaryDirectory() as place:
        folder, calls = ModelFolder(Path(place) / "model"), []
        encoder, asked, known = None, {}, {}
        for i, batch in enumerate(batches):
            before = time.process_time()
            with folder.writing():
                call = plan_call(folder, {name: train[name] for name in batch}, LearnOptions())
                state = learn(folder, call, lambda event: None)
            seconds = time.process_time() - before
            assert isinstance(state, ExactState)
            if encoder is None:
                encoder = folder.encoders.load(state.record.encoder, state.config)
                asked, known = embedded(encoder, test), embedded(encoder, train)
            so_far = [name for part in batches[: i + 1] for name in part]
            new = [name for name in names if name not in so_far]
            calls.append(
                {
                    "classes": len(so_far),
                    "CPU seconds": round(seconds, 1),
                    **compared(state, so_far, known, asked),
                    **(few_shot(state, new, known, asked, given.episodes) if len(new) > 1 else {}),
                    **(unknown(state, so_far, new, asked) if new else {}),
                }
            )
        print(json.dumps(calls, indent=1))


def embedded(encoder: ImageEncoder, classes: dict[str, list]) -> Embedded:
    return {name: torch.from_numpy(encoder.embed(paths).vectors) for name, paths in classes.items()}


def compared(state: ExactState, names: list[str], known: Embedded, asked: Embedded) -> dict[str, float]:
    """Accuracy among all classes so far, in per cent."""
    vectors, labels = torch.cat([asked[name] for name in names]), [name for name in names for _ in asked[name]]
    recogniser = state.recogniser()
    best = [answer.best for answer in recogniser.answers(vectors.numpy())]
    means = normalize(torch.stack([normalize(known[name], dim=1).mean(0) for name in names]), dim=1)
    nearest = [names[i] for i in (normalize(vectors, dim=1) @ means.T).argmax(1).tolist()]
    examples = torch.cat([known[name] for name in names]).numpy()
    everything = make_pipeline(Normalizer(), StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    everything.fit(examples, [name for name in names for _ in known[name]])
    found = {"learn": best, "cosine means": nearest, "logistic regression": everything.predict(vectors.numpy())}
    return {what: per_cent(answers, labels) for what, answers in found.items()}


def few_shot(state: ExactState, new: list[str], known: Embedded, asked: Embedded, episodes: int) -> dict[str, float]:
    """Up to 10 classes that were never learned, from 5 examples and from 1."""
    found: dict[str, float] = {}
    for shots in (5, 1):
        ours, cosine = [], []
        for episode in range(episodes):
            g = generator("photos in calls", episode, shots)
            chosen = [new[i] for i in torch.randperm(len(new), generator=g)[:10].tolist()]
            support = {
                name: known[name][torch.randperm(len(known[name]), generator=g)[:shots]] for name in sorted(chosen)
            }
            vectors = torch.cat([asked[name] for name in support])
            labels = [name for name in support for _ in asked[name]]
            answers = (
                state.recogniser()
                .only({name: part.numpy() for name, part in support.items()})
                .probabilities(vectors.numpy())
                .argmax(1)
                .tolist()
            )
            ours.append(per_cent([sorted(support)[i] for i in answers], labels))
            means = normalize(torch.stack([normalize(part, dim=1).mean(0) for part in support.values()]), dim=1)
            places = (normalize(vectors, dim=1) @ means.T).argmax(1).tolist()
            cosine.append(per_cent([list(support)[i] for i in places], labels))
        found |= {f"new, {shots}-shot": round(sum(ours) / episodes, 1)}
        found |= {f"new, {shots}-shot, cosine means": round(sum(cosine) / episodes, 1)}
    return found


def unknown(state: ExactState, so_far: list[str], new: list[str], asked: Embedded) -> dict[str, float]:
    recogniser = state.recogniser()
    own, others = (recogniser.strange(torch.cat([asked[name] for name in names]).numpy()) for names in (so_far, new))
    rejected = float((own.values > own.limits).mean())
    noticed = float((others.values > others.limits).mean())
    return {
        "unknown AUROC": round(100 * auroc(own.values, others.values), 1),
        "false rejects": round(100 * rejected, 1),
        "unknown noticed": round(100 * noticed, 1),
    }


def per_cent(answers: object, labels: list[str]) -> float:
    right = [answer == label for answer, label in zip(answers, labels, strict=True)]  # type: ignore[call-overload]
    return round(100 * sum(right) / len(right), 1)


if __name__ == "__main__":
    main()
