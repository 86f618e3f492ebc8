"""Trains the demo checkpoints from scratch: `python -m tools.demo_training.train [--out DIR]`.

Boundary: the order of the stages and their stored results. Every stage stores its result in the
work folder, so that an interrupted run, or one for a single model, continues from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlavaForConditionalGeneration

from tools.demo_training.corpus import TRAINING, Corpus, load_corpus, mirrored
from tools.demo_training.joint_training import Features, join, learn_language, look, sight_of
from tools.demo_training.networks import FAMILIES, Family, Pupil, new_pupil, save_pupil
from tools.demo_training.tokenizer import build_tokenizer
from tools.demo_training.towers import say, train_tower

CHECKPOINTS = Path(__file__).resolve().parents[2] / "engine" / "demo" / "checkpoints"
NICKNAMES: dict[str, Family] = {"llava": "llava", "video": "video_llava", "event": "eventgpt"}
LANGUAGE_STEPS = 240
TOWER_STEPS = 2200
JOINT_STEPS: dict[Family, int] = {"llava": 400, "video_llava": 420, "eventgpt": 500}


def main() -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=CHECKPOINTS, help="where checkpoints go")
    parser.add_argument("--work", type=Path, default=Path("data/demo-training"), help="work folder")
    parser.add_argument("--seeds", default=f"{TRAINING.start}:{TRAINING.stop}", help="scenes A:B")
    parser.add_argument("--only", choices=sorted(NICKNAMES), help="one model")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    first, last = (int(part) for part in chosen.seeds.split(":"))
    families = (NICKNAMES[chosen.only],) if chosen.only else FAMILIES
    train(chosen.out, chosen.work, range(first, last), families)


def train(out: Path, work: Path, seeds: range, families: tuple[Family, ...]) -> None:
    """All stages for the families; one folder each below out."""
    corpus = load_corpus(work / "corpus", seeds)
    halves = corpus, mirrored(corpus)
    truth = np.concatenate([half.truth for half in halves])
    tokenizer = build_tokenizer()
    for family in families:
        pupil = new_pupil(family, tokenizer)
        features = _give_sight(pupil, halves, work)
        fresh = family != "video_llava"
        if fresh:
            _give_language(pupil, tokenizer, work)
        else:
            _inherit(pupil, out / "llava")
        join(pupil, tokenizer, features, truth, JOINT_STEPS[family], fresh)
        save_pupil(pupil, tokenizer, out / family)
        say(f"{family}: saved in {out / family}")


def _give_language(pupil: Pupil, tokenizer: Any, work: Path) -> None:
    def make() -> dict[str, torch.Tensor]:
        return dict(learn_language(tokenizer, LANGUAGE_STEPS).state_dict())

    state = _once(work / "language.pt", make)
    inner = {key.removeprefix("model."): value for key, value in state.items() if "model." in key}
    missing, unknown = pupil.language.load_state_dict(inner, strict=False)
    if unknown or any(key in inner for key in missing):
        raise ValueError(f"the language does not fit {pupil.family}: {unknown}")
    pupil.head.load_state_dict({"weight": state["lm_head.weight"]})


def _inherit(pupil: Pupil, folder: Path) -> None:
    """Start the video model from the image model: what is left to learn is to compare frames."""
    if not (folder / "config.json").exists():
        raise SystemExit(f"{folder} holds no LLaVA yet: train it first (--only llava).")
    elder: Any = LlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    pupil.projector.load_state_dict(elder.model.multi_modal_projector.state_dict())
    pupil.language.load_state_dict(elder.model.language_model.state_dict())
    pupil.head.load_state_dict(elder.lm_head.state_dict())


def _give_sight(pupil: Pupil, halves: tuple[Corpus, Corpus], work: Path) -> Features:
    """A trained tower for the network, and its features of the corpus and of its mirror image."""
    sight = sight_of(pupil)

    def make() -> dict[str, torch.Tensor]:
        return dict(train_tower(sight, halves, TOWER_STEPS).state_dict())

    pupil.tower.load_state_dict(_once(work / f"{sight}.pt", make))
    tower = pupil.tower.eval()
    path = work / f"{sight}-features.npy"
    if not path.exists():
        part = path.with_suffix(".part.npy")
        np.save(part, np.concatenate([look(tower, half, sight) for half in halves]))
        part.rename(path)
    features: Features = np.load(path)
    return features


def _once(path: Path, make: Callable[[], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The weights kept at path, made first if they are not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(make(), path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    weights: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
    return weights


if __name__ == "__main__":
    main()
