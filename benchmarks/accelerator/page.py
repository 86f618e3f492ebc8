"""The kept figures of each accelerator as Markdown tables and a chart for docs/speed.md.

Boundary: from benchmarks/results/accelerator-*.json to text and SVG; measures nothing.  They stand
apart from the figures of CPUs: no table holds both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accelerator.merged import LABELS
from benchmarks.machine import RESULTS
from engine.palette import FAMILY_COLOURS

PATTERN = "accelerator-*.json"
NONE = (
    "No accelerator has been measured yet. `python -m benchmarks.accelerator --out FOLDER` "
    "measures one, and with `--keep` its figures come here ([how](accelerator.md)).\n"
)
DECODING = (
    *("model", "dtype", "context", "TTFT, ms", "TPOT, ms", "generate(), tok/s", "eager, tok/s"),
    *("compiled, tok/s", "MBU, compiled", "step prepared, s", "peak memory, GB"),
)
WAYS = ("generate", "eager", "compiled")


def sections(folder: Path = RESULTS) -> str:
    """A section for each device that was measured; a sentence if there is none."""
    files = sorted(folder.glob(PATTERN))
    return "\n".join(_section(file) for file in files) if files else NONE


def _section(file: Path) -> str:
    found = json.loads(file.read_text(encoding="utf-8"))
    where = ", ".join(f"{name} {found['environment'][name]}" for name in ("torch", "transformers"))
    lines = [f"### {found['device']}", "", f"Measured on {found['measured']}, {where}.  "]
    lines += [f"A copy on the device moves {found['copy_gb_per_s']:,.0f} GB/s.", ""]
    lines += [table(DECODING, [_decoding(*one) for one in found["families"].items()])]
    lines += [
        f"![Tokens a second of each way to decode](../benchmarks/results/{file.stem}.svg)",
        "",
    ]
    lines += [table(("what", "figure"), list(_others(found)))]
    lines += [table(("what", "against", "ratio"), list(_ratios(found)))]
    return "\n".join(lines)


def _ratios(found: Mapping[str, Any]) -> Iterator[list[str]]:
    for row in found["rows"]:
        yield [row["what"], row["against"], f"{row['ratio']:g}x"]


def _decoding(family: str, one: Mapping[str, Any]) -> list[str]:
    ways, compile_s = one["ways"], one.get("compile_s") or {}
    rates = [f"{ways[way]['tokens_per_s']['median']:,.1f}" if way in ways else "" for way in WAYS]
    used = ways.get("compiled", {}).get("mbu", {}).get("of_copy")
    return [
        *(LABELS[family], one["dtype"], f"{one['context_tokens']:,}"),
        *(f"{one[name]['median']:,.1f}" for name in ("ttft_ms", "tpot_ms")),
        *rates,
        "" if used is None else f"{100 * used:.0f} %",
        f"{compile_s['seconds']:,.1f}" if "seconds" in compile_s else "",
        f"{one['peak_memory']['bytes'] / 1e9:,.1f}",
    ]


def _others(found: Mapping[str, Any]) -> Iterator[list[str]]:
    """What was measured or checked besides decoding, a line each."""
    if (compiled := found["compile_s"]).keys() >= {"cold", "from_disk"}:
        cold, warm = (compiled[name]["seconds"] for name in ("cold", "from_disk"))
        yield ["compiled step prepared", f"{cold:.1f} s at first, {warm:.1f} s from disk"]
    app = found["app"]
    for name, one in app.get("together", {}).get("models", {}).items():
        sizes = f"{one['weights_bytes'] / 1e9:.2f} GB, planned {one['weights_planned'] / 1e9:.2f}"
        yield [f"{name} loaded from disk", f"{one['load_s']:.1f} s, {sizes}"]
    for name in ("features", "prefixes"):
        yield from (_reused(name, *one) for one in app.get(name, {}).items() if name in app
                    and isinstance(one[1], dict))  # fmt: skip
    for name, one in found["verify"].items():
        counts = ", ".join(f"{count} {outcome}" for outcome, count in one["outcomes"].items())
        yield [f"`{name}`", counts]
    for name, one in found["bench"].items():
        yield from _dataset_run(name, one)
    for place in found["unequal"]:
        yield [f"`{place}`", "NOT equal"]


def _dataset_run(name: str, one: Mapping[str, Any]) -> Iterator[list[str]]:
    """Throughput of batches; of single samples the median of their totals."""
    for line in one["throughput"]:
        rates = (line[unit]["median"] for unit in ("samples_per_s", "tokens_per_s"))
        said = "{:.2f} samples and {:.0f} tokens a second".format(*rates)
        yield [f"`{name}`, {line['label']}", said]
    for line in one["figures"]:
        if line["metric"] == "total" and line["group"] == "measured":
            said = f"{line['median']:.0f} ms a sample (median, n {line['n']})"
            yield [f"`{name}`, {line['label']}", said]


def _reused(section: str, name: str, one: Mapping[str, Any]) -> list[str]:
    if section == "features":
        figures = [one[key]["median"] for key in ("computed_ms", "read_ms")]
        return [f"{name}: stage 3", "{:.1f} ms computed, {:.1f} ms read".format(*figures)]
    figures = [one[key]["median"] for key in ("ttft_ms", "ttft_reused_ms")]
    said = "TTFT {:.1f} ms, with the prefix in memory {:.1f} ms".format(*figures)
    return [f"{name}: another question", said]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def chart(file: Path) -> Path:
    """Draws tokens a second of each way as an SVG beside the kept figures."""
    import altair as alt
    import pandas as pd
    import vl_convert

    found = json.loads(file.read_text(encoding="utf-8"))
    points = [
        {"model": LABELS[family], "way": way, "rate": one["ways"][way]["tokens_per_s"]["median"]}
        for family, one in found["families"].items()
        for way in WAYS
        if way in one["ways"]
    ]
    names = [LABELS[family] for family in found["families"]]
    colours = [FAMILY_COLOURS[family] for family in found["families"]]
    drawn = (
        alt.Chart(pd.DataFrame(points), title=f"Decoding on {found['device']}, batch 1")
        .mark_bar()
        .encode(
            x=alt.X("rate:Q", title="tokens per second after the first"),
            y=alt.Y("way:N", sort=list(WAYS), title=None),
            color=alt.Color("model:N", scale=alt.Scale(domain=names, range=colours), legend=None),
            row=alt.Row("model:N", sort=names, title=None),
        )
        .properties(width=420)
    )
    target = file.with_suffix(".svg")
    target.write_text(vl_convert.vegalite_to_svg(drawn.to_dict()), encoding="utf-8")
    return target
