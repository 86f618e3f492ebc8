"""python -m engine import: one JSON shape, one sentence per bad file, nothing heavy imported."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.published.claims import published_report as imported_report
from engine.published.read import imported_sets, read_bytes
from tests.published.read import synthetic as made

ROOT = Path(__file__).resolve().parents[2]
FILE_KEYS = {"file", "group", "unit", "records", "errors", "status", "models", "acceptance",
             "findings"}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One file of every group."""
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(tmp_path / "runs"))
    base = tmp_path / "results"
    base.mkdir()
    for number, value in enumerate(made.EVERY.values()):
        (base / f"{number}.json").write_bytes(made.to_bytes(value))
    return base


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any, str]:
    code = main(["import", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_the_json_has_the_shape_that_is_promised(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    code, found, err = call(capsys, folder)
    assert code == 0 and err == "" and set(found) == {"files", "claims"}
    assert [file["group"].split()[0] for file in found["files"]] == list(made.EVERY)
    for file in found["files"]:
        assert set(file) >= FILE_KEYS
        for model in file["models"].values():
            keys = {"n", "claimed", "evidence", "stages", "tokens_recorded", "tokens_corrected"}
            assert set(model) >= keys
            for stage in model["stages"].values():
                assert set(stage) >= {"mean", "median", "mean_without_first", "corrected"}
        for finding in file["findings"]:
            assert set(finding) >= {"rule", "severity", "records", "message", "figures"}
    assert [claim["name"] for claim in found["claims"]] == ["overall", "decoding", "loading"]
    assert all(claim["verdict"] and claim["without"] for claim in found["claims"])
    acceptance = found["files"][1]["acceptance"]
    assert acceptance["pairs"] == 4 and acceptance["raw"]["pos_matched"] == 0
    assert acceptance["shuffled_interval"]
    assert acceptance["predicted_speedup_interval"] is None  # four clips are too few


def test_a_bad_file_affects_only_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, found, err = call(capsys, tmp_path)
    assert code == 2 and found is None and "holds no .json file" in err
    for number in range(22):
        (tmp_path / f"{number:02}.json").write_bytes(made.to_bytes(made.failed()))
    (tmp_path / "bad.json").write_bytes(b'{"results": [')
    (tmp_path / "other.json").write_text('{"dataset": 1}')
    code, found, err = call(capsys, tmp_path)
    assert code == 0 and len(found["files"]) == 24 and "20 of 24 files read" in err
    unknown = [file for file in found["files"] if file["status"] == "unknown"]
    assert [file["file"] for file in unknown] == ["bad.json", "other.json"]
    assert all(file["message"] in err for file in unknown) and "keys 'dataset'" in err
    named = (tmp_path / name for name in ("00.json", "bad.json", "none", "long" * 99))
    code, found, err = call(capsys, *named)
    assert code == 2 and [f["status"] for f in found["files"]] == ["failed", *["unknown"] * 3]
    assert err.count("\n") == 3 and "is not JSON" in err and "No such file" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "0"], "--gamma is 0"),
        (["--gamma", "9" * 4000], "--gamma is 9999999999"),
        (["--save", ""], "cannot name a set: use up to 64 letters"),
        (["--save", "a\x1b[31m"], "cannot name a set: use up to 64 letters"),
    ],
)
def test_bad_options_are_one_sentence(
    capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str], message: str
) -> None:
    code, found, err = call(capsys, folder, *arguments)
    assert code == 2 and found is None and message in err and err.strip().count("\n") == 0
    assert "\x1b" not in err and imported_sets.names() == ()


def test_without_a_usable_file_no_claim_is_judged(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("no")
    assert main(["import", str(tmp_path / "bad.json")]) == 2
    assert capsys.readouterr().out.strip() == ""
    assert main(["import", str(folder / "0.json")]) == 0
    assert "EventGPT" in capsys.readouterr().out.splitlines()[0]  # control


def test_what_is_saved_can_be_loaded(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "bad.json").write_text("no")
    files = [folder / name for name in ("0.json", "9.json", "bad.json")]
    code, _, err = call(capsys, *files, "--save", "original")
    assert code == 2 and "Kept 2 files as original" in err
    assert [file.name for file in imported_sets.load("original")] == ["0.json", "9.json"]
    code, _, err = call(capsys, files[0], "--save", "original")
    assert code == 2 and "kept already" in err


def test_the_text_is_readable_and_safe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    failed, uncounted = made.failed(), made.speculation()
    failed["errors"][0]["egpt_error"] = "\x1b[31mred"
    for row in uncounted["results"]:  # counts that cannot be corrected are not known
        row["sd_output_text"] = " ".join(["word"] * 90)
    for number, value in enumerate((failed, made.five(), made.legacy(), uncounted)):
        (tmp_path / f"{number}.json").write_bytes(made.to_bytes(value))
    assert main(["import", str(tmp_path)]) == 0
    out, _ = capsys.readouterr()
    assert "not measured" in out and "error: " in out and "\x1b" not in out
    assert re.search(r" tokens +\d+ +617 ", out)
    assert re.search(r"^ .*\(sd\) +tokens .* –$", out, re.MULTILINE)


class Page(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hostile() -> Any:
    rows = made.flat()
    sign = "<script>alert(1)</script>|`*[x](http://e)"
    for row in rows:
        row |= {"id": sign, "egpt": (sign + " ") * 20}
    return read_bytes("<img src=x onerror=y>.json", made.to_bytes(rows))


@pytest.mark.parametrize(("kind", "start"), [("md", "# What"), ("html", "<!doctype html>")])
def test_the_report_answers_its_three_questions(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, kind: str, start: str
) -> None:
    for name in ("0.json", "3.json", "7.json", "8.json"):
        (folder / name).unlink()
    (folder / "bad.json").write_text("no")
    path = tmp_path / "report"
    arguments = ["report", "--imported", str(folder), "--format", kind, "--out", str(path)]
    assert main(arguments) == 0
    err = capsys.readouterr().err
    assert "Written" in err and "bad.json is not JSON" in err
    text = path.read_text(encoding="utf-8")
    assert text.startswith(start)
    if kind == "html":
        page = Page(text)
        assert page.tags.count("h2") == 4 and "table" in page.tags
        assert not {"script", "img", "link", "iframe", "a"} & set(page.tags)
        text = " ".join(page.texts)
    for words in ("What was claimed", "3.3x faster overall", "What the files show", "shuffled",
                  "Parts of a difference", "What cannot be known", "has a wrong label",
                  "not measured", "bad"):  # fmt: skip
        assert words in text, words


def report(*values: Any) -> str:
    files = [read_bytes(f"{n}.json", made.to_bytes(value)) for n, value in enumerate(values)]
    return imported_report.document(files, "md")


def test_what_is_known_is_not_among_the_unknowns() -> None:
    told = {name: report(value) for name, value in made.EVERY.items() if name not in "FGZ"}
    told |= {"F1": report(made.pairs("F1")), "F2": report(made.pairs("F2"))}
    equal = "Whether the answers equal those of generate()"
    assert equal in told["A"] and equal not in told["D"]
    assert "EventGPT's cannot, because it got one event image" in told["D"]
    unknown = {name for name, text in told.items() if "The time of the vision tower" in text}
    assert unknown == {"A", "D", "E", "F1", "H"}
    assert "prefill + vision +222.0" in told["D"]
    assert "Time per token over the N - 1 tokens after the first" in told["D"]


def test_the_parts_of_a_difference_add_up_in_print() -> None:
    value = made.flat()
    for row in value:
        row["llava_time"] += 0.0013
    text = report(value)
    assert "unaccounted +1.3" in text and "LLaVA-1.5 2,301.3" in text
    assert "Time per token over all N tokens: 0.json." in text


def test_texts_of_a_file_stay_text_in_a_report() -> None:
    page = imported_report.document([hostile()], "html")
    assert not {"script", "img"} & set(Page(page).tags) and "&lt;script&gt;" in page
    text = imported_report.document([hostile()], "md")
    assert "<script" not in text and "<img" not in text and "\\](http" in text
    assert not re.search(r"(?<!\\)\]\(", text)


def test_a_report_of_nothing_says_so() -> None:
    text = imported_report.document([read_bytes("x.json", b"17")], "md")
    assert "1 that cannot be used" in text and text.count("so there is no evidence") == 3


def test_a_report_takes_files_and_kept_sets_together(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    imported_sets.save("kept", [("of-the-set.json", made.to_bytes(made.flat()))])
    assert main(["report", "--imported", "kept", str(folder / "9.json")]) == 0
    out, err = capsys.readouterr()
    assert "2 files: 1 with results, 1 of a failed run" in out and err == ""
    assert "of-the-set.json" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name either runs, or published files after --imported, or a folder"),
        (["run", "--imported", "x"], "Name either runs, or published files after --imported"),
        (["--imported", "x", "--format", "csv"], "--format csv is for runs"),
        (["--imported", "/no/such/x.json"], "x.json is not a file, a folder or a kept set"),
        (["--imported", "x" * 5000], "or a kept set"),
        (["--imported", "{folder}/9.json", "--out", "/no/such/folder/x.md"], "cannot be written"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_sentence(
    capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str], message: str
) -> None:
    code = main(["report", *(one.format(folder=folder) for one in arguments)])
    err = capsys.readouterr().err
    assert code == 2 and message in err and err.count("\n") == 1


@pytest.mark.loads
def test_nothing_heavy_is_imported(folder: Path) -> None:
    """Neither torch nor pandas for an import with audit and acceptance, or for a report."""
    arguments = [str(folder), str(folder.parent / "r.html")]
    code = (
        "import sys; from engine.__main__ import main; main(['import', sys.argv[1], '--json']); "
        "main(['report', '--imported', sys.argv[1], '--out', sys.argv[2]]); "
        "print([m for m in ('torch', 'pandas', 'transformers', 'streamlit') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip().splitlines()[-1] == "[]"
