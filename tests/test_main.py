"""The command line: what it prints, on which stream, and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import COMMANDS, main
from engine.quoting import printable
from tests import recordings

ALL = "tiny-eventgpt,tiny-video_llava,tiny-llava"


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    """Two records: one with everything but an MP4, one with event images alone."""
    base = recordings.root(tmp_path / "root", 2)
    index = base / "EventGPT_Instruction_Subset.json"
    records = json.loads(index.read_text())
    del records[1]["video_data"]
    index.write_text(json.dumps(records))
    return base


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any, str]:
    """Exit code, the JSON on standard output (None if there is none), standard error."""
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def compare(capsys: pytest.CaptureFixture[str], root: Path, *more: object) -> tuple[int, Any, str]:
    """Of the first sample with tiny-llava, unless `more` says otherwise."""
    fixed = ("--dataset", root, "--max-new-tokens", 5, "--json")
    usual = ("--sample", "id-0", "--models", "tiny-llava")
    return call(capsys, "compare", *fixed, *usual, *more)


def test_every_command_is_in_the_help_and_found_by_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each alone, as it is imported when it is called, and all of them where none is named."""
    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: python -m engine {name} ")
    for arguments, code in ((["--help"], 0), ([], 2), (["sample"], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    places = [said.index(f"    {name} ") for name in COMMANDS]
    assert places == sorted(places)


def test_an_interrupt_while_modules_are_imported_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_given: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.__main__._parser", interrupted)
    assert main(["models"]) == 130 and capsys.readouterr().err == "Stopped.\n"


def parser_refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_flag_that_cannot_be_read_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser_refusal(capsys, "bench", "--workers", "abc") == (
        "Argument --workers: invalid int value: 'abc': see python -m engine bench --help.\n"
    )


@pytest.mark.parametrize("value", ["9" * 5000, "a b" * 5000, "'" * 5000], ids=lambda one: one[:3])
def test_a_long_value_is_not_repeated_whole(capsys: pytest.CaptureFixture[str], value: str) -> None:
    said = parser_refusal(capsys, "bench", "--workers", value)
    assert len(said) < 600 and said.count("\n") == 1


def test_repeats_take_turns_and_end_with_medians(
    capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    """The first run computes the features, and the others read them: they are not mixed."""
    names = ("tiny-llava", "tiny-eventgpt")
    arguments = ("--models", ",".join(names), "--repeat", 3)
    code, found, _ = compare(capsys, root, *arguments)
    assert code == 0 and [row["model"] for row in found["runs"]] == [*names] * 3
    for name, summary in zip(names, found["medians"], strict=True):
        rows = [row for row in found["runs"] if row["model"] == name]
        total = sorted(row["total_ms"] for row in rows[1:])
        assert (summary["model"], summary["runs"], summary["counted"]) == (name, 3, 2)
        assert summary["times_ms"]["total"] == {
            "middle": total[0], "low": total[0], "high": total[1], "runs": 2,
        }  # fmt: skip
        assert [one["runs"] for one in summary["left_out"]] == [1]
    code, found, _ = compare(capsys, root, *arguments, "--cache", "off")  # control
    assert [summary["counted"] for summary in found["medians"]] == [3, 3]


@pytest.mark.loads
def test_repeats_that_fail_have_no_medians(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    fixed = ("--sample", "id-0", "--repeat", 2)
    code, found, _ = compare(capsys, root, *fixed, "--models", "tiny-lava")
    assert code == 2 and len(found["runs"]) == 2
    assert found["medians"][0]["counted"] == 0 and found["medians"][0]["times_ms"] == {}
    assert (
        main(["compare", "--dataset", str(root), *map(str, fixed), "--models", "tiny-llava"]) == 0
    )
    assert "1 run left out: " in capsys.readouterr().out


def test_the_text_says_what_was_read_before(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    sample = ["--sample", "id-0", "--dataset", str(root), "--max-new-tokens", "5"]
    asked = ["--prompt", "Who?", "--prompt", "Where is it?"]
    assert main(["compare", *sample, "--models", "tiny-llava", *asked]) == 0
    said = capsys.readouterr().out
    assert said.count("from the cache; when computed: ") == said.count("Without cache: ") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sample", "nothing-like-it"), "nothing-like-it"),
        (("--models", ","), "name at least one model"),
        (("--prompt", ""), "question is empty"),
        (("--prompt", "x" * 100_000), "100,000 characters"),
        (("--prompt", "What is <image>?"), "contains <image>"),
        (("--prompt", "bad \udcff byte"), "contains '\\udcff'"),
        (("--temperature", 1e-40), "temperature is 1e-40"),
        (("--max-new-tokens", 0), "max_new_tokens is 0"),
        (("--max-new-tokens", 10**12), "max_new_tokens is 1,000,000,000,000"),
        (("--repeat", 0), "--repeat is 0: choose a number from 1 to 100"),
        (("--dataset", "/no/such/root"), "/no/such/root"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], root: Path, arguments: tuple[str, object], message: str
) -> None:
    code, rows, err = compare(capsys, root, *arguments)
    assert code == 2 and rows is None
    assert message in err and err.strip().count("\n") == 0


@pytest.mark.loads
def test_text_output_has_no_control_characters(
    capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    sample = ["--dataset", str(root), "--sample", "id-0"]
    code = main(["compare", *sample, "--models", ALL, "--max-new-tokens", "60"])
    out, _ = capsys.readouterr()
    assert code == 0 and "tiny-video_llava (decoupled" in out and "unaccounted" in out
    assert all(character.isprintable() or character == "\n" for character in out)
    assert printable("a\x1b[31mb\n") == "a\N{REPLACEMENT CHARACTER}[31mb\n"


def test_samples_say_which_models_can_run(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    code, rows, _ = call(capsys, "samples", "--dataset", root, "--json")
    assert code == 0 and [row["id"] for row in rows] == ["id-0", "id-1"]
    keys = {"id", "sequence", "question", "reference", "problems", "models"}
    assert all(set(row) >= keys for row in rows)
    assert rows[0]["question"] == "What is it?" and rows[0]["reference"] == "A road."
    assert rows[0]["models"] == dict.fromkeys(ALL.split(","))
    assert rows[1]["models"]["tiny-eventgpt"] is None
    assert all(rows[1]["models"][f"tiny-{name}"] for name in ("llava", "video_llava"))


@pytest.mark.loads
def test_real_recordings_run_through_every_model_that_can_take_them(
    capsys: pytest.CaptureFixture[str], real_root: Path, tiny_models: Path
) -> None:
    _, rows, _ = call(capsys, "samples", "--dataset", real_root, "--json")
    able = {row["sequence"]: [m for m, why in row["models"].items() if why is None] for row in rows}
    names = ALL.split(",")
    assert sorted(map(sorted, able.values())) == sorted(map(sorted, [names, names[1:], names[:1]]))
    for row in rows:
        models = ",".join(able[row["sequence"]])
        code, found, _ = compare(capsys, real_root, "--sample", row["id"], "--models", models)
        assert code == 0 and all(answer["new_tokens"] == 5 for answer in found)


@pytest.mark.parametrize("seeds", ["5", "a:b", "9:3", "3:3", "1:9999999999", "3199:900000"])
def test_odd_seeds_are_refused(capsys: pytest.CaptureFixture[str], seeds: str) -> None:
    code, _, err = call(capsys, "demo", "--evaluate", "--seeds", seeds)
    assert code == 2 and f"--seeds is {seeds!r}" in err


@pytest.mark.parametrize("given", [("--seeds", "5:6"), ("--models", "llava-demo")])
def test_options_of_the_evaluation_alone_are_refused(
    capsys: pytest.CaptureFixture[str], given: tuple[str, str]
) -> None:
    code, _, err = call(capsys, "demo", *given)
    assert code == 2 and f"{given[0]} belongs to --evaluate" in err


def test_an_evaluation_of_an_unknown_model_is_refused_before_any_scene_is_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = call(capsys, "demo", "--evaluate", "--models", "llava-dem")
    assert code == 2 and "did you mean 'llava-demo'" in err and "evaluated" not in err
