"""The flags of `draft` that choose what is shown of a recording."""

import argparse
from pathlib import Path

import pytest

from engine.cli import studies
from engine.errors import BadInput
from engine.media_options import Split, window
from engine.pipeline.drafts import DraftRequest


def _asked(monkeypatch: pytest.MonkeyPatch, root: Path, *flags: str) -> DraftRequest:
    """The request of a command line; nothing is drafted."""
    made = list[DraftRequest]()

    class Stop(Exception): ...

    def noted(request: DraftRequest, tell: object) -> None:
        made.append(request)
        raise Stop

    monkeypatch.setattr(studies, "DraftJob", noted)
    parser = argparse.ArgumentParser()
    studies.add(parser.add_subparsers())
    usual = ("draft", "record-1", "--dataset", str(root), "--target", "a", "--draft", "lookup")
    options = parser.parse_args([*usual, *flags])
    with pytest.raises(Stop):
        options.run(options)
    return made[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "EventGPT_Instruction_Subset.json").write_text('[{"event_data": "a.npy"}]')
    return tmp_path


def test_window_and_split_reach_the_request(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    asked = _asked(monkeypatch, root, "--window", "1.25s+50ms", "--split", "time:8")
    assert (asked.window, asked.split) == (window("1.25s+50ms"), Split("time", 8))
    usual = _asked(monkeypatch, root)  # control
    assert (usual.window, usual.split, usual.extent) == (None, Split(), "slice")


def test_a_text_that_is_no_window_is_refused(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    with pytest.raises(BadInput, match="The window is 'soon'"):
        _asked(monkeypatch, root, "--window", "soon")
