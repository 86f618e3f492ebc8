"""Verdicts, jobs and certificates made by hand, with evidence in the engine's form."""

from collections.abc import Mapping
from typing import Any

from engine.jobs.model_work import VerifyJob
from engine.types import MediaKind, ModelInfo, Ran, RunResult, Sample
from engine.verify import certificates
from engine.verify.verdict import (
    CHECKS,
    ONCE,
    CheckFinding,
    ModelVerdicts,
    Outcome,
    Verdict,
    VerifyRequest,
)

A, B = "357e6028-3d08-583e-9bdf-a85836735b46", "b0252a84-3d08-583e-9bdf-a85836735b46"
SAMPLES = (Sample(A, "drive"), Sample(B, "drive"))
PLACE = {"device": "cpu", "hardware": "x86_64", "threads": "1"}
REQUEST = VerifyRequest(("one",), SAMPLES, "Why?", 16, 2)


def spread(*values: float) -> dict[str, Any]:
    middle = sorted(values)[len(values) // 2]
    return {"median": middle, "mad": 0.5, "n": len(values), "values": list(values)}


def side(*pieces: str) -> dict[str, Any]:
    return {"ids": list(range(10, 10 + len(pieces))), "pieces": list(pieces)}


def equal(position: int | None = None) -> dict[str, Any]:
    """Two answers that part at `position`, or nowhere."""
    other = [" the", " <b>car</b>", "."]
    found: dict[str, Any] = {
        "way": "decoupled",
        "position": position,
        "logit_difference": 0.25,
        "rounding": 1e-5,
        "first_embeddings_difference": 0.0,
        "plain": side(*other),
        "other": side(*other),
    }
    if position is not None:
        found["other"]["pieces"][position] = "\n"
        found["plain"]["best"] = [{"id": 5, "piece": " the", "logit": 2.5}] * 2
        found["other"]["best"] = [{"id": 6, "piece": "\n", "logit": 2.25}] * 2
    return found


def evidence() -> dict[str, dict[str, Any]]:
    """check -> what it saw when it passed."""
    calls = [{"module": "Tower", "calls": 1, "pictures": 5}]
    stages = ("load", "preprocess", "vision", "decode", "total", "unaccounted")
    times = {name: spread(1.0, 2.0, 4.0) for name in stages}
    kind = times | {"first_run_ms": dict.fromkeys(stages, 9.0)}
    ratios = {"median": 1.0, "low": 0.9, "high": 1.05, "n": 2}
    ablation = {"shown": "zeros", "moved": 2.5, "ids": [1], "text": "Nothing."}
    return {
        "answer": {
            "text": "A **car**.",
            "shown": "5 event images",
            **{"new_tokens": 16, "positions": 116, "pictures": 5},
        },
        "long": equal() | {"new_tokens": 272, "positions": 372},
        "ends": {"natural_end": True, "new_tokens": {"plain": 16}, "faults": []},
        "sampled": {"tokens": {"seed": [1, 2]}, "faults": []},
        "rows": {"apart": {"rows": 1e-7}, "bounds": {"rows": 2e-5}},
        "probe": {"modules": ["Tower"], "layers": 3, "faults": []},
        **{name: equal() for name in CHECKS if name.startswith("equal_")},
        "equal_batch": equal() | {"size": 4},
        "shapes": equal(),
        "pixels": {},
        "greedy": {"positions": {}},
        "counted": {"counts": {"plain": {"computed": 3, "returned": 3}}},
        "encoded_once": {"calls": {"plain": calls}, "pictures": 5, "faults": []},
        "clock": {"runs": 9, "faults": [], "monotonic": True},
        "accounted": {"shares": {"computed": 0.01}, "kinds": {"computed": kind}, "n": 3},
        "stage3": {"alone_ms": [1.0, 2.0], "probe_ms": [1.0, 2.1], **ratios},
        "observer": {"pairs_ms": [[1.0, 1.1], [2.0, 2.0]], "answer_ms": 2.0, **ratios},
        "left_as_found": {"faults": [], "again": "EXACT: all 3 tokens are equal."},
        "sight": {"own": "A car.", "changes": [ablation]},
    }


def verdicts(
    model: str = "one", changed: Mapping[tuple[str, str], Outcome] | None = None
) -> list[Verdict]:
    """Every check on both samples; passed unless (check, sample) is `changed`."""
    seen, found = evidence(), []
    for check in CHECKS:
        for sample in ("",) if check in ONCE else (A, B):
            outcome = (changed or {}).get((check, sample), "passed")
            sentence = f"{check} says so."
            finding = CheckFinding(outcome, sentence, 0.004, 0.01, "of generate()", seen[check])
            found.append(Verdict.of(check, model, sample, finding))
    return found


def job(found: list[Verdict], **changes: Any) -> VerifyJob:
    start: dict[str, Any] = {"request": REQUEST, "state": "running", "step": ("one", A, "timing")}
    return VerifyJob(dataset="", verdicts=found, **start | changes)


def certificate(
    found: list[Verdict] | None = None,
    digest: str = "d" * 32,
    name: str = "one",
    dtype: str = "float32",
    environment: Mapping[str, str] = PLACE,
    backend: Ran = "eager",
    shows: MediaKind | None = None,
) -> dict[str, Any]:
    rows = verdicts(name) if found is None else found
    info = ModelInfo(name, "llava", "c", None, dtype, False, digest=digest, shows=shows)
    model = ModelVerdicts(name, info, environment, tuple(rows), backend=backend)
    return certificates.make(REQUEST, [model], "/data")


def covering_hash(result: RunResult) -> str | None:
    """The hash of the certificate that covers a result as it ran, or None."""
    found = certificates.certificate_status(result)
    return found.certificate if found.state == "verified" else None
