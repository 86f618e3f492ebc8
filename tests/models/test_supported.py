"""Which folders are run, what they are asked, and what is refused by name before loading."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor
from transformers import AutoTokenizer, LlamaTokenizer

from engine.models import checkpoint, registry
from engine.prompts import DEFAULT_QUESTION
from tests import published_checkpoints, tiny
from tests.models import published_folders
from tests.models.conftest import entry_for, loaded

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("cache_dir")]
# What the released templates of LLaVA-1.5 and Video-LLaVA do: pictures first, then the text.
RELEASED = (
    "{% for message in messages %}{{ message['role'].upper() + ': ' }}"
    "{% for part in message['content'] | selectattr('type', 'equalto', 'image') %}"
    "{{ '<image>\\n' }}{% endfor %}"
    "{% for part in message['content'] | selectattr('type', 'equalto', 'video') %}"
    "{{ '<video>\\n' }}{% endfor %}"
    "{% if message['role'] != 'assistant' %}"
    "{% for part in message['content'] | selectattr('type', 'equalto', 'text') %}"
    "{{ part['text'] + ' ' }}{% endfor %}"
    "{% else %}{% generation %}{{ message['content'] }}{% endgeneration %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
# As a text-only chat model's tokenizer has it: content is a string, BOS is written out.
TEXT_ONLY = (
    "{% for message in messages %}{{ bos_token if loop.first else '' }}"
    "{{ '[' + message['role'] + ']' + message['content'] | trim + '[end]' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"
)


def place(folder: Path, where: str, template: str) -> None:
    if where.endswith(".jinja"):
        (folder / where).write_text(template)
    else:
        published_folders.change(folder, where, chat_template=template)


def test_another_template_is_followed_and_said(tiny_copy: Callable[..., Path]) -> None:
    path = tiny_copy("llava")
    place(path, "tokenizer_config.json", TEXT_ONLY)
    adapter = loaded(path, "llava")
    assert adapter.prompt == "<s>[user]<image>\n{question}[end][assistant]"
    assert any("checkpoint's chat template" in note for note in adapter.notes)
    ids = adapter.prompt_ids("Why {not}?", 1)[0]
    own = AutoTokenizer.from_pretrained(path)
    text = "<s>[user]<image>\nWhy {not}?[end][assistant]"
    rows = [adapter.visual_id] * (tiny.SIZE // tiny.PATCH) ** 2
    wanted = own(text, add_special_tokens=False)["input_ids"]
    at = wanted.index(adapter.visual_id)
    assert ids == [*wanted[:at], *rows, *wanted[at + 1 :]]
    assert ids.count(own.bos_token_id) == 1


def test_another_tokenizer_without_a_template_is_refused(tiny_copy: Callable[..., Path]) -> None:
    """A Llama-3 tokenizer must not get Vicuna's prompt."""
    path = tiny_copy("llava")
    published_folders.change(
        path, "tokenizer_config.json", bos_token="<|begin_of_text|>", eos_token="<|eot_id|>"
    )
    reason = registry.unavailable(entry_for(path, "llava")) or ""
    assert "'<|begin_of_text|>'" in reason and "add chat_template.jinja" in reason
    place(path, "tokenizer_config.json", RELEASED)
    assert registry.unavailable(entry_for(path, "llava")) is None


def test_a_usable_folder_is_read_again_only_when_a_file_changes(
    tiny_copy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_copy("llava")
    item = entry_for(path, "llava")
    with monkeypatch.context() as patched:
        reads, locate = list[str](), checkpoint.locate
        patched.setattr(checkpoint, "locate", lambda one: reads.append(one.name) or locate(one))
        assert [registry.unavailable(item) for _ in range(3)] == [None] * 3
        assert len(reads) <= 2  # once by the check, once by the need
    config = (path / "config.json").read_text()
    (path / "config.json").write_text("[" + config[1:])  # as long as before
    assert "config.json" in (registry.unavailable(item) or "")
    (path / "config.json").write_text(config)
    assert registry.unavailable(item) is None
    (path / "notes").symlink_to(path / "nowhere")  # a file that has no size and no date
    assert registry.unavailable(item) is None
    next(path.glob("*.safetensors")).unlink()
    assert "has no weights" in (registry.unavailable(item) or "")


WORDS = (
    "<s> ▁US ER : ▁ <image> ▁ <0x0A> What ▁are ▁the ▁key ▁elements ▁in ▁this ▁scene ? "
    "▁A SS IST ANT :"
)
PIECES = WORDS.split()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A LLaVA with a sentencepiece model alone, behind whose pieces <image> has its id."""
    raw = published_checkpoints.llama_sentencepiece()
    size = SentencePieceProcessor(model_proto=raw).get_piece_size()
    path = tiny.llava(tmp_path / "llava", size)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (path / name).unlink()
    (path / "tokenizer.model").write_bytes(raw)
    return path


@pytest.mark.parametrize(
    "stated",
    [{"legacy": False}, {"add_bos_token": False}],
)
def test_a_bare_sentencepiece_model_gives_the_published_ids(
    stated: dict[str, Any], bare: Path
) -> None:
    """22 of them, as tokenizer.json gives."""
    alone = loaded(bare, "llava").prompt_ids(DEFAULT_QUESTION, 1)
    published_folders.write(bare, "tokenizer_config.json", stated)
    adapter = loaded(bare, "llava")
    assert adapter.prompt_ids(DEFAULT_QUESTION, 1) == alone
    ids = alone[0]
    rows = (tiny.SIZE // tiny.PATCH) ** 2
    at = ids.index(adapter.visual_id)
    assert ids.count(adapter.visual_id) == rows
    short = [*ids[: at + 1], *ids[at + rows :]]
    assert adapter.tokenizer.convert_ids_to_tokens(short) == PIECES and len(short) == 22


def test_the_bare_model_equals_its_tokenizer_json(bare: Path) -> None:
    alone = loaded(bare, "llava").prompt_ids(DEFAULT_QUESTION, 1)
    saved = LlamaTokenizer.from_pretrained(bare, legacy=True, add_bos_token=True)
    saved.add_tokens(["<image>"], special_tokens=True)
    saved.save_pretrained(bare)
    (bare / "tokenizer.model").unlink(missing_ok=True)
    assert (bare / "tokenizer.json").exists()
    assert loaded(bare, "llava").prompt_ids(DEFAULT_QUESTION, 1) == alone
