"""Loads a checkpoint's folder into memory: every weight from its files, or an error.  It uses no
network, runs no code from the checkpoint, and never leaves a weight at a random value."""

import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoTokenizer, LlamaTokenizer
from transformers.utils import logging as transformers_logging

from engine import settings
from engine.errors import ModelUnavailable, StageScopeError
from engine.machine import device
from engine.models import checkpoint_files, families, model_card
from engine.models.checkpoint import ModelEntry
from engine.quoting import count, first_line, gib
from engine.types import ModelInfo

transformers_logging.disable_progress_bar()
transformers_logging.set_verbosity_error()  # random weights are refused here


@contextmanager
def reading(info: ModelInfo, folder: Path, part: str) -> Iterator[None]:
    """Any error about a part of the checkpoint as one sentence, with its cause chained."""
    try:
        yield
    except StageScopeError:
        raise
    except Exception as error:
        why, fix = first_line(error), "copy all its files from one checkpoint"
        if isinstance(error, StrictDataclassError):  # whatever was to be read, its settings first
            part, why = "config.json", " ".join(str(error).split())[:160]
        if device.is_out_of_memory(error):
            left = device.memory_of(torch.device(info.device))
            why = f"{gib(left.free)} of {gib(left.total)} are free on {info.device}; {why}"
            fix = "close other programs, or choose a smaller dtype or model"
        raise ModelUnavailable(
            f"{info.name}: the {part} in {folder} cannot be loaded ({why}): {fix}."
        ) from error


def info_of(entry: ModelEntry, folder: Path) -> ModelInfo:
    digest = checkpoint_files.digest(folder, entry.name)
    return replace(model_card.card(entry, folder), digest=digest, device=str(device.choose()))


def load_weights(model_class: Any, info: ModelInfo, folder: Path) -> tuple[Any, ModelInfo]:
    """The model with all weights from the folder, and its completed card."""
    torch.set_num_threads(settings.load().threads)
    before = transformers_logging.set_tqdm_hook(_bar)
    try:
        with reading(info, folder, "weights"), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about deprecated keys
            _refuse_code(info, folder)
            config = model_class.config_class.from_pretrained(folder, local_files_only=True)
            with torch.device("meta"):
                described = model_class(config).num_parameters()
            held = checkpoint_files.weight_count(folder, info.name)
            what = f"{folder / 'config.json'} describes {described:,} weights"
            require(info, described <= held * 1.5, f"{what}, but the files hold {held:,}")
            model, report = model_class.from_pretrained(
                folder,
                dtype=getattr(torch, info.dtype),
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are then in the report, and refused below
                weights_only=True,
                **families.quantization_options(info),
            )
            _refuse_incomplete(info, folder, model, report)
            model = model if info.quantization else model.to(info.device)
    finally:
        transformers_logging.set_tqdm_hook(before)
    count = info.parameters if info.quantization else model.num_parameters()
    extra = tuple(sorted(map(str, report["unexpected_keys"])))
    return model, replace(info, parameters=count, missing=(), extra=extra)


def _bar(factory: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Instead of transformers' progress bar: reports of the weights loaded."""

    def reported(parts: Any) -> Iterator[Any]:
        for done, part in enumerate(parts):
            checkpoint_files.report("weights", done, len(parts))
            yield part

    if options.get("desc") == "Loading weights" and args and hasattr(args[0], "__len__"):
        return reported(args[0])
    return factory(*args, **options)


def _refuse_code(info: ModelInfo, folder: Path) -> None:
    """ModelUnavailable if a .bin file holds anything except tensors; does not read the tensors."""
    for file in checkpoint_files.weight_files(folder, info.name):
        if file.suffix == ".safetensors":
            continue
        try:
            torch.load(file, map_location="meta", weights_only=True, mmap=True)
        except Exception as error:
            why = f"is not a complete file of PyTorch weights ({first_line(error)})"
            if isinstance(error, pickle.UnpicklingError):
                # the name that weights_only refused, from torch's long message
                lines = str(error).splitlines()
                what = next((x for x in lines if "GLOBAL" in x or "Unsupported" in x), "a pickle")
                what = what.split("WeightsUnpickler error:")[-1].strip()[:120]
                why = f"holds more than tensors ({what}), which could run code"
            raise ModelUnavailable(
                f"{info.name}: {file} {why}, and is not opened: use a safetensors copy of the "
                "checkpoint."
            ) from error


def _refuse_incomplete(info: ModelInfo, folder: Path, model: Any, report: Any) -> None:
    """ModelUnavailable unless the files give each weight, and no layer that the model lacks.
    Heads, buffers and parts that transformers' class does not have may be left over."""
    absent, extra = sorted(report["missing_keys"]), sorted(report["unexpected_keys"])
    mismatched, parts = report["mismatched_keys"], dict(model.named_modules())
    wrong = sorted(f"{k} is {tuple(found)}, not {tuple(want)}" for k, found, want in mismatched)
    left = [key for key in extra if re.split(r"\.\d+\.", key)[0] in parts]
    left = [key for key in left if not checkpoint_files.STRAY.search(key)]
    weights = [(k, w) for k, w in model.named_parameters() if k.endswith("weight") and w.dim() > 1]
    # An unfinished download has zeros.  To read only a matrix's first row is faster.
    zero = [key for key, weight in weights if not (weight[0].any() or weight.any())]
    no_place = "has no place in the layers of its config.json (num_hidden_layers, depth) for"
    faults = (("lacks", absent), ("has a wrong shape for", wrong), (no_place, left))
    for what, keys in (*faults, ("has only zeros in", zero)):
        first = f"{count(len(keys), 'weight')} ({', '.join(keys[:1])}{', ...' * (len(keys) > 1)})"
        require(info, not keys, f"the checkpoint in {folder} {what} {first}")


def load_tokenizer(info: ModelInfo, folder: Path, by_config: bool = False) -> Any:
    """The folder's tokenizer.json, or its sentencepiece model; `by_config`: that comes first.

    AutoTokenizer would make a generic tokenizer of a sentencepiece model, without the leading
    space.  `legacy` inserts a space after a special token, as the tokenizer.json of LLaVA-1.5 and
    Video-LLaVA does, whatever their folders say; with `by_config` the folder may say otherwise.
    """
    names = ("tokenizer.json", "tokenizer.model")
    refuse_absent(info, folder, names)
    fast, sentencepiece = ((folder / name).is_file() for name in names)
    stated = checkpoint_files.read_if_there(folder / "tokenizer_config.json", info.name)
    with reading(info, folder, "tokenizer"):
        if fast and not (by_config and sentencepiece):
            return AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return LlamaTokenizer.from_pretrained(
            folder,
            local_files_only=True,
            legacy=not by_config or stated.get("legacy") is not False,
            add_bos_token=stated.get("add_bos_token") is not False,
        )


def refuse_larger_tokenizer(info: ModelInfo, tokens: int, rows: int) -> None:
    """ModelUnavailable if the tokenizer has ids without a row in the embedding."""
    what = f"its tokenizer has {tokens:,} tokens, but the embedding {rows:,} rows"
    require(info, tokens <= rows, what)


def refuse_absent(info: ModelInfo, folder: Path, names: tuple[str, ...]) -> None:
    """ModelUnavailable unless one of these files is in the folder."""
    there = any((folder / name).is_file() for name in names)
    require(info, there, f"{folder} has no {' and no '.join(names)}")


def require(info: ModelInfo, holds: bool, otherwise: str) -> None:
    """ModelUnavailable with this sentence if parts of a checkpoint do not belong together."""
    if not holds:
        raise ModelUnavailable(
            f"{info.name}: {otherwise}: copy all files of {info.source} from one checkpoint."
        )
