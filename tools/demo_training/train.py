"""Trains the demo checkpoints from scratch: `python -m tools.demo_training.train [--out DIR]`.

Boundary: the order of the stages. Each stage stores its result in the work folder, where an
interrupted run, or one for a single model, continues.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlavaForConditionalGeneration

from engine.demo.demo_dataset import TRAINING
from tools.demo_training.corpus import WIDE, Corpus, load_corpus, mirrored
from tools.demo_training.joint_training import (
    Features,
    features_of,
    sight_of,
    teach_language,
    train_jointly,
    train_language,
)
from tools.demo_training.networks import FAMILIES, DemoNetwork, Family, new_network, save_network
from tools.demo_training.qwen_network import FRAMES as QWEN_FRAMES
from tools.demo_training.qwen_network import NAME as QWEN
from tools.demo_training.qwen_network import build_qwen_tokenizer, new_qwen, save_qwen
from tools.demo_training.qwen_tower import train_qwen_tower
from tools.demo_training.qwen_training import train_qwen
from tools.demo_training.tokenizer import build_tokenizer
from tools.demo_training.towers import say, train_tower

CHECKPOINTS = Path(__file__).resolve().parents[2] / "engine" / "demo" / "checkpoints"
NICKNAMES: dict[str, str] = {
    "llava": "llava",
    "video": "video_llava",
    "event": "eventgpt",
    "qwen": QWEN,
}
LANGUAGE_STEPS = 240
TOWER_STEPS = 2200
QWEN_TOWER_STEPS, QWEN_LANGUAGE_STEPS, QWEN_STEPS = 2200, 200, 500
JOINT_STEPS: dict[Family, int] = {"llava": 400, "video_llava": 420, "eventgpt": 500}
Weights = dict[str, torch.Tensor]


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
    only = NICKNAMES.get(chosen.only or "")
    families = tuple(family for family in FAMILIES if only in (None, family))
    train(chosen.out, chosen.work, range(first, last), families)
    if only in (None, QWEN):
        train_qwen_checkpoint(chosen.out / QWEN, chosen.work, range(first, last))


def train(out: Path, work: Path, seeds: range, families: tuple[Family, ...]) -> None:
    """All stages for the families; writes one folder for each below `out`."""
    if not families:
        return
    corpus = load_corpus(work / "corpus", seeds)
    halves = corpus, mirrored(corpus)
    truth = np.concatenate([half.truth for half in halves])
    tokenizer = build_tokenizer()
    for family in families:
        network = new_network(family, tokenizer)
        features = _load_tower(network, halves, work)
        fresh = family != "video_llava"
        if fresh:
            _load_language(network, tokenizer, work)
        else:
            _start_from_llava(network, out / "llava")
        train_jointly(network, tokenizer, features, truth, JOINT_STEPS[family], fresh)
        save_network(network, tokenizer, out / family)
        say(f"{family}: saved in {out / family}")


def train_qwen_checkpoint(out: Path, work: Path, seeds: range) -> None:
    """All stages of the checkpoint in Qwen's form; it sees larger pictures than the others."""
    corpus = load_corpus(work / "corpus-wide", seeds, canvas=WIDE)
    halves = corpus, mirrored(corpus)
    tokenizer = build_qwen_tokenizer()
    torch.manual_seed(2)
    model: Any = new_qwen(tokenizer)
    inner = model.model

    def make_tower() -> Weights:
        return dict(train_qwen_tower(halves, QWEN_TOWER_STEPS).state_dict())

    def make_language() -> Weights:
        parts = inner.language_model, model.lm_head
        teach_language(*parts, tokenizer, QWEN_LANGUAGE_STEPS, QWEN_FRAMES)
        return dict(torch.nn.ModuleList(parts).state_dict())

    language = _stored(work / "qwen-language.pt", make_language)
    torch.nn.ModuleList([inner.language_model, model.lm_head]).load_state_dict(language)
    inner.visual.load_state_dict(_stored(work / "qwen-tower.pt", make_tower))
    train_qwen(model, tokenizer, halves, QWEN_STEPS)
    save_qwen(model, tokenizer, out)
    say(f"{QWEN}: saved in {out}")


def _load_language(network: DemoNetwork, tokenizer: Any, work: Path) -> None:
    def make() -> Weights:
        return dict(train_language(tokenizer, LANGUAGE_STEPS).state_dict())

    state = _stored(work / "language.pt", make)
    inner = {key.removeprefix("model."): value for key, value in state.items() if "model." in key}
    missing, unknown = network.language.load_state_dict(inner, strict=False)
    if unknown or any(key in inner for key in missing):
        raise ValueError(f"the language model does not fit {network.family}: {unknown}")
    network.head.load_state_dict({"weight": state["lm_head.weight"]})


def _start_from_llava(network: DemoNetwork, folder: Path) -> None:
    """Starts the video model from the image model; it only has to learn to compare frames."""
    if not (folder / "config.json").exists():
        raise SystemExit(f"{folder} contains no LLaVA: train it first (--only llava).")
    llava: Any = LlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    network.projector.load_state_dict(llava.model.multi_modal_projector.state_dict())
    network.language.load_state_dict(llava.model.language_model.state_dict())
    network.head.load_state_dict(llava.lm_head.state_dict())


def _load_tower(network: DemoNetwork, halves: tuple[Corpus, Corpus], work: Path) -> Features:
    """A trained tower for the network, and its features of the corpus and of its mirror image."""
    sight = sight_of(network)

    def make() -> Weights:
        return dict(train_tower(sight, halves, TOWER_STEPS).state_dict())

    network.tower.load_state_dict(_stored(work / f"{sight}.pt", make))
    tower = network.tower.eval()
    path = work / f"{sight}-features.npy"
    if not path.exists():
        part = path.with_suffix(".part.npy")
        np.save(part, np.concatenate([features_of(tower, half, sight) for half in halves]))
        part.rename(path)
    features: Features = np.load(path)
    return features


def _stored(path: Path, make: Callable[[], Weights]) -> Weights:
    """The weights stored at `path`; makes them if they are missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(make(), path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    weights: Weights = torch.load(path, weights_only=True)
    return weights


if __name__ == "__main__":
    main()
