"""Rules that find wrong numbers in published result files; corrections are made in reading."""

from __future__ import annotations

from engine.published.audit import answer_rules as answers
from engine.published.audit import ratio_rules as ratios
from engine.published.audit import time_rules as times
from engine.published.audit import token_rules as tokens
from engine.published.audit.finding import (
    SEVERITIES,
    AuditFinding,
    Check,
    Rule,
    Severity,
    each_model,
)
from engine.published.read.record_types import ResultFile

__all__ = ["RULES", "SEVERITIES", "AuditFinding", "Rule", "Severity", "audit"]

# name, description and check of each rule, in the order in which findings are shown
_ERRORS: tuple[tuple[str, str, Check], ...] = (
    ("label", "The evidence contradicts the model label.", answers.label),
    ("prompt_counted", "The prompt is counted as output.", each_model(tokens.prompt_counted)),
    ("sliced_tokens", "Answer tokens are missing from the count.", each_model(tokens.sliced)),
    ("beyond_limit", "An answer has more tokens than the limit.", each_model(tokens.beyond_limit)),
    (
        "count_and_ids",
        "The token count is not the number of ids.",
        each_model(tokens.count_and_ids),
    ),
    ("bos", "Answers contain the begin-of-text id.", each_model(tokens.begins_with_bos)),
    ("bos_matched", "The begin-of-text id is counted as accepted.", tokens.bos_matched),
    ("one_image", "EventGPT got one event image, not several.", each_model(answers.one_image)),
    ("doubled_context", "Visual tokens are counted twice.", each_model(answers.doubled_context)),
    ("totals", "Totals are not the sum of their stages.", each_model(times.totals, timed=True)),
    (
        "left_out",
        "A stated total does not include all stages.",
        each_model(times.left_out, timed=True),
    ),
    (
        "per_token",
        "A rate per token does not fit the decoding.",
        each_model(ratios.per_token, timed=True),
    ),
    ("summaries", "The summary contradicts its rows.", times.summaries),
    ("speedup", "A speed-up divides by the wrong time.", ratios.speedups),
    ("impossible", "A speed-up does not include all stages.", ratios.impossible),
    ("cost_ratio", "A cost ratio is per answer, not per token.", ratios.cost_ratios),
    ("equality", "Sampled outputs are compared for equality.", answers.equality),
    ("units", "Seconds and milliseconds are mixed.", each_model(times.units)),
    ("implausible", "A model's times are in another unit.", times.implausible),
    ("flags", "Rows contradict their answers.", answers.flags),
    ("acceptance_rows", "Rows state a wrong acceptance.", tokens.acceptance_rows),
)
_WARNINGS: tuple[tuple[str, str, Check], ...] = (
    ("lossless", "Speculation changed the answers.", answers.lossless),
    ("estimate", "An acceptance was not measured on tokens.", answers.estimates),
    ("warm_up", "The mean includes a warm-up.", each_model(times.warm_up, timed=True)),
    ("placeholder", "A stage was never measured.", times.placeholder),
    (
        "degenerate",
        "Answers are empty or repetitive.",
        each_model(answers.one_text, answers.repeats, answers.empty),
    ),
    ("capped", "Answers stop at a limit.", tokens.capped),
    ("first_token", "First tokens are missing.", tokens.first_token),
    (
        "beyond_window",
        "A context is longer than the model supports.",
        each_model(answers.beyond_window),
    ),
    ("unusable", "Values could not be used.", answers.unusable),
    ("duplicates", "Samples appear more than once.", each_model(answers.duplicates)),
    ("one_sided", "Only one of the models answered some samples.", answers.one_sided),
)
_NOTES: tuple[tuple[str, str, Check], ...] = (
    ("failures", "Samples failed.", answers.failures),
    ("unequal", "Answers of different length are compared.", ratios.unequal),
    ("chance", "Shuffled pairs match equally often.", answers.chance),
)
RULES: tuple[Rule, ...] = (
    *(Rule(name, sentence, "error", check) for name, sentence, check in _ERRORS),
    *(Rule(name, sentence, "warning", check) for name, sentence, check in _WARNINGS),
    *(Rule(name, sentence, "note", check) for name, sentence, check in _NOTES),
)


def audit(file: ResultFile) -> tuple[AuditFinding, ...]:
    """The findings of all rules, errors first."""
    return tuple(finding for rule in RULES for finding in rule.apply(file))
