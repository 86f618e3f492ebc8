"""explain: its output, its files, and how it refuses bad input."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from engine.__main__ import main
from engine.models import registry
from engine.storage import explanations, run_store
from engine.storage.run_store import RESULTS
from tests.cli.conftest import Refused
from tests.test_main import call, root

__all__ = ["root"]
Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.loads
SMALL = ("--grid", 4, "--coarse", 2, "--refined", 1, "--side", 1, "--max-new-tokens", 12)
ASKED = ("explain", "--sample", "id-0", "--model", "tiny-llava", "--words", "a car")


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is loaded."""
    monkeypatch.setattr(registry, "load", None)


def test_the_result_is_one_json_document(root: Path, tmp_path: Path, capsys: Capture) -> None:
    png = tmp_path / "map.png"
    given = ("--dataset", root, *SMALL, "--out", png, "--no-time", "--json")
    code, found, told = call(capsys, *ASKED, *given)
    assert code == 0 and len(found["cells"]) == 8 and found["moments"] == []
    assert "9 encodings" in told and "9 of 9 inputs" in told
    with Image.open(io.BytesIO(png.read_bytes())) as picture:
        assert picture.format == "PNG"


def test_the_text_names_places_and_limits(root: Path, capsys: Capture) -> None:
    asked = [*ASKED, "--dataset", root, *SMALL, "--model", "tiny-video_llava"]
    assert main([str(one) for one in asked]) == 0
    text = capsys.readouterr().out
    # A model of random weights gives every token about the same small probability.
    assert "Largest losses:" in text and "below 0.01: no place is named." in text
    for part in ("frame 0, replaced", "Not proved:", "nats"):
        assert part in text


def test_a_dry_run_prints_the_cost_only(root: Path, capsys: Capture) -> None:
    code, found, _ = call(capsys, *ASKED, "--dataset", root, *SMALL, "--dry-run", "--json")
    assert code == 0 and set(found) == {"encodings", "prefills", "seconds"}
    assert found["encodings"] == 9 and found["seconds"] > 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--sample", "nothing"), "nothing"),
        (("--model", "gone"), "gone"),
        (("--words", " "), "The text to explain is empty"),
        (("--words", "a \udcff car"), "The text to explain contains '\\udcff'"),
        (("--grid", 0), "grid is 0: choose a value from 2 to 32."),
        (("--side", 9), "side is 9"),
        (("--coarse", 3), "coarse is 3"),
        (("--batch", 0), "batch is 0"),
        (("--out", "/gone/map.png"), "cannot be written (No such file or directory)"),
        (("--out", f"{'x' * 300}.png"), "cannot be written (File name too long): name another"),
        (("--out", "map.jpg"), "a name that ends in .png"),
        (("--split", "time:x"), "split is 'time:x'"),
        (("--run", "gone"), "'gone' is not a run"),
        (("--prompt", ""), "The question is empty"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    root: Path, unloaded: None, refused: Refused, flags: tuple[str, object], told: str
) -> None:
    given = ASKED if flags[0] == "--run" else (*ASKED, "--dataset", root)
    assert told in refused(*given, *flags)


@pytest.fixture
def run(root: Path, tmp_path: Path, capsys: Capture) -> Path:
    folder = tmp_path / "run"
    code, *_ = call(
        capsys, "bench", "--dataset", root, "--models", "tiny-llava", "--samples", 1, "--repeat", 2,
        "--max-new-tokens", 12, "--out", folder, "--json",
    )  # fmt: skip
    assert code == 0
    return folder


def test_an_explanation_is_kept_with_its_run(run: Path, capsys: Capture) -> None:
    (row, *_) = [row for _, row in run_store.read(run).results() if row.phase == "measured"]
    (run / explanations.EXPLANATIONS).write_text("odd\n")
    code, found, told = call(capsys, *ASKED, "--run", run, *SMALL[:-2], "--json")
    assert code == 0
    assert told.splitlines()[-1].startswith("1 of 2 lines of explanations.jsonl cannot be used")
    (stored,) = explanations.read(run)
    (run / explanations.EXPLANATIONS).rename(run / "moved")
    (run / explanations.EXPLANATIONS).symlink_to("gone")
    code, _, error = call(capsys, *ASKED, "--run", run, *SMALL[:-2])
    assert code == 2 and "cannot be read (it is a symbolic link): move this file" in error
    assert len(error.splitlines()) == 1  # before the model is loaded
    assert (stored.model, stored.sample, stored.repeat) == ("tiny-llava", row.sample, 0)
    assert stored.logprob == found["logprob"] and stored.answer == row.text

    for flags, why in (
        (("--split", "time:3"), "--split is that of the run"),
        (("--sample", "id-1"), "has no answer"),
        (("--model", "tiny-eventgpt"), "has no answer of 'tiny-eventgpt'"),
    ):
        code, _, error = call(capsys, *ASKED, "--run", run, *flags)
        assert code == 2 and why in error


def test_another_answer_than_that_of_the_run_is_refused(run: Path, capsys: Capture) -> None:
    lines = [json.loads(line) for line in (run / RESULTS).read_text().splitlines()]
    others = [line | {"token_ids": [9, *line["token_ids"][1:]]} for line in lines]
    (run / RESULTS).write_text("".join(json.dumps(line) + "\n" for line in others))
    code, _, error = call(capsys, *ASKED, "--run", run, *SMALL[:-2])
    assert code == 2 and "otherwise now than in the run" in error.splitlines()[-1]
    assert explanations.read(run) == ()
