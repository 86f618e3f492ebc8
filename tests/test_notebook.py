"""The notebook of the documentation runs from its first cell to its last."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.settings import PROJECT

RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=600).execute()
nbformat.write(notebook, sys.argv[2])
"""


@pytest.mark.slow
def test_every_cell_runs_and_what_is_saved_opens(tmp_path: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("STAGESCOPE")}
    variables = own | {"HOME": str(tmp_path), "PYTHONPATH": str(PROJECT), "XDG_DATA_HOME": ""}
    done = tmp_path / "done.ipynb"
    command = [sys.executable, "-c", RUN, str(PROJECT / "docs" / "notebook.ipynb"), str(done)]
    subprocess.run(command, cwd=tmp_path, env=variables, check=True)
    cells = [cell for cell in json.loads(done.read_text())["cells"] if cell["cell_type"] == "code"]
    shown = [_shown(cell) for cell in cells]
    assert "llava-demo" in shown[0] and "Verdict: " in shown[1] and "<svg" in shown[1]
    assert "vision" in shown[2] and "truck" in shown[3] and "This image" in shown[4]
    assert "<img" in shown[5] and "scene_" not in shown[6] and "<svg" in shown[7]
    assert "'llava-demo': True" in shown[8] and shown[9].strip() == "True"
    assert shown[10].startswith("temperature is 9")
    assert len(list((tmp_path / ".local/share/stagescope").glob("*/run.json"))) == 2


def _shown(cell: dict[str, Any]) -> str:
    """What a cell shows, without its progress."""
    outputs = [one for one in cell["outputs"] if one.get("name") != "stderr"]
    parts = [
        one.get("text") or one["data"].get("text/html") or one["data"]["text/plain"]
        for one in outputs
        if "text/html" in one.get("data", {}) or "widget" not in str(one)
    ]
    return "".join("".join(part) for part in parts)
