"""Downloads a checkpoint from the Hugging Face hub: the only module that uses the network.  Loading
a model never downloads.  huggingface_hub shows the progress and resumes interrupted downloads."""

from collections.abc import Sequence
from pathlib import Path

from engine.errors import BadInput, DownloadFailed
from engine.models import families
from engine.models.checkpoint import ModelEntry
from engine.models.families import ANY_FAMILY
from engine.plain_files import advice
from engine.quoting import first_line

_BESIDE = ("tokenizer.model", "chat_template.jinja", "merges.txt")
_MARK = ".cache/huggingface"  # in a folder that holds a download, which is continued
# The same weights in the form of their authors' code, or not a model's own.
_OTHER_WEIGHTS = ("consolidated", "adapter_")
_ONLINE = (
    "the Hugging Face hub cannot be reached ({why}): go online and run this again; it continues "
    "where it stopped"
)
_FAILURES = {  # by the name of an error's class, the narrower ones first
    "GatedRepoError": "{name} asks for consent: accept its terms on the hub's page and log in with "
    "`hf auth login`",
    "RevisionNotFoundError": "{name} has no revision {revision!r}: correct it in models.toml",
    "RepositoryNotFoundError": "the hub has no {name}, or does not show it to you: correct its "
    "checkpoint in models.toml, or log in with `hf auth login`",
    "HfHubHTTPError": "the hub refused {name} ({why}): try again later",
    **dict.fromkeys(("HTTPError", "ConnectionError", "FileNotFoundError"), _ONLINE),
    "OSError": "it cannot be written to {to} ({why}): {fix} and run this again; it continues where "
    "it stopped",
}


def fetch(entry: ModelEntry, to: Path | None = None) -> Path:
    """Downloads the entry's checkpoint to the hub's cache or the folder `to`; returns its path."""
    from huggingface_hub import HfApi, snapshot_download

    if entry.server:
        raise BadInput(f"{entry.name} is a server ({entry.server.host}): nothing is downloaded.")
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
        where, config = f"{name} on the hub", getattr(about, "config", None) or {}
        if not any(file.endswith((".safetensors", ".bin")) for file in files):
            families.refuse_listed(entry.name, where, names)
            raise DownloadFailed(
                f"{entry.name}: {where} has no weights in safetensors or PyTorch's form: correct "
                "its checkpoint in models.toml."
            )
        families.refuse_packed(entry.name, where, config)
        if entry.family == ANY_FAMILY and "model_type" in config:
            families.refuse_type(entry.name, name, where, config)
        return Path(snapshot_download(name, revision=revision, local_dir=to, allow_patterns=files))
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if (said := next((text for kind, text in _FAILURES.items() if kind in kinds), "")) == "":
            raise
        values = {"name": name, "revision": revision, "why": first_line(error)}
        fix = advice(error, "make this folder writable") if isinstance(error, OSError) else ""
        values |= {"to": str(to or "the hub cache"), "fix": fix}
        raise DownloadFailed(f"{entry.name}: {said.format(**values)}.") from error


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
