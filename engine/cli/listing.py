"""samples, models and download: a dataset's samples, the models of models.toml, their files.
`models NAME` prints one model's card: source, digest, sizes, memory.  `models add` writes an entry
for a folder or a name on the hub into models.toml, without network.  Only `download` uses it."""

import argparse
from dataclasses import replace
from typing import Any, get_args

from engine import settings
from engine.cli.common import DATASET, JSON, add_flags, command, flag, out, refuse, say
from engine.errors import BadInput, ServerAway
from engine.models import new_entry, registry
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry, Server
from engine.public import read_dataset
from engine.quoting import listed, ms, printable, quoted, shown
from engine.storage import result_rows
from engine.types import MediaKind

WORD = "add"
_FIELDS = ("name", "label", "dtype", "shows")
_OF_SERVERS = ("name", "label", "shows", "api_key_env", "weights")
CHECKPOINT_HELP = (
    "after the word add: a folder, or a name on the Hugging Face hub, to enter; with --server the "
    "model's name there"
)


def add(commands: Any) -> None:
    text = "list samples and which models can run on them"
    command(commands, "samples", _samples, text, {**DATASET, **JSON})
    flags = {
        "model": flag(str, "a name from models.toml: print its card", nargs="?"),
        "--full": flag(bool, "hash every byte of its files too"),
        "checkpoint": flag(str, CHECKPOINT_HELP, nargs="?"),
        **JSON,
    }
    text = "list the models of models.toml, print one card, or add an entry"
    models = command(commands, "models", _models, text, flags)
    new = {
        "--name": flag(str, "its name in models.toml (default: the last part of its name)"),
        "--label": flag(str, "its name on the pages"),
        "--dtype": flag(DTYPE_BYTES, "default: that of its files, or bfloat16"),
        "--shows": flag(get_args(MediaKind), "what the model is shown"),
        "--server": flag(
            str, "the address of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1"
        ),
        "--weights": flag(str, "the entry of the same checkpoint on this machine: for verify"),
        "--api-key-env": flag(str, "the environment variable that holds the server's key"),
        "--dry-run": flag(bool, "print the entry, write nothing"),
    }
    add_flags(models.add_argument_group("models add"), new)

    flags = {
        "model": flag(str, "a name from models.toml"),
        "--to": flag(str, "a folder (default: the hub's own cache)"),
    }
    text = "fetch a checkpoint from the Hugging Face hub"
    command(commands, "download", _download, text, flags)


def _samples(options: argparse.Namespace) -> int:
    found = read_dataset(options.dataset)
    reasons = [(entry, registry.unavailable(entry)) for entry in registry.entries()]
    table = [
        {
            **{name: getattr(sample, name) for name in ("id", "sequence", "question", "reference")},
            "truth": dict(sample.truth),
            "window": str(sample.window or ""),
            "choices": list(sample.choices),
            "answer": sample.answer,
            "task": sample.task,
            "problems": list(sample.problems),
            "models": {e.name: sample.missing.get(e.kind) or reason for e, reason in reasons},
        }
        for sample in found.samples
    ]
    unable = [reason for _, reason in reasons if reason]
    for problem in (*found.problems, *(unable[:1] if len(unable) == len(reasons) else ())):
        say(problem)
    out(table, "\n".join(map(_sample_line, table)), options)
    return 0


def _sample_line(row: dict[str, Any]) -> str:
    able = [name for name, reason in row["models"].items() if reason is None]
    window = f"window {row['window']}  " if row["window"] else ""
    names = f"{shown(row['id'])}  {shown(row['sequence'])}"
    text = f"{names}  {window}runs on: {', '.join(able) or 'no model'}"
    if row["choices"]:
        right = f", right: {row['answer']}" if row["answer"] else ""
        text += f"  {len(row['choices'])} choices{right}"
    return "\n    ".join([text, *row["problems"]])


def _models(options: argparse.Namespace) -> int:
    if options.model == WORD:
        return _add_entry(options)
    if options.checkpoint is not None:
        raise BadInput("models prints one card at a time: name one model, or write models add.")
    why = "belongs to models add: write models add and a checkpoint."
    refuse(options, (*_FIELDS, "server", "api_key_env", "weights", "dry_run"), why)
    if options.model is not None:
        return _card(registry.entry(options.model), options)
    if options.full:
        raise BadInput("--full hashes the files of one model: name the model.")
    table = [_model_row(entry) for entry in registry.entries()]
    lines = [f"{r['name']}  {r['family']}  {r['dtype']}  {r['reason'] or 'ready'}" for r in table]
    out(table, "\n".join(lines), options)
    return 0


def _model_row(entry: ModelEntry) -> dict[str, Any]:
    reason = registry.unavailable(entry)
    names = "name family checkpoint revision dtype quantization demo download"
    row = {name: getattr(entry, name) for name in names.split()}
    return row | {"available": reason is None, "reason": reason}


def _card(entry: ModelEntry, options: argparse.Namespace) -> int:
    """One model's card; ModelUnavailable, and exit code 2, if it is not installed."""
    from engine.report import card_rows  # no list waits for reports

    if entry.server:
        return _server_card(entry, entry.server, options)
    card = registry.card(entry)
    if options.full:
        card = replace(card, digest=registry.full_digest(entry))
    need, row = registry.needed(entry), _model_row(entry) | result_rows.identity(card)
    row |= {name: getattr(card, name) for name in ("quantization", "revision")}
    row |= {"digest": card.digest or None}
    row |= {"needed_bytes": vars(need) | {"total": need.total}}
    rows = card_rows.rows(entry, card, "use --full")
    lines = {name.lower(): value for name, value in rows}
    if only := registry.hooked_only(entry):
        row["hooked_only"] = lines["modes"] = only
    lines |= {"memory": str(need), "state": row["reason"] or "ready"}
    out(row, "\n".join(f"{name}: {value}" for name, value in lines.items()), options)
    return 0


def _server_card(entry: ModelEntry, server: Server, options: argparse.Namespace) -> int:
    """What a server says now; exit code 2 if it says nothing."""
    from engine.served import capabilities

    said = capabilities.probe(server)
    row = _model_row(entry) | {"server": server.url, "model": server.model, "shows": entry.kind}
    if said.problem:
        raise ServerAway(said.problem)
    row |= {"software": said.software, "round_trip_ms": said.round_trip_ms, "models": said.models}
    lines = {name: row[name] for name in ("server", "model", "shows", "software")}
    lines |= {"round trip": ms(said.round_trip_ms), "state": row["reason"] or "ready"}
    out(row, "\n".join(f"{name}: {value}" for name, value in lines.items()), options)
    return 0


def _add_entry(options: argparse.Namespace) -> int:
    if options.server is not None:
        return _add_server(options)
    refuse(options, ["api_key_env", "weights"], "belongs to a server: name it with --server.")
    if not (options.checkpoint or "").strip():
        raise BadInput("models add needs a folder or a name on the hub: name one.")
    refuse(options, ["full"], "hashes a model's files: use it with models NAME.")
    new = new_entry.make(options.checkpoint, **{name: getattr(options, name) for name in _FIELDS})
    name = new.entry.name
    if not options.dry_run:
        new.write()
        say(f"{name} is now in {new.path}.")
    if not new.here:
        later = f"`{settings.COMMAND} download {name}`"
        say(f"{name}: its files are not here, so it is checked after {later}.")
    row = {"name": name, "written": not options.dry_run, "checked": new.here, "entry": new.lines}
    out(row, new.lines.rstrip(), options)
    return 0


def _add_server(options: argparse.Namespace) -> int:
    from engine.served import capabilities

    refuse(options, ["dtype", "full"], "is decided by the server: leave it out.")
    chosen = {field: getattr(options, field) for field in _OF_SERVERS}
    new, said = capabilities.entered(options.server, options.checkpoint, **chosen)
    assert new.entry.server is not None
    host, name = new.entry.server.host, new.entry.server.model
    if not options.dry_run:
        new.write()
        say(f"{new.entry.name} is now in {new.path}.")
    if said.models and name not in said.models:
        say(f"{host} does not list {quoted(name)}, but {listed(said.models)}.")
    say(f"{host}: {said.software}, {ms(said.round_trip_ms)} for a round trip.")
    row = {"name": new.entry.name, "written": not options.dry_run, "entry": new.lines}
    out(row | {"software": said.software, "models": said.models}, new.lines.rstrip(), options)
    return 0


def _download(options: argparse.Namespace) -> int:
    from engine.models import hub

    entry = registry.entry(options.model)
    to = settings.expand(options.to) if options.to else None
    if entry.folder is None:
        say(f"{entry.name}: downloading {entry.checkpoint} ...")
    print(printable(str(hub.fetch(entry, to))))
    if to is not None:
        say(f"{entry.name}: set checkpoint = {to.as_posix()!r} in models.toml to use it.")
    return 0
