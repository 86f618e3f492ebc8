"""Measures whether the verifier and the tests detect planted faults.

`python -m benchmarks.planted` plants each fault of tests/faults in a separate process, which
verifies one tiny model on one sample (8 tokens, one warm run), and in another process, which runs
the tests that the fault names, without those that compile.  The first row has no fault: nothing
may fail.  `--only TEXT` runs faults whose names contain TEXT.  Checks of times (CLOCKS) only count
if the fault concerns them.  The figures are in results/planted.json.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.machine import RESULTS, keep

ROOT = Path(__file__).resolve().parents[1]
NOTHING = "no fault"
CLOCKS = frozenset({"clock", "accounted", "stage3", "observer"})
LIMIT_S = 600.0
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="faults whose names hold this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--quick", action="store_true", help="one fault, keeps nothing")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            _prepare(Path(folder))
            print(_row(_names()[0], Path(folder) / "quick"))
        return
    if not options.only:
        (RESULTS / "planted.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _keep(_measured(Path(folder), options.only, options.jobs))
    print(counts(_kept()))


def _kept() -> list[Row]:
    file = RESULTS / "planted.json"
    return list(json.loads(file.read_text(encoding="utf-8"))["faults"]) if file.is_file() else []


def _merged(rows: Sequence[Row]) -> list[Row]:
    """The kept rows, with those that were measured again in their place."""
    known = {NOTHING, *_names()}
    new = {row["fault"]: row for row in (*_kept(), *rows) if row["fault"] in known}
    return list(new.values())


def _measured(folder: Path, only: str, jobs: int) -> list[Row]:
    """One row per fault.  The libraries are imported once, before the processes are forked."""
    _prepare(folder)
    names = [name for name in (NOTHING, *_names()) if only in name]
    context = multiprocessing.get_context("fork")
    workers = []
    for place in range(min(jobs, len(names))):
        here, there = context.Pipe(duplex=False)
        given = (there, names[place::jobs], folder / str(place))
        workers.append((here, context.Process(target=_share, args=given)))
        workers[-1][1].start()
        there.close()
    found: list[Row] = []
    pipes = [here for here, _ in workers]
    while pipes:
        for pipe in wait(pipes):
            assert isinstance(pipe, Connection)
            try:
                found.append(pipe.recv())
                _keep(found)
            except EOFError:
                pipes.remove(pipe)
    return sorted(found, key=lambda row: names.index(row["fault"]))


def _keep(rows: Sequence[Row]) -> None:
    """Writes the results after every fault, so that a stopped run keeps them."""
    known = [NOTHING, *_names()]
    merged = sorted(_merged(rows), key=lambda row: known.index(row["fault"]))
    with contextlib.redirect_stdout(io.StringIO()):
        keep("planted", {"faults": merged})


def _names() -> list[str]:
    from tests.faults import FAULTS

    return list(FAULTS)


def _share(pipe: Connection, names: Sequence[str], folder: Path) -> None:
    for number, name in enumerate(names):
        row = _row(name, folder / str(number))
        print(f"{name}: verify {row['verify']}, tests {row['tests']}", file=sys.stderr, flush=True)
        pipe.send(row)


def _row(name: str, folder: Path) -> Row:
    """A fault, and the checks and the first test that detect it."""
    from tests.faults import FAULTS

    fault = FAULTS.get(name)
    families = [fault.family] if fault else ["eventgpt", "video_llava", "llava"]
    files = fault.tests if fault else sorted({f for one in FAULTS.values() for f in one.tests})
    runs = fault.runs if fault else 1
    wanted = sorted(fault.checks) if fault else []
    failed: dict[str, None] = {}
    for family in families:
        found = _apart(_verified, name, family, runs, folder / family)
        failed |= dict.fromkeys(["did not end"] if found is None else found)
    groups = [files] if fault else [[file] for file in files]  # the control takes long
    tests: list[str] = []
    for group in groups:
        noticed = _apart(_tested, name, list(group))
        tests += ["did not end"] if noticed is None else noticed
    return {
        "fault": name,
        "what": fault.what if fault else "None: the control.",
        "kind": fault.item if fault else "",
        "verify": [one for one in failed if one in wanted or one not in CLOCKS],
        "expected": wanted,
        "tests": tests[:1],
    }


def _prepare(folder: Path) -> None:
    """Creates tiny checkpoints and a sample, and imports what all child processes need."""
    os.environ |= {"STAGESCOPE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    os.environ["STAGESCOPE_CACHE_DIR"] = str(folder / "cache")
    os.environ["STAGESCOPE_MODELS"] = str(folder / "models" / "models.toml")
    import torch

    from engine.verify import runner  # noqa: F401 - imported before the forks
    from tests import tiny
    from tests.conftest import make_sample
    from tests.faults import FAULTS

    torch.set_num_threads(1)
    with contextlib.redirect_stderr(open(os.devnull, "w")):  # noqa: PTH123
        path = tiny.models_toml(folder / "models")
        for family in sorted({one.family for one in FAULTS.values()} - set(tiny.BUILDERS)):
            tiny.add_family(path, family)
    make_sample(folder / "sample")


def _apart(work: Callable[..., list[str]], *given: Any) -> list[str] | None:
    """The result of `work` in a separate process; None if it took too long or ended early."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(there, work, given))
    child.start()
    there.close()
    found: list[str] | None = None
    with contextlib.suppress(EOFError):
        found = here.recv() if here.poll(LIMIT_S) else None
    child.kill()
    child.join()
    return found


def _send(pipe: Connection, work: Callable[..., list[str]], given: Sequence[Any]) -> None:
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        pipe.send(work(*given))


def _verified(name: str, family: str, runs: int, folder: Path) -> list[str]:
    """The checks that fail with the fault planted."""
    import pytest

    from engine.verify import runner
    from engine.verify.verdict import VerifyRequest
    from tests.conftest import make_sample
    from tests.faults import FAULTS
    from tests.verify.conftest import Notes

    runner.PAIRS = 3
    sample = make_sample(folder)
    if name in FAULTS:
        FAULTS[name].plant(pytest.MonkeyPatch())
    request = VerifyRequest((f"tiny-{family}",), (sample,), max_new_tokens=8, runs=runs)
    (examined,) = runner.verify(request, Notes())
    return [verdict.check for verdict in examined.verdicts if verdict.outcome == "failed"]


class _First:
    """The first test that fails, or an error of collecting."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    pytest_runtest_logreport = pytest_collectreport


def _tested(name: str, files: list[str]) -> list[str]:
    """The first failing test of these files with the fault planted; none where all pass."""
    import pytest

    if name != NOTHING:
        os.environ["PLANTED_FAULT"] = name
    for setting in ("STAGESCOPE_CACHE_DIR", "STAGESCOPE_MODELS"):
        os.environ.pop(setting, None)
    os.chdir(ROOT)
    first = _First()
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "benchmarks.planting"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before the fork
    pytest.main([*options, "-m", "not compiles", *files], plugins=[first])
    return first.failed


def counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Who caught how many, and the control."""
    planted = [row for row in rows if row["fault"] != NOTHING]
    by_verify = sum(bool(row["verify"]) for row in planted)
    by_tests = sum(bool(row["tests"]) for row in planted)
    nobody = [row["fault"] for row in planted if not row["verify"] and not row["tests"]]
    control = [row for row in rows if row["fault"] == NOTHING and row["verify"] + row["tests"]]
    return (
        f"Of {len(planted)} planted faults verify catches {by_verify}, the tests catch {by_tests}, "
        f"and nobody catches {nobody}; the control fails in {control}."
    )


if __name__ == "__main__":
    main()
