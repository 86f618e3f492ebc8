"""The Verify page through AppTest, over tiny checkpoints in the real registry."""

import json
import re
from dataclasses import asdict

import pytest
from streamlit.testing.v1 import AppTest

from engine.jobs import queue
from engine.jobs.model_work import VerifyJob
from engine.verify import certificates
from engine.verify.verdict import CHECKS, coverage_of
from tests.pages.conftest import Open, quantize
from tests.pages.reading import captions, html, texts
from tests.ui.verify.made import A, certificate, verdicts
from ui.verify import evidence, verdict_board, verify_charts

PAGE = "pages/verify.py"
ONE = {"models": ["Tiny llava"], "samples": "1", "runs": "1", "tokens": "8"}


def press_verify(at: AppTest) -> AppTest:
    at.button(key="verify_run").click().run()
    assert not at.exception
    return at


def job(at: AppTest) -> VerifyJob:
    found = queue.manager().get(at.session_state["verify_job"][0])
    assert isinstance(found, VerifyJob)
    return found


def row(at: AppTest, check: str) -> AppTest:
    at.button(key=f"verify_row_{check}").click().run()
    assert not at.exception
    return at


@pytest.fixture
def kept(app: Open) -> str:
    """The hash of a certificate with a mismatch, kept before the page is opened."""
    found = certificate(verdicts(changed={("equal_decoupled", A): "failed"}))
    certificates.store(found)
    return str(found["hash"])


@pytest.fixture(scope="module")
def ended() -> list[str]:
    """The ids of verifications that have ended; the queue of the process knows them."""
    return []


@pytest.fixture
def verified(app: Open, ended: list[str]) -> AppTest:
    """The page of a finished verification, for tests that only read it."""
    if ended and queue.manager().get(ended[-1]):
        return app(PAGE, job=ended[-1], **ONE)
    at = press_verify(app(PAGE, **ONE))
    ended.append(job(at).id)
    return at


def test_a_verification_fills_its_rows_and_stays_in_the_visit(app: Open, ended: list[str]) -> None:
    at = press_verify(app(PAGE, **ONE))
    done = job(at)
    ended.append(done.id)
    assert done.state == "done" and done.certificate is not None
    assert done.request.models == ("tiny-llava",) and done.request.runs == 1
    assert {verdict.check for verdict in done.verdicts} == set(CHECKS)
    asked = [button.help for button in at.button if (button.key or "").startswith("verify_row_")]
    assert all(any(check.question in help_ for help_ in asked) for check in CHECKS.values())
    shown = html(at)
    assert shown.count("proof-passed") >= 9  # what is proved does not depend on the machine's load
    assert re.search(r"Tiny llava: \d+ passed", shown)
    name = done.certificate["hash"]
    label = next(row.label for row in at.expander if name[:12] in row.label)
    assert " of 1 model · 2" in label and "Tiny llava" not in label
    assert captions(app(PAGE, job=done.id, certificate=name)).count("shown above") == 1
    at.switch_page("pages/models.py").run()
    assert "Ended after" not in captions(at)
    at.switch_page(PAGE).run()
    assert at.query_params["verify_job"] == job(at).id == done.id
    assert "Ended after" in captions(at)


def test_every_row_opens_its_evidence_and_closes_it(app: Open, verified: AppTest) -> None:
    at = row(verified, "accounted")
    assert at.query_params["verify_open"] == "accounted"
    done = job(at)
    at = app(PAGE, job=done.id, open=list(CHECKS))
    sentences = [verdict.sentence for verdict in done.verdicts]
    assert all(sentence in texts(at) for sentence in sentences)
    assert len(at.get("vega_lite_chart")) == len(verify_charts.PARTS) + 2 * 2
    assert "cannot draw" not in captions(at)
    row(at, "accounted")
    assert len(at.get("vega_lite_chart")) == 2 * 2


def test_models_that_cannot_load_are_a_row(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    quantize('"./llava"', monkeypatch)
    at = press_verify(app(PAGE, **ONE))
    assert "do not work here" in texts(at)
    assert "Not verified" in html(at) and "proof-failed" in html(at)
    assert [verdict.check for verdict in job(at).verdicts] == ["answer"]


def test_a_root_without_a_dataset_is_a_sentence(app: Open) -> None:
    at = app(PAGE, root="/nowhere/at/all")
    assert "/nowhere/at/all" in texts(at) and at.button(key="verify_run").disabled


def test_a_certificate_opens_by_its_link(app: Open, kept: str) -> None:
    at = app(PAGE, certificate=kept[:12], kept_open=["equal_decoupled"])
    assert f"SHA-256 {kept}" in texts(at) and "no longer in models.toml" in texts(at)
    assert f"{len(CHECKS) - 1} passed; 1 failed: Decoupled = plain." in html(at)
    assert "equal_decoupled says so." in texts(at)


def test_a_certificate_opens_in_its_own_row(app: Open, verified: AppTest, kept: str) -> None:
    at = verified.run()  # the certificate has been stored since
    row = next(row for row in at.expander if kept[:12] in row.label)
    assert row.label.startswith("✕ 0 of 1 model · one · ") and "stale" in row.label
    assert not row.proto.expanded and not row.children
    at.query_params["verify_certificate"] = kept
    at.run()
    assert not at.exception and "Ended after" in captions(at)
    row = next(row for row in at.expander if kept[:12] in row.label)
    assert row.proto.expanded and [text.value for text in row.text][-1] == f"SHA-256 {kept}"
    assert "1 failed: Decoupled = plain." in row.get("html")[0].proto.body
    row.button(key="verify_kept_row_equal_decoupled").click()
    at.run()
    assert "equal_decoupled says so." in texts(at)
    assert at.query_params["verify_kept_open"] == "equal_decoupled"
    assert "verify_open" not in at.query_params
    del at.query_params["verify_certificate"]
    at.run()
    assert "SHA-256" not in texts(at) and "Ended after" in captions(at)


def test_what_is_not_proved_is_one_short_list(app: Open, verified: AppTest) -> None:
    folded = next(one for one in verified.expander if one.label == "Not proved")
    (limits,) = [element.value for element in folded.text]
    assert 3 <= limits.count("• ") <= 3 + 4 and limits.count("Answers for other samples") == 1
    assert texts(verified).count("Answers for other samples") == 1


def test_a_link_opens_a_certificate_that_is_not_among_the_newest(app: Open, kept: str) -> None:
    for number in range(verdict_board.FEW):
        newer = certificate(name=f"model{number}")
        newer["made"] = f"2099-01-01T00:00:0{number}+00:00"
        newer["hash"] = certificates.content_hash(newer)
        certificates.store(newer)
    assert not any(kept[:12] in row.label for row in app(PAGE).expander)
    assert f"SHA-256 {kept}" in texts(app(PAGE, certificate=kept))


@pytest.mark.parametrize("name", ["../../etc/passwd", "abc"])
def test_a_link_to_no_certificate_is_a_sentence(app: Open, kept: str, name: str) -> None:
    at = app(PAGE, certificate=name)
    assert "was not found: choose" in texts(at) and "Press Verify" in texts(at)


def test_a_certificate_that_is_none_leaves_the_others_listed(app: Open, kept: str) -> None:
    odd = certificate()
    odd["verdicts"][0]["outcome"] = "odd"
    odd["models"][0]["verified"] = False
    odd["hash"] = certificates.content_hash(odd)
    certificates.store(odd)
    at = app(PAGE)
    assert f"{odd['hash']}.json is not used: Invalid enum value 'odd'" in texts(at)
    assert any(kept[:12] in row.label for row in at.expander)
    assert "was not found: choose" in texts(app(PAGE, certificate=odd["hash"]))


def test_evidence_of_an_odd_certificate_is_shown_as_it_came(app: Open) -> None:
    found = certificate()
    for line in found["verdicts"]:
        line["evidence"] = {"<b>odd</b>": ["&"]}
    covered = asdict(coverage_of(certificates.verdicts_in(found)))
    found["models"][0]["coverage"] = json.loads(json.dumps(covered))
    found["hash"] = certificates.content_hash(found)
    certificates.store(found)
    at = app(PAGE, certificate=found["hash"], kept_open=list(CHECKS))
    assert captions(at).count("cannot draw") == len(evidence.DRAWN.keys() & CHECKS.keys())
    assert all("<b>odd</b>" in code.value for code in at.code)
    assert not any("<b>odd</b>" in element.proto.body for element in at.get("html"))
