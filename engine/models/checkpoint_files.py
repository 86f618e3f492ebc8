"""The files of a checkpoint: its JSON with types and bounds of values by name (in any object), the
headers of its weights, their digest.  Nothing is unpickled, and every error is a ModelUnavailable
that names the file."""

import contextlib
import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from safetensors import SafetensorError, safe_open

from engine import plain_files, settings
from engine.errors import BadInput, ModelUnavailable
from engine.quoting import cut, first_line, quoted

FILES = (
    *("config.json", "generation_config.json", "tokenizer_config.json", "processor_config.json"),
    *("preprocessor_config.json", "video_preprocessor_config.json", "chat_template.json"),
)
Side = Annotated[int, Meta(ge=1, le=4096)]
Area = Annotated[int, Meta(ge=1, le=2**26)]
Width = Annotated[int, Meta(ge=1, le=2**17)]
Inner = Annotated[int, Meta(ge=1, le=2**20)]
Depth = Annotated[int, Meta(ge=1, le=1024)]
Tokens = Annotated[int, Meta(ge=1, le=2**24)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Length = Annotated[int, Meta(ge=0, le=2**24)]
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Above = Annotated[float, Meta(gt=0, le=1e6)]
Ids = Annotated[list[TokenId], Meta(min_length=1)]
# Of pixels, which have 0 to 255 before they are rescaled; other values leave nothing of a picture.
Mean = Annotated[float, Meta(ge=-255, le=255)]
Scale = Annotated[float, Meta(ge=1e-6, le=255)]


def several(kind: Any) -> Any:
    """A value, or one for each layer or level."""
    return kind | Annotated[list[kind], Meta(min_length=1)]


_RULES = (
    ("model_type processor_class image_processor_type feature_extractor_type", str),
    ("text_config llm_config language_config vision_config image_processor", dict[str, Any]),
    ("auto_map added_tokens_decoder", dict[str, Any]),
    ("architectures", list[str]),
    ("hidden_size head_dim", Width),
    ("embed_dim", several(Width)),
    ("intermediate_size", several(Inner)),
    ("num_hidden_layers num_attention_heads num_key_value_heads attention_heads", Depth),
    ("depth num_heads", several(Depth)),
    ("image_size patch_size", several(Side)),
    ("vocab_size max_position_embeddings", Tokens),
    ("image_token_index image_token_id video_token_index video_token_id", TokenId),
    ("tie_word_embeddings is_encoder_decoder legacy add_bos_token", bool),
    ("do_sample token_healing remove_invalid_values", bool),
    ("eos_token_id forced_eos_token_id", TokenId | Ids),
    ("forced_bos_token_id", TokenId),
    ("repetition_penalty", Above),
    ("no_repeat_ngram_size min_length min_new_tokens encoder_no_repeat_ngram_size", Length),
    ("bad_words_ids", Annotated[list[Ids], Meta(min_length=1)]),
    ("sequence_bias", list[tuple[Ids, Number]]),
    ("suppress_tokens begin_suppress_tokens", list[TokenId]),
    ("exponential_decay_length_penalty", tuple[Length, Above]),
    ("temperature top_p guidance_scale encoder_repetition_penalty penalty_alpha", Number),
    ("top_k num_beams", int),
    ("chat_template", str | list[dict[str, str]] | dict[str, str]),  # several have names
    ("image_mean", several(Mean)),
    ("image_std rescale_factor", several(Scale)),
    ("vision_feature_layer", several(int)),
    ("crop_size pad_size", Side | dict[str, Side | None]),
)
RULES: dict[str, Any] = {name: kind | None for names, kind in _RULES for name in names.split()}
RULES["mrope_section"] = Annotated[list[Length], Meta(min_length=1)]  # never null
_SIZE, _AREA_SIZE = Side | dict[str, Side | None] | None, Side | dict[str, Area | None] | None
# Processors that shrink or enlarge a picture until its area, not its sides, is within bounds.
AREAS = (
    *("Qwen2VL", "Qwen3VL", "Glm4v", "Glm46V", "VideoLlama3", "PaddleOCRVL", "Ernie4_5_VLMoe"),
    *("HunYuanVL", "GlmImage", "Cosmos3Edge", "CohereCompass"),
)
JSON_BYTES = 16 * 2**20  # of one settings file; published ones have a few kilobytes
LARGE_BYTES = 128 * 2**20  # of a tokenizer, or of any other JSON file in the folder
MEMO, MAX_MEMO = "checkpoint-hashes.json", 2**24  # the list of hashes, and its bytes
# The files that transformers opens beside the weights, even if they are not used here.
READ = (
    *FILES,
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "adapter_config.json"),
)
TOKENIZERS = ("tokenizer.json", "tokenizer.model")
POINTER = b"version https://git-lfs"  # the first bytes of a git-lfs pointer
AGAIN = "copy or download it again"
FORMS = ("model.safetensors", "pytorch_model.bin")  # in the order of preference
# Buffers of older library versions that releases contain besides the weights.
STRAY = re.compile(r"rotary_emb\.inv_freq$|embeddings\.position_ids$")

Step = Literal["hash", "weights"]
Listener = Callable[[Step, int, int], None]  # (step, amount done, total amount)
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextlib.contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """Sends every report of this thread to the listener, which may raise Cancelled."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def report(step: Step, done: int, total: int) -> None:
    """Reports progress: bytes hashed, or weights loaded, out of `total`."""
    if listener := _listener.get():
        listener(step, done, total)


def read_json(path: Path, name: str) -> dict[str, Any]:
    """A JSON object of a checkpoint, its values checked for their types, or ModelUnavailable."""

    def no_number(text: str) -> None:
        raise ValueError(f"{text} is not a number in JSON")

    refuse_unreadable(path, name)
    try:
        content = json.loads(read_bytes(path, JSON_BYTES, name), parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable(
            f"{name}: {path} cannot be read ({cut(str(error))}): copy it again."
        ) from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{name}: {path} is not a JSON object: copy it again.")
    for key, value, kind in _ruled(content, "video" in path.name) if path.name in FILES else ():
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            why = str(error).replace("`", "").partition(" - at ")[0]
            raise ModelUnavailable(
                f"{name}: {path}: {key} is {quoted(value)} ({why[:1].lower()}{why[1:]}): "
                "correct it, or copy the file again."
            ) from error
    return content


def _ruled(content: dict[str, Any], video: bool) -> Iterator[tuple[str, Any, Any]]:
    """Key, value and type of everything that a rule is about, in the objects inside too."""
    areas = video or str(content.get("image_processor_type")).startswith(AREAS)
    sizes = {"size": _AREA_SIZE if areas else _SIZE}
    if areas:
        sizes |= dict.fromkeys(("min_pixels", "max_pixels"), Area | None)
    for key, value in content.items():
        kind = RULES.get(key) or sizes.get(key)
        if kind is not None:
            yield key, value, kind
        if isinstance(value, dict):
            yield from _ruled(value, video)


def read_if_there(path: Path, name: str) -> dict[str, Any]:
    """As `read_json`; {} if the file does not exist."""
    return read_json(path, name) if os.path.lexists(path) else {}


def read_bytes(path: Path, limit: int, name: str) -> bytes:
    """The content of a regular file of a checkpoint, or ModelUnavailable."""
    return plain_files.read_bytes(path, limit, f"{name}:", error=ModelUnavailable)


def check_settings(folder: Path, name: str) -> None:
    """ModelUnavailable if a file that transformers would open is not a regular file, is too large,
    or holds a value of a wrong type."""
    for file in (*READ, *TOKENIZERS):
        path = folder / file
        if not os.path.lexists(path):
            continue
        if file in READ and path.suffix == ".json":
            read_json(path, name)
        else:
            refuse_unreadable(path, name, JSON_BYTES if file in READ else LARGE_BYTES)


def refuse_unreadable(path: Path, name: str, limit: int | None = None) -> None:
    """ModelUnavailable if the file is absent, unreadable, a git-lfs pointer or over `limit`."""
    why = fix = ""
    try:
        if path.exists() and not path.is_file():  # a pipe would block
            why = "is not a file"
        else:
            with path.open("rb") as stream:
                start, size = stream.read(len(POINTER)), os.fstat(stream.fileno()).st_size
            if start == POINTER:
                why, fix = "is a git-lfs pointer, not the file itself", "run `git lfs pull` there"
            elif limit is not None and size > limit:
                why = f"has {size:,} bytes; at most {limit:,} are allowed"
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"{name} has no {path.name} in {path.parent}: point its entry in models.toml "
            "at a checkpoint folder."
        ) from error
    except OSError as error:
        why, fix = f"cannot be read ({error.strerror})", "give this user read permission"
    if why:
        raise ModelUnavailable(f"{name}: {path} {why}: {fix or AGAIN}.")


def weight_files(folder: Path, name: str) -> list[Path]:
    """The weight files, safetensors first; ModelUnavailable names a missing shard."""
    for file in map(folder.joinpath, FORMS):
        index = file.with_name(f"{file.name}.index.json")
        if index.is_file():
            break
        if file.is_file():
            return [file]
    else:
        return []
    table = read_json(index, name).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise ModelUnavailable(f"{name}: {index} lists no weights: copy it again.")
    shards = [folder / shard for shard in sorted({str(shard) for shard in table.values()})]
    for shard in shards:
        if shard.parent.resolve() != folder.resolve():
            raise ModelUnavailable(
                f"{name}: {index} lists {shard}, which lies outside its folder: {AGAIN}."
            )
        if not shard.is_file():
            raise ModelUnavailable(f"{name} lacks {shard}, which its index lists: {AGAIN}.")
    return shards


def _contents(file: Path, name: str) -> dict[str, tuple[int, object]]:
    """Each tensor of a safetensors file, or each part of a .bin file, which is a zip archive: how
    many weights it has at most, and what identifies it.  ModelUnavailable if it is incomplete."""
    refuse_unreadable(file, name)
    is_archive = file.suffix != ".safetensors"
    try:
        if is_archive:
            with zipfile.ZipFile(file) as archive:
                parts = archive.infolist()
            # 16 bits are assumed, as in releases
            return {
                one.filename: (one.file_size // 2 if "/data/" in one.filename else 0, one.CRC)
                for one in parts
            }
        with safe_open(file, framework="np") as tensors:
            shapes = {key: tuple(tensors.get_slice(key).get_shape()) for key in tensors.keys()}  # noqa: SIM118 - no mapping
        return {
            key: (0 if STRAY.search(key) else math.prod(shape), shape)
            for key, shape in shapes.items()
        }
    except (OSError, SafetensorError, zipfile.BadZipFile, ValueError) as error:
        form = "file of PyTorch weights" if is_archive else "safetensors file"
        raise ModelUnavailable(
            f"{name}: {file} is not a complete {form} ({first_line(error)}): {AGAIN}."
        ) from error


def weight_count(folder: Path, name: str) -> int:
    """The number of weights in the files; an upper bound for .bin files, which are not read."""
    return sum(
        sum(count for count, _ in _contents(file, name).values()) or file.stat().st_size // 2
        for file in weight_files(folder, name)
    )


def header_digest(folder: Path, name: str) -> str:
    """A digest of the names, shapes and sizes of all weights and of the JSON files; fast."""
    total = _configuration(folder, name)
    for file in weight_files(folder, name):
        total.update(f"{file.name}:{file.stat().st_size}".encode())
        total.update(repr(sorted(_contents(file, name).items())).encode())
    return total.hexdigest()


def digest(folder: Path, name: str, read: bool = True) -> str:
    """A digest of all bytes of the checkpoint's configuration and weights.  Hashes are kept in a
    JSON file by path, size, times and inode, because reading 14 GB takes as long as loading them.
    Without `read`, "" unless those of all files are known."""
    memo, known = settings.load().cache_dir / MEMO, dict[str, str]()
    with contextlib.suppress(BadInput):  # hashed again
        known = plain_files.read_json(memo, MAX_MEMO, "The list of hashes", dict[str, str])
    files = {identity(file): file for file in weight_files(folder, name)}
    if not read and not files.keys() <= known.keys():
        return ""
    total = _configuration(folder, name)
    hashes = _hashes({key: file for key, file in files.items() if key not in known})
    for key, file in files.items():
        total.update(f"{file.name}:{(known | hashes)[key]}".encode())
    if hashes:
        with contextlib.suppress(OSError):  # hashed again the next time
            memo.parent.mkdir(parents=True, exist_ok=True)
            plain_files.write_whole(memo, json.dumps(known | hashes).encode())
    return total.hexdigest()


def _configuration(folder: Path, name: str) -> hashlib.blake2b:
    """A hash of the other files that decide an answer: JSON, templates, sentencepiece."""
    total = hashlib.blake2b(digest_size=16)
    others = (folder / "chat_template.jinja", folder / "tokenizer.model")
    for path in (*sorted(folder.glob("*.json")), *(one for one in others if one.exists())):
        total.update(path.name.encode() + read_bytes(path, LARGE_BYTES, name))
    return total


def identity(file: Path) -> str:
    """Changes with the file: its path, size, times and inode."""
    now = file.stat()
    return f"{file.resolve()}:{now.st_size}:{now.st_mtime_ns}:{now.st_ctime_ns}:{now.st_ino}"


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    whole, done = sum(file.stat().st_size for file in files.values()), 0
    hashes = {}
    for key, file in files.items():
        total = hashlib.blake2b(digest_size=16)
        with file.open("rb") as stream:
            while piece := stream.read(2**22):
                total.update(piece)
                done += len(piece)
                report("hash", done, whole)
        hashes[key] = total.hexdigest()
    return hashes
