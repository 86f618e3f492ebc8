"""Measures everything on an accelerator at full size, part by part, in one command.

`python -m benchmarks.accelerator --out FOLDER`: each part runs in a process of its own and leaves
FOLDER/PART.json and FOLDER/PART.log, so that a part that fails or hangs costs no other.  The same
command again goes on with the parts that have no figures yet; `--minutes` stops in time for that.
`--layers 2 --hidden 128` tries everything with small models, on any device.  `--keep` puts the
figures of a finished folder into benchmarks/results, under the name of the device.

Needs the requirements of the project; parts whose packages are missing say so.  No network.
Exit code 1 if a part failed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.accelerator import merged
from benchmarks.accelerator.parts import OUT, Part, parts
from benchmarks.accelerator.prepare import MODELS
from engine.errors import BadInput
from engine.plain_files import reason
from engine.quoting import shown

ROOT = Path(__file__).resolve().parents[2]
SHOWN = 300  # characters of what a failed part said last
LEAST_S = 20.0  # no part is started with less time than this
States = dict[str, dict[str, Any]]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        if options.keep:
            print(f"Kept in {merged.keep(options.out)}.")
            return 0
        return _measured(options)
    except BadInput as error:
        _say(str(error))
        return 2


def _measured(options: argparse.Namespace) -> int:
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{shown(options.out)} cannot be made ({reason(error)}): name another --out."
        ) from error
    wanted = [part for part in parts(options) if _chosen(part, options)]
    states = _run(wanted, options.out.resolve(), options.minutes)
    _write(options.out / "parts.json", states)
    merged.write(options.out)
    print(_table(states))
    return int(any(one["state"] not in ("measured", "not measured") for one in states.values()))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of figures and checkpoints")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after about this time")
    parser.add_argument("--only", default="", help="parts by name or its beginning, as in verify")
    parser.add_argument("--samples", type=int, default=200, help="of the dataset runs")
    parser.add_argument("--verify-samples", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=64, help="new tokens of every run")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--layers", type=int, help="so many layers instead of the real number")
    parser.add_argument("--hidden", type=int, help="this width instead of the real one")
    parser.add_argument("--keep", action="store_true", help="put the figures of --out into results")
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    known = [part.name for part in parts(options)]
    if lost := [one for one in _only(options) if not any(n.startswith(one) for n in known)]:
        parser.error(f"--only names no part with {', '.join(lost)}: parts are {', '.join(known)}")
    if options.samples < 1 or options.repeat < 2 or options.tokens < 2 or options.minutes <= 0:
        parser.error("--samples must be at least 1, --repeat and --tokens 2, --minutes above 0")
    return options


def _only(options: argparse.Namespace) -> list[str]:
    return [one for one in options.only.split(",") if one]


def _chosen(part: Part, options: argparse.Namespace) -> bool:
    wanted = _only(options)
    return not wanted or any(part.name.startswith(one) for one in wanted)


def _run(wanted: Sequence[Part], out: Path, minutes: float) -> States:
    """The state of each part; Ctrl-C ends the part in hand and the rest is left."""
    states: States = {}
    end = time.monotonic() + 60 * minutes
    for part in wanted:
        start = time.monotonic()
        try:
            states[part.name] = _part(part, out, end - start)
        except KeyboardInterrupt:
            states[part.name] = {"state": "stopped"}
            break
        states[part.name]["seconds"] = round(time.monotonic() - start, 1)
        _write(out / "parts.json", states)
        _say(f"{part.name}: {_line(states[part.name])}")
    return states


def _part(part: Part, out: Path, left: float) -> dict[str, Any]:
    """Runs one part, unless its figures are there."""
    if (out / f"{part.name}.json").is_file():
        return {"state": "measured", "said": "earlier"}
    if lacking := [name for name in part.needs if find_spec(name) is None]:
        return {"state": "not measured", "said": f"{', '.join(lacking)} not installed"}
    if left < LEAST_S:
        return {"state": "no time left"}
    _say(f"{part.name}: {part.what} ...")
    log = out / f"{part.name}.log"
    fresh = out / f"{part.name}.part"
    code = _process(part, out, fresh, log, min(left, 60 * part.minutes))
    if code is None:
        return {"state": "out of time", "said": _last(log)}
    absent = OUT in part.command and not fresh.is_file()
    if code not in part.codes or absent or (fresh.is_file() and not _is_json(fresh)):
        return {"state": "failed", "said": f"exit code {code}: {_last(log)}"}
    if not fresh.is_file():
        fresh.write_text("{}", encoding="utf-8")  # prepare leaves files, no figures
    fresh.rename(out / f"{part.name}.json")
    return {"state": "measured" if code == 0 else "measured, with failures", "said": ""}


def _process(part: Part, out: Path, fresh: Path, log: Path, seconds: float) -> int | None:
    """The exit code, or None after the time is over: then the part and its children are ended."""
    command = [sys.executable, "-m", *(str(fresh) if one == OUT else one for one in part.command)]
    with log.open("wb") as errors:
        prints = fresh.open("wb") if part.prints else None
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(part, out), stdin=subprocess.DEVNULL,
            stdout=prints or errors, stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if prints:
                prints.close()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the part and whatever it started (Ray, workers)."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _environment(part: Part, out: Path) -> dict[str, str]:
    """A cache folder of the measurement's own, and the checkpoints that `prepare` wrote."""
    own = {"STAGESCOPE_CACHE_DIR": str(out / "work" / "cache"), "PYTHONUNBUFFERED": "1"}
    if not part.demo:
        own["STAGESCOPE_MODELS"] = str(out / "work" / MODELS)
    return os.environ | own | {"HF_HUB_OFFLINE": "1"}


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def _last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][-SHOWN:] if lines else "nothing was printed"


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _table(states: States) -> str:
    return "\n".join(f"{name:32} {_line(one)}" for name, one in states.items())


def _line(one: dict[str, Any]) -> str:
    seconds = f" in {one['seconds']:.0f} s" if one.get("seconds", 0) >= 1 else ""
    return f"{one['state']}{seconds}{': ' if one.get('said') else ''}{one.get('said', '')}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
