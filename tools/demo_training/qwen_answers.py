"""How often the Qwen2.5-VL demo checkpoint is right: `python -m tools.demo_training.qwen_answers`.

Boundary: asks the checkpoint through transformers' own `generate()` alone, so its figures do not
depend on the engine's models. `stagescope demo --evaluate` measures the same through the pipeline.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from engine import media
from engine.analysis.answer_reading import MOTION_ASKED, Claims, read_attributes, score
from engine.demo import evaluate
from engine.demo.demo_dataset import HELD_OUT, write_dataset
from engine.demo.demo_questions import ASKED, DEFAULT_QUESTION
from engine.demo.scene_answers import Voice
from engine.media import dataset
from engine.types import Image, MediaKind
from tools.demo_training.qwen_network import IMAGES, NAME, PICTURE
from tools.demo_training.towers import say
from tools.demo_training.train import CHECKPOINTS

SHOWN: dict[Voice, MediaKind] = {"image": "image", "event": "events"}
BATCH = 25  # scenes at a time
LONGEST = 160  # tokens of an answer


class Witness:
    """The checkpoint with its own image processor, tokenizer and chat template, in float32."""

    def __init__(self, folder: Path):
        self._model: Any = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
        self._processor: Any = Qwen2VLImageProcessorPil.from_pretrained(folder)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def ask(self, pictures: Sequence[Sequence[Image]], question: str) -> list[str]:
        """The greedy answer about the pictures of each scene, which all have the same size."""
        seen = self._processor([one for scene in pictures for one in scene], return_tensors="pt")
        cells = int(seen["image_grid_thw"][0].prod()) // self._processor.merge_size**2
        prompt = self.prompt(len(pictures[0]), question).replace(PICTURE, PICTURE * cells)
        ids = torch.tensor([self._tokenizer(prompt).input_ids] * len(pictures))
        given = {
            "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == self._tokenizer.convert_tokens_to_ids(PICTURE)).int(),
        }
        made = self._model.generate(input_ids=ids, **given, **seen, max_new_tokens=LONGEST)
        answers = self._tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
        return [str(answer).strip() for answer in answers]

    def prompt(self, images: int, question: str) -> str:
        """The chat template's text for this many pictures and a question."""
        content = [*[{"type": "image"}] * images, {"type": "text", "text": question}]
        talk = [{"role": "user", "content": content}]
        return str(
            self._tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
        )


def measure(witness: Witness, seeds: range) -> evaluate.Table:
    """{voice: {attribute: accuracy, majority, n, claimed}} on the scenes of the seeds."""
    truths: list[Claims] = []
    claims: dict[Voice, list[Claims]] = {voice: [] for voice in IMAGES}
    for start in range(seeds.start, seeds.stop, BATCH):
        part = range(start, min(start + BATCH, seeds.stop))
        with tempfile.TemporaryDirectory() as folder:
            samples = dataset.read(write_dataset(Path(folder) / "held-out", part)).samples
            truths += [dict(sample.truth) for sample in samples]
            for voice in IMAGES:
                shown = [media.load(sample, SHOWN[voice], "").images for sample in samples]
                claims[voice] += _claims(witness, shown)
        say(f"evaluated scenes {part.start} to {part.stop - 1}")
    return {voice: score(truths, claims[voice], evaluate.SCORED) for voice in IMAGES}


def _claims(witness: Witness, shown: Sequence[Sequence[Image]]) -> list[Claims]:
    """The statements about each scene; motion is also asked separately."""
    described = [read_attributes(answer) for answer in witness.ask(shown, DEFAULT_QUESTION)]
    asked = [read_attributes(answer) for answer in witness.ask(shown, ASKED["motion"][0])]
    pairs = zip(described, asked, strict=True)
    return [
        said | ({MOTION_ASKED: moving["motion"]} if "motion" in moving else {})
        for said, moving in pairs
    ]


def main() -> None:
    """Reads the command line and prints a table for each kind of input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=CHECKPOINTS / NAME, help="the checkpoint")
    parser.add_argument(
        "--scenes", type=int, default=len(HELD_OUT), help="how many held-out scenes"
    )
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(evaluate.as_text(measure(Witness(chosen.folder), HELD_OUT[: chosen.scenes])))


if __name__ == "__main__":
    main()
