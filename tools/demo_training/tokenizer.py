"""The tokenizer of the demo checkpoints: a byte-level BPE over all questions and answers.

Boundary: text in, token ids out. Like LLaMA's where the engine depends on it: <s> comes first
with add_special_tokens, </s> ends an answer, <image> and <video> are single tokens.
"""

from collections.abc import Iterator

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from engine.demo.scenes import draw_truth
from engine.demo.wordings import ASKED, VOICES, Truth, Voice, answer

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<image>", "<video>")
VOCABULARY = 768
CONTEXT = 2048
EVENT_PREAMBLE = (
    "A chat between a curious human and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the human's questions. USER: <ev_start>"
)
# The text before and after the visual tokens at run time, per voice; `{q}` is the question.
FRAMES: dict[Voice, tuple[str, str]] = {
    "event": (EVENT_PREAMBLE, "<ev_end>\n{q} ASSISTANT:"),
    "image": ("USER: ", "\n{q} ASSISTANT:"),
    "video": ("USER: ", "\n{q} ASSISTANT:"),
}


def draw_answer(truth: Truth, voice: Voice, kind: str, rng: np.random.Generator) -> str:
    """The answer in randomly chosen wordings."""
    return answer(truth, voice, kind, lambda some: some[int(rng.integers(len(some)))])


def build_tokenizer(seed: int = 0) -> PreTrainedTokenizerFast:
    """A tokenizer trained on the demo's own questions and answers; deterministic."""
    inner = Tokenizer(models.BPE(unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(training_texts(seed), trainer)
    start = inner.token_to_id("<s>")
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", start)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        additional_special_tokens=["<image>", "<video>"],
        model_max_length=CONTEXT,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def training_texts(seed: int) -> Iterator[str]:
    """The questions, answers and prompts of all voices, in many wordings."""
    rng = np.random.default_rng(seed)
    for before, after in FRAMES.values():
        yield from [before, after] * 20
    for questions in ASKED.values():
        yield from questions
        yield from (question.lower() for question in questions)
    for _ in range(400):
        truth = draw_truth(rng)
        for voice in VOICES:
            yield from (" " + draw_answer(truth, voice, kind, rng) for kind in ASKED)
