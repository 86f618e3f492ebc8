"""A verification for a terminal or a notebook: each model's checks, by sample."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.report.blocks import Block, Bullets, Heading, Paragraph
from engine.verify import certificates

MARKS = {
    **{"passed": "ok  ", "tie": "tie ", "failed": "FAIL", "unresolved": "open"},
    **{"skipped": "----", "refused": "none"},
}


def blocks(report: Mapping[str, Any], path: Path | None) -> Iterator[Block]:
    """What a certificate says, and where it is kept."""
    for model in report["models"]:
        rows = [row for row in report["verdicts"] if row["model"] == model["name"]]
        rows.sort(key=lambda row: not row["sample"])  # grouped by sample, then all samples
        yield Heading(3, f"{model['name']}: {'verified' if model['verified'] else 'NOT verified'}")
        for sample, group in itertools.groupby(rows, key=lambda row: row["sample"]):
            lines = (f"{MARKS[row['outcome']]} {row['title']}: {row['sentence']}" for row in group)
            yield Bullets(tuple(lines), f"sample {sample}" if sample else "all samples")
        if "server" in model["environment"]:
            where = model["environment"]
            yield Paragraph(f"{where['model']} at {where['server']}, {where['software']}.")
        if model["verified"] or "server" not in model["environment"]:
            yield Paragraph(certificates.covers(model))
        yield Bullets(tuple(f"- {sentence}" for sentence in model["unproved"]), "Not proved:")
    kept = path or "not saved"
    yield Heading(3, f"Certificate {report['hash'][: certificates.SHOWN]}: {kept}")
