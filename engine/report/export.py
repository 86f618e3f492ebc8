"""The formats of a report; CSV and Parquet have one line per result.  Texts that a spreadsheet
would read as a formula get an apostrophe in front.

Every Eval Ever is one JSON object per model, by eval.schema.json 0.3.0 of
https://github.com/evaleval/every_eval_ever."""

import csv
import io
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from engine import settings
from engine.analysis.model_summary import BY_NAME
from engine.analysis.results_table import frame, labels
from engine.models.families import SERVED
from engine.quoting import printable
from engine.report import bundle, drawers
from engine.report.document import document
from engine.report.origin_part import model_of
from engine.report.report_figures import Findings, certificate_text
from engine.storage import run_header
from engine.storage.plan import flags
from engine.storage.run_header import Header
from engine.storage.run_store import Run

_LEFT_OUT = ["title", "bare", "cluster", "number", "offset", "token_ms", "truth"]
# What a spreadsheet may skip before the sign of a formula, and the signs, also of full width.
_FORMULA = re.compile(r"[\s\x00-\x1f\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_JSON = {  # key -> field of Findings
    **{name: name for name in ("counts", "figures", "comparisons", "attributes")},
    **{name: name for name in ("robustness", "overlaps", "devices")},
    "throughput": "throughputs",
    "speedups": "splits",
    "choice_accuracy": "choices",
    "choice_comparisons": "choice_pairs",
    "data_flow": "passages",
}
SCHEMA = "0.3.0"
UNTOLD = (
    "Left out, because the schema has no place for it: comparisons of models, single answers "
    "(each needs a score), token counts (neither more nor fewer is better), cold runs and "
    "batches, tensors, certificates, settings of pictures."
)


def write(runs: Sequence[Run], form: str) -> str:
    """A report of at least one run as "md", "html", "csv" or "json"."""
    if form == "md":
        return drawers.markdown(document(Findings(runs)))
    if form == "html":
        return bundle.page(runs)
    if form == "csv":
        # Every text is quoted: a carriage return outside quotes would begin a line.
        table = frame(runs).drop(columns=_LEFT_OUT).map(_cell)
        return table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    found = Findings(runs, titled=False)
    failures = found.failures.items()
    content = {
        "runs": [
            {
                **run_header.as_json(run.header),
                "state": run.state,
                "journal": list(run.journal),
                "problems": list(run.problems),
            }
            for run in found.runs
        ],
        **{key: getattr(found, name) for key, name in _JSON.items()},
        "lenses": found.through_lenses[0],
        "verified": {
            label: {certificate_text(standing): n for standing, n in standings.items()}
            for label, standings in found.verified.items()
        },
        "failures": [{"label": label, "reason": why, "n": n} for (label, why), n in failures],
    }
    return drawers.as_json(content) + "\n"


def data(runs: Sequence[Run], form: str) -> bytes:
    """The same as a file's content; also as Parquet, with texts as they were answered, but for what
    is no character."""
    if form != "parquet":
        return write(runs, form).encode(errors="replace")
    table, out = frame(runs).drop(columns=_LEFT_OUT), io.BytesIO()
    for name in table.select_dtypes("object"):
        table[name] = [
            value.encode(errors="replace").decode() if isinstance(value, str) else value
            for value in table[name]
        ]
    table.to_parquet(out, index=False)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """ "" for a missing value; of a text no control characters, and no beginning of a formula."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(value) else text


def every_eval_ever(runs: Sequence[Run]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(label, record) of each model with results."""
    found = Findings(runs)
    for label in labels(found.table):
        run, model = model_of(found, label)
        if model is None:
            continue
        header, count = run.header, next(one for one in found.counts if one.label == label)
        dataset, environment = PurePath(header.dataset.root).name, header.environment
        made = str(int(time.time()))
        served = model.family == SERVED
        details = {
            "deployment_type": "unknown" if served else "self_deployed",
            "model_availability": "unknown" if served else "open_weights",
            "family": model.family,
            "dtype": model.dtype,
            "checkpoint_digest": model.digest,
            "checkpoint": PurePath(model.checkpoint).name,
            "revision": model.revision or "not stated",
            "run": run.state,
            "results": f"{count.results:,}",
            "failed": f"{count.failed:,}",
        }
        record = {
            "schema_version": SCHEMA,
            "evaluation_id": f"{dataset}/{label}/{made}",
            "evaluation_timestamp": header.created,
            "retrieved_timestamp": made,
            "source_metadata": {
                "source_name": f"StageScope run {header.id}",
                "source_type": "evaluation_run",
                "source_organization_name": "not stated",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "stagescope", "version": header.code},
            "model_info": {
                "name": label,
                "id": model.name,
                "inference_engine": {
                    "name": "a server" if served else "transformers",
                    "version": str(environment.get("transformers", "unknown")),
                },
                "additional_details": details,
            },
            "evaluation_results": [
                {
                    "evaluation_result_id": name,
                    "evaluation_name": dataset,
                    "evaluation_timestamp": header.created,
                    "source_data": {
                        "dataset_name": dataset,
                        "source_type": "other",
                        "additional_details": {"digest": header.dataset.digest},
                    },
                    "metric_config": metric,
                    "score_details": score,
                    "generation_config": _generation(header),
                }
                for name, metric, score in (*_times(found, label), *_shares(found, label))
            ],
        }
        yield label, record


_Result = tuple[str, dict[str, Any], dict[str, Any]]  # id, metric_config, score_details


def _times(found: Findings, label: str) -> Iterator[_Result]:
    for one in found.figures:
        metric = BY_NAME[one.metric]
        if one.label == label and one.group == "measured" and metric.timed:
            source = "" if one.source == "measured" else f".{one.source}"
            config = {
                "evaluation_description": metric.meaning,
                "metric_id": f"stagescope.{metric.name}{source}",
                "metric_name": metric.label,
                "metric_unit": one.unit.replace("tokens/s", "tokens per second"),
                "lower_is_better": metric.less_is_faster,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": "Infinity",
            }
            details = {"statistic": "median", "source": one.source}
            for name in ("mean", "mad", "p90", "p99", "low", "high"):
                if (value := getattr(one, name)) is not None:
                    details[name] = repr(float(value))
            uncertainty: dict[str, Any] = {"num_samples": one.n}
            if one.sd is not None:
                uncertainty["standard_deviation"] = one.sd
            score = {"score": one.median, "details": details, "uncertainty": uncertainty}
            yield f"{one.metric}: {one.source}", config, score


def _shares(found: Findings, label: str) -> Iterator[_Result]:
    """Accuracy of options by task, accuracy of attributes, overlap with references."""
    for one in found.choices:
        if one.label == label and one.accuracy:
            uncertainty: dict[str, Any] = {"num_samples": one.accuracy.n}
            if ends := one.accuracy.ends:
                interval = {"lower": ends[0], "upper": ends[1], "confidence_level": 0.95}
                uncertainty["confidence_interval"] = interval
            score = {"score": one.accuracy.share, "uncertainty": uncertainty}
            task = f"accuracy: {one.task}" if one.task else "accuracy"
            yield task, _shared("accuracy", "right answers to questions with options"), score
    for attribute in found.attributes:
        if attribute.label == label and attribute.accuracy is not None:
            score = {"score": attribute.accuracy, "uncertainty": {"num_samples": attribute.n}}
            meaning = "answers that state the attribute of the scene as it is"
            yield f"attribute: {attribute.attribute}", _shared("accuracy", meaning), score
    for overlap in found.overlaps:
        if overlap.label == label:
            score = {"score": overlap.median, "uncertainty": {"num_samples": overlap.n}}
            meaning = "median word F1 of answer and reference"
            yield "reference overlap", _shared("f1", meaning), score


def _shared(kind: str, meaning: str) -> dict[str, Any]:
    return {
        "evaluation_description": meaning,
        "metric_id": kind,
        "metric_kind": kind,
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
    }


def _generation(header: Header) -> dict[str, Any]:
    plan, config = header.plan, header.plan.decode
    command = shlex.join(flags([plan], PurePath(header.dataset.root).name))
    return {
        "generation_args": {
            "temperature": 0.0 if config.greedy else config.temperature,
            "top_p": 1.0 if config.greedy else config.top_p,
            "max_tokens": config.forced or config.max_new_tokens,
            "execution_command": f"{settings.COMMAND} bench {command}",
        },
        "additional_details": {"mode": plan.mode, "cache": plan.cache, "batch": str(plan.batch)},
    }
