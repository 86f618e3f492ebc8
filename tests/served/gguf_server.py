"""llama.cpp's tower behind a server: the demo LLaVA checkpoint as GGUF files, in llama-cpp-python.

`python gguf_server.py CHECKPOINT FOLDER PORT own|trained [LAYERS]` with an interpreter that has the
packages gguf and llama_cpp.  "own" is llama-cpp-python's prompt, "trained" the checkpoint's; LAYERS
leaves out the last layers of the tower, as older converters did.

Names of keys and tensors: llama.cpp, gguf-py/gguf/constants.py and tools/mtmd/clip-impl.h.
"""

import json
import sys
from pathlib import Path
from typing import Any

TEXT = "language_model.model"
TOWER, PROJECTOR = "vision_tower", "multi_modal_projector"
IN_TEXT = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # fmt: skip
IN_TOWER = {
    "ln1": "layer_norm1", "ln2": "layer_norm2", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_out": "self_attn.out_proj",
    "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
}  # fmt: skip
TRAINED = (
    "{% for turn in messages %}USER: {% for part in turn.content if part.type == 'image_url' %}"
    "{{ part.image_url.url }}\n{% endfor %}{% for part in turn.content if part.type == 'text' %}"
    "{{ part.text }}{% endfor %} {% endfor %}ASSISTANT:"
)


def write_language(gguf: Any, config: Any, words: Any, weights: Any, path: Path) -> None:
    out = gguf.GGUFWriter(path, "llama")
    heads, keys = config["num_attention_heads"], config["num_key_value_heads"]
    out.add_block_count(config["num_hidden_layers"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(keys)
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    out.add_rope_dimension_count(config["head_dim"])
    out.add_vocab_size(config["vocab_size"])
    out.add_file_type(0)
    pieces = {place: piece for piece, place in words["model"]["vocab"].items()}
    added = {one["id"]: one["content"] for one in words["added_tokens"]}
    every = range(config["vocab_size"])
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list([added.get(at, pieces.get(at, f"[unused {at}]")) for at in every])
    kinds = gguf.TokenType
    out.add_token_types([
        kinds.CONTROL if at in added else kinds.NORMAL if at in pieces else kinds.UNUSED
        for at in every
    ])  # fmt: skip
    out.add_token_merges([" ".join(pair) for pair in words["model"]["merges"]])
    for name, place in (("unk", 3), ("bos", 1), ("eos", 2), ("pad", 0)):
        getattr(out, f"add_{name}_token_id")(place)
    out.add_add_bos_token(True)
    out.add_tensor("token_embd.weight", weights[f"{TEXT}.embed_tokens.weight"])
    out.add_tensor("output_norm.weight", weights[f"{TEXT}.norm.weight"])
    out.add_tensor("output.weight", weights["language_model.lm_head.weight"])
    for layer in range(config["num_hidden_layers"]):
        for short, name in IN_TEXT.items():
            values = weights[f"{TEXT}.layers.{layer}.{name}.weight"]
            if short in ("attn_q", "attn_k"):  # llama.cpp's rope takes pairs of neighbours
                number = heads if short == "attn_q" else keys
                split = values.reshape(number, 2, -1, values.shape[-1])
                values = split.swapaxes(1, 2).reshape(values.shape)
            out.add_tensor(f"blk.{layer}.{short}.weight", values)
    finish(out)


def write_tower(gguf: Any, config: Any, made: Any, weights: Any, path: Path, layers: int) -> None:
    tower = config["vision_config"]
    out = gguf.GGUFWriter(path, "clip")
    out.add_bool("clip.has_vision_encoder", True)
    out.add_string("clip.projector_type", "mlp")
    out.add_bool("clip.use_gelu", False)
    for name, value in {
        "image_size": tower["image_size"],
        "patch_size": tower["patch_size"],
        "embedding_length": tower["hidden_size"],
        "feed_forward_length": tower["intermediate_size"],
        "projection_dim": config["text_config"]["hidden_size"],
        "attention.head_count": tower["num_attention_heads"],
        "block_count": layers,
    }.items():
        out.add_uint32(f"clip.vision.{name}", value)
    out.add_float32("clip.vision.attention.layer_norm_epsilon", tower["layer_norm_eps"])
    out.add_array("clip.vision.image_mean", made["image_mean"])
    out.add_array("clip.vision.image_std", made["image_std"])
    embeddings = f"{TOWER}.embeddings"
    out.add_tensor("v.class_embd", weights[f"{embeddings}.class_embedding"])
    out.add_tensor("v.patch_embd.weight", weights[f"{embeddings}.patch_embedding.weight"])
    out.add_tensor("v.position_embd.weight", weights[f"{embeddings}.position_embedding.weight"])
    names = {"v.pre_ln": f"{TOWER}.pre_layrnorm", "mm.0": f"{PROJECTOR}.linear_1"}
    names["mm.2"] = f"{PROJECTOR}.linear_2"
    for layer in range(layers):
        names |= {
            f"v.blk.{layer}.{short}": f"{TOWER}.encoder.layers.{layer}.{name}"
            for short, name in IN_TOWER.items()
        }
    for short, name in names.items():
        for kind in ("weight", "bias"):
            out.add_tensor(f"{short}.{kind}", weights[f"{name}.{kind}"])
    finish(out)


def finish(out: Any) -> None:
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main() -> None:
    import gguf
    import llama_cpp.llama_chat_format as formats
    import numpy as np
    from llama_cpp.server.__main__ import main as serve
    from safetensors.numpy import load_file

    place, folder, port, prompt, *fewer = sys.argv[1:]
    config, words, made = (
        json.loads((Path(place) / name).read_text(encoding="utf-8"))
        for name in ("config.json", "tokenizer.json", "processor_config.json")
    )
    stored = load_file(Path(place) / "model.safetensors")
    weights = {name: values.astype(np.float32) for name, values in stored.items()}
    files = [Path(folder) / name for name in ("model.gguf", "mmproj.gguf")]
    write_language(gguf, config["text_config"], words, weights, files[0])
    layers = config["vision_config"]["num_hidden_layers"] - int((fewer or ["0"])[0])
    write_tower(gguf, config, made["image_processor"], weights, files[1], layers)
    if prompt == "trained":
        formats.Llava15ChatHandler.DEFAULT_SYSTEM_MESSAGE = None
        formats.Llava15ChatHandler.CHAT_FORMAT = TRAINED
    sys.argv = ["serve", "--model", str(files[0]), "--clip_model_path", str(files[1]),
                "--chat_format", "llava-1-5", "--host", "127.0.0.1", "--port", port]  # fmt: skip
    serve()


if __name__ == "__main__":
    main()
