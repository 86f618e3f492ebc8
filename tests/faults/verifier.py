"""Faults of the verifier itself and of what certificates claim."""

from dataclasses import replace
from typing import Any

from engine.verify import certificates, checks
from tests.faults.fault import Patch, fault, replaces


@replaces(checks, "compare")
def compares_eight_ids(compare: Any, plain: Any, other: Any, rounding: float) -> Any:
    first, second = (replace(one, ids=one.ids[:8], logits=one.logits[:8]) for one in (plain, other))
    return compare(first, second, rounding)


def compares_ids_alone(patch: Patch) -> None:
    patch.setattr(checks, "_apart", lambda plain, other, rows: 0.0)


def covers_everything(patch: Patch) -> None:
    patch.setattr(certificates, "not_covered", lambda cover, result: ())


def old_certificates_count(patch: Patch) -> None:
    patch.setattr(certificates, "stale", lambda certificate: False)


PROOF = "verify/test_certificates verify/test_certificate_status"
FAULTS = (
    fault("verifier compares 8 ids", "llava", "", compares_eight_ids,
          "verify/test_equality", "The verifier compares the first 8 tokens.", "verifier"),
    fault("verifier compares ids alone", "llava", "", compares_ids_alone,
          "verify/test_equality", "The verifier does not look at logits.", "verifier"),
    fault("covers everything", "llava", "", covers_everything, PROOF,
          "Every result of a verified model is called verified.", "coverage"),
    fault("old certificates count", "llava", "", old_certificates_count, PROOF,
          "Certificates of other code still count.", "coverage"),
)  # fmt: skip
