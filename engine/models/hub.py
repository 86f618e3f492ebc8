"""Downloads a checkpoint from the Hugging Face hub: the only module that uses the network.

Loading a model never downloads.  huggingface_hub shows the progress and resumes interrupted
downloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import BadInput, DownloadFailed
from engine.models import supported
from engine.models.checkpoint import ModelEntry
from engine.models.families import ANY_FAMILY
from engine.plain_files import advice
from engine.quoting import first_line

_BESIDE = ("tokenizer.model", "chat_template.jinja", "merges.txt")
_MARK = ".cache/huggingface"  # in a folder that holds a download, which is continued
# The same weights in the form of their authors' code, or not a model's own.
_OTHER_WEIGHTS = ("consolidated", "adapter_")


def fetch(entry: ModelEntry, to: Path | None = None) -> Path:
    """Downloads the entry's checkpoint to the hub's cache, or to the folder `to`; returns its path.

    BadInput if the entry is not a hub name, DownloadFailed if the hub or the disk fails.
    """
    import httpx2  # huggingface_hub raises its errors
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if entry.folder is not None:
        raise BadInput(
            f"{entry.name} is a local folder ({entry.folder}), not a Hugging Face name: copy the "
            "checkpoint that its authors publish to this folder."
        )
    if to is not None and to.exists() and not to.is_dir():
        raise BadInput(f"--to is {to}, which is a file: name a folder.")
    if to is not None and to.is_dir() and any(to.iterdir()) and not (to / _MARK).is_dir():
        raise BadInput(f"--to is {to}, which holds other files: name a new or an empty folder.")
    name, revision = entry.checkpoint, entry.revision
    try:
        about = HfApi().model_info(name, revision=revision, timeout=10)
        names = [file.rfilename for file in about.siblings or ()]
        files = needed(names)
        _refuse_useless(entry, names, files, getattr(about, "config", None) or {})
        return Path(snapshot_download(name, revision=revision, local_dir=to, allow_patterns=files))
    except GatedRepoError as error:
        raise DownloadFailed(
            f"{entry.name}: {name} asks for consent: accept its terms on the hub's page and log in "
            "with `hf auth login`."
        ) from error
    except RevisionNotFoundError as error:
        raise DownloadFailed(
            f"{entry.name}: {name} has no revision {revision!r}: correct it in models.toml."
        ) from error
    except RepositoryNotFoundError as error:
        raise DownloadFailed(
            f"{entry.name}: the hub has no {name}, or does not show it to you: correct its "
            "checkpoint in models.toml, or log in with `hf auth login`."
        ) from error
    except HfHubHTTPError as error:
        raise DownloadFailed(
            f"{entry.name}: the hub refused {name} ({first_line(error)}): try again later."
        ) from error
    except (httpx2.HTTPError, ConnectionError, FileNotFoundError) as error:
        raise DownloadFailed(
            f"{entry.name}: the Hugging Face hub cannot be reached ({first_line(error)}): go "
            "online and run this again; it continues where it stopped."
        ) from error
    except OSError as error:
        raise DownloadFailed(
            f"{entry.name} cannot be written to {to or 'the hub cache'} ({first_line(error)}): "
            f"{advice(error, 'make this folder writable')} and run this again; it continues where "
            "it stopped."
        ) from error


def needed(names: Sequence[str]) -> list[str]:
    """The files of a repository that loading needs: safetensors or, if there are none, .bin."""
    top = [name for name in names if "/" not in name and not name.startswith(_OTHER_WEIGHTS)]
    weights = [name for name in top if name.endswith(".safetensors")] or [
        name for name in top if name.startswith("pytorch_model") and name.endswith(".bin")
    ]
    indices = [f"{name.split('-')[0]}{Path(name).suffix}.index.json" for name in weights]
    other_index = {name for name in top if name.endswith(".index.json")} - set(indices)
    described = [name for name in top if name.endswith(".json") and name not in other_index]
    return sorted({*weights, *described, *(name for name in top if name in _BESIDE)})


def _refuse_useless(
    entry: ModelEntry, names: Sequence[str], files: Sequence[str], config: Mapping[str, Any]
) -> None:
    """An error if what the hub tells of the repository shows that no model can be loaded from it.

    The rest is checked after the download, from the files themselves.
    """
    where = f"{entry.checkpoint} on the hub"
    if not any(name.endswith((".safetensors", ".bin")) for name in files):
        supported.refuse_listed(entry.name, where, names)
        raise DownloadFailed(
            f"{entry.name}: {where} has no weights in safetensors or PyTorch's form: correct its "
            "checkpoint in models.toml."
        )
    supported.refuse_packed(entry.name, where, config)
    if entry.family == ANY_FAMILY and "model_type" in config:
        supported.refuse_type(entry.name, entry.checkpoint, where, config)
