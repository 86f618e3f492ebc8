"""Small checkpoints in exactly the forms in which the real ones are published.

The key layouts, the split into shards, the fields of config.json and the tokenizer files are the
releases'; only the sizes are not.  Each starts as a checkpoint of tests/tiny.py.
"""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file

from tests import tiny

Weights = dict[str, torch.Tensor]
Form = Literal["safetensors", "bin"]

_TOWERS = ("vision_tower", "video_tower", "image_tower")
_EVENT_TOWER = "model.visual_tower.visual_tower."
# What a release of each family leaves out of config.json, because it is the class's default there.
_ABSENT = {
    "llava": ("multimodal_projector_bias", "image_seq_length", "dtype", "tie_word_embeddings"),
    "video_llava": (
        *("multimodal_projector_bias", "dtype", "tie_word_embeddings", "video_seq_length"),
    ),
    "eventgpt": ("mm_use_im_patch_token", "mm_use_im_start_end", "dtype", "head_dim", "mlp_bias"),
}
_TEXT_KEPT = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "max_position_embeddings", "rms_norm_eps", "model_type"),
)


def released(key: str) -> str:
    """LLaVA's and Video-LLaVA's first layout: towers hold `vision_model.`."""
    for tower in _TOWERS:
        if key.startswith(f"{tower}."):
            return key.replace(f"{tower}.", f"{tower}.vision_model.", 1)
    return key


def newer(key: str) -> str:
    """Since transformers 4.52: everything but the head below `model.`."""
    if key.startswith("language_model."):
        key = key.removeprefix("language_model.")
        return key.replace("model.", "model.language_model.", 1)
    return f"model.{released(key)}"


def newest(key: str) -> str:
    """The names the modules have in transformers 5: as newer, the towers flat."""
    return newer(key).replace("_tower.vision_model.", "_tower.")


def wrapped(key: str) -> str:
    """EventGPT's release: the tower holds `vision_model.`."""
    return key.replace(_EVENT_TOWER, f"{_EVENT_TOWER}vision_model.")


def flat(key: str) -> str:
    """EventGPT without `vision_model.`."""
    return key


LAYOUTS = {
    "llava": (released, newer, newest),
    "video_llava": (released, newer, newest),
    "eventgpt": (wrapped, flat),
}


def strays(family: str, layout: Any) -> Weights:
    """Buffers of older libraries that releases still carry and no module reads."""
    positions = torch.arange(5)[None]
    if family == "eventgpt":
        inner = layout(f"{_EVENT_TOWER}embeddings.position_ids")
        rotary = {
            f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": torch.rand(4)
            for layer in range(2)
        }
        return rotary | {inner: positions}
    tower = "video_tower" if family == "video_llava" else "vision_tower"
    return {layout(f"{tower}.embeddings.position_ids"): positions.clone()}


def weights(folder: Path) -> Weights:
    return load_file(folder / "model.safetensors")


def build(folder: Path, family: str, layout: Any, form: Form, shards: int = 2) -> Weights:
    """The checkpoint in this layout and form; what its tensors are, by tiny's key names."""
    tiny.BUILDERS[family](folder)
    held = weights(folder)
    (folder / "model.safetensors").unlink()
    write(folder, {layout(k): v for k, v in held.items()} | strays(family, layout), form, shards)
    old_config(folder, family)
    return held


def write(folder: Path, tensors: Weights, form: Form, shards: int = 2) -> list[Path]:
    """The tensors in so many files with their index, or in a single one."""
    stem = {"safetensors": "model", "bin": "pytorch_model"}[form]
    names = sorted(tensors)
    parts = [names[number::shards] for number in range(shards)]
    files = [
        folder / (f"{stem}-{n + 1:05d}-of-{shards:05d}.{form}" if shards > 1 else f"{stem}.{form}")
        for n in range(shards)
    ]
    for file, part in zip(files, parts, strict=True):
        held = {name: tensors[name].clone() for name in part}
        if form == "bin":
            torch.save(held, file)
        else:
            save_file(held, file, metadata={"format": "pt"})
    if shards > 1:
        size = sum(tensor.nbytes for tensor in tensors.values())
        table = {name: file.name for file, part in zip(files, parts, strict=True) for name in part}
        index = {"metadata": {"total_size": size}, "weight_map": table}
        (folder / f"{stem}.{form}.index.json").write_text(json.dumps(index))
    return files


def old_config(folder: Path, family: str) -> None:
    """config.json as releases wrote it: `torch_dtype`, and only what differs from the defaults."""
    config = read_config(folder)
    config = {key: value for key, value in config.items() if key not in _ABSENT[family]}
    config["torch_dtype"] = "bfloat16" if family == "eventgpt" else "float16"
    config["transformers_version"] = "4.36.0.dev0"
    if family == "eventgpt":
        config["mm_visual_tower"] = "/home/somebody/models/clip-vit-large-patch14-336"
        config["spatial_temporal_encoder"] = True
        config["rope_scaling"] = None
        del config["rope_parameters"]
    else:
        text = config["text_config"]
        config["text_config"] = {key: text[key] for key in _TEXT_KEPT} | {"torch_dtype": "float16"}
        config["ignore_index"] = -100
    (folder / "config.json").write_text(json.dumps(config))


def read_config(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return content


def change_config(folder: Path, **fields: Any) -> None:
    (folder / "config.json").write_text(json.dumps(read_config(folder) | fields))


# The pieces that the LLaMA sentencepiece model makes of EventGPT's prompt and default question
# (▁ is a space): 38 before <event>, of which 5 are the start marker, and 20 after it.
_HEAD = (
    "▁A ▁chat ▁between ▁a ▁curious ▁human ▁and ▁an ▁artificial ▁intelligence ▁assistant . ▁The "
    "▁assistant ▁gives ▁helpful , ▁detailed , ▁and ▁pol ite ▁answers ▁to ▁the ▁human ' s "
    "▁questions . ▁US ER : ▁< ev _ start >"
)
_TAIL = "▁< ev _ end > <0x0A> What ▁are ▁the ▁key ▁elements ▁in ▁this ▁scene ? ▁A SS IST ANT :"
HEAD, TAIL = _HEAD.split(), _TAIL.split()
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6  # piece types of sentencepiece_model.proto


def llama_pieces() -> list[str]:
    """Those pieces with the beginnings that letter by letter merge to them, then the letters."""
    wanted = [piece for piece in [*HEAD, *TAIL] if not piece.startswith("<0x")]
    merged = [piece[: length + 1] for piece in wanted for length in range(1, len(piece))]
    return list(dict.fromkeys([*merged, *sorted(set("▁".join(wanted)))]))


def llama_sentencepiece() -> bytes:
    """A tokenizer.model of LLaMA's kind whose pieces are LLaMA's for EventGPT's prompt.

    BPE with byte fallback, <unk> <s> </s> first and then the 256 bytes, as LLaMA has it.  Words
    that the prompt lacks fall apart into letters and bytes.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto()
    model.trainer_spec.model_type = 2  # BPE
    model.trainer_spec.byte_fallback = True
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = False
    special = [("<unk>", _UNKNOWN), ("<s>", _CONTROL), ("</s>", _CONTROL)]
    for piece, kind in special + [(f"<0x{byte:02X}>", _BYTE) for byte in range(256)]:
        model.pieces.add(piece=piece, score=0.0, type=kind)
    for rank, piece in enumerate(llama_pieces()):
        model.pieces.add(piece=piece, score=-float(rank))
    serialised: bytes = model.SerializeToString()
    return serialised


def eventgpt(
    folder: Path, form: Form = "bin", layout: Any = wrapped, tokenizer: bytes | None = None
) -> Path:
    """The released folder: shards, tokenizer.model alone, no processor, old config."""
    raw = tokenizer or llama_sentencepiece()
    from sentencepiece import SentencePieceProcessor

    tiny.eventgpt(folder, SentencePieceProcessor(model_proto=raw).get_piece_size())
    held = weights(folder)
    for name in (
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "preprocessor_config.json",
    ):
        (folder / name).unlink()
    write(folder, {layout(k): v for k, v in held.items()} | strays("eventgpt", layout), form)
    (folder / "tokenizer.model").write_bytes(raw)
    old_config(folder, "eventgpt")
    return folder
