"""Runs as records of Every Eval Ever: one JSON object per model, by eval.schema.json 0.3.0 of
https://github.com/evaleval/every_eval_ever."""

import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from engine import settings
from engine.analysis.metrics import BY_NAME
from engine.analysis.results_table import labels
from engine.models.families import SERVED
from engine.report.origin_part import model_of
from engine.report.report_figures import Findings
from engine.storage.plan import flags
from engine.storage.run_header import Header
from engine.storage.run_store import Run

VERSION = "0.3.0"
LEFT_OUT = (
    "Left out, because the schema has no place for it: comparisons of models, single answers "
    "(each needs a score), token counts (neither more nor fewer is better), cold runs and "
    "batches, tensors, certificates, settings of pictures."
)


def records(runs: Sequence[Run]) -> Iterator[tuple[str, dict[str, Any]]]:
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
            "schema_version": VERSION,
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
            yield task, _share("accuracy", "right answers to questions with options"), score
    for attribute in found.attributes:
        if attribute.label == label and attribute.accuracy is not None:
            score = {"score": attribute.accuracy, "uncertainty": {"num_samples": attribute.n}}
            meaning = "answers that state the attribute of the scene as it is"
            yield f"attribute: {attribute.attribute}", _share("accuracy", meaning), score
    for overlap in found.overlaps:
        if overlap.label == label:
            score = {"score": overlap.median, "uncertainty": {"num_samples": overlap.n}}
            meaning = "median word F1 of answer and reference"
            yield "reference overlap", _share("f1", meaning), score


def _share(kind: str, meaning: str) -> dict[str, Any]:
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
