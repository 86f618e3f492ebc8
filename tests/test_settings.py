"""Environment over file over default, and what is refused."""

from pathlib import Path

import pytest

from engine import settings
from engine.errors import SettingsError
from engine.models import registry


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*settings.VARIABLES.values(), "STAGESCOPE_SETTINGS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings.toml"
    monkeypatch.setenv("STAGESCOPE_SETTINGS", str(path))
    return path


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "kept"))
    found = settings.load()
    assert found.cache_dir == tmp_path / "stagescope"
    assert found.runs_dir == tmp_path / "kept" / "stagescope"
    assert found.device == "auto" and found.threads >= 1
    assert found.models_file.name == "models.toml" and found.models_file.is_file()


def test_a_cluster_is_named_by_its_address(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("")
    assert settings.load().ray_address == ""
    file.write_text('ray_address = "head:6379"\n')
    assert settings.load().ray_address == "head:6379"
    monkeypatch.setenv("STAGESCOPE_RAY_ADDRESS", " auto ")
    assert settings.load().ray_address == "auto"


def test_environment_over_file_over_default(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('device = "cuda"\nthreads = 1\ndatasets = ["/a", "/b"]\n')
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    found = settings.load()
    assert (found.device, found.threads, found.cache_limit_mb) == ("cpu", 1, 8192)
    assert found.datasets == (Path("/a"), Path("/b"))


def test_cache_dir_moves_cache_and_demo_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path))
    found = settings.load()
    for folder in (found.demo_dir, found.runs_dir):
        assert tmp_path in folder.parents


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("threads = 0", "threads is 0"),
        ("threads = 5000", "threads is 5000"),
        ("cache_limit_mb = 99999999999999", "cache_limit_mb is"),
        ('cache_dir = "~nobody-of-that-name/x"', "'~nobody-of-that-name/x' is not a usable path"),
        ('datasets = ["a\\u0000b"]', "b' is not a usable path .a null character in it"),
        ('datasets = ["' + "x" * 5000 + '"]', "is not a usable path"),
        ("datasets = " + "[" * 5000, "not valid TOML"),
        ('threads = "many"', "threads is 'many'"),
        ("datasets = 7", "datasets is 7"),
        ('devcie = "cpu"', "unknown setting 'devcie'"),
        ("device = ", "not valid TOML"),
        ("threads = inf", "threads is inf"),
        ("threads = nan", "threads is nan"),
        ("threads = 1.5", "threads is 1.5: give a whole number"),
        ("threads = true", "threads is True"),
        ("threads = " + "9" * 5000, "not valid TOML"),
        ("cache_limit_mb = " + "9" * 4000, "cache_limit_mb is a very long number"),
        ('cache_limit_mb = "' + "9" * 4000 + '"', "give a whole number"),
        ("cache_dir = 5", "cache_dir is 5: write it as a text"),
        ("device = [1]", r"device is \[1\]"),
        ("a" * 2**21, "more than the 1,048,576 bytes"),
    ],
)
def test_what_cannot_be_used_is_named(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        settings.load()
    assert len(str(caught.value)) < 400


def test_files_are_looked_for_here_then_in_the_users_folder_then_beside_the_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here, own = tmp_path / "here", tmp_path / "home" / "stagescope"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parent))
    for folder in (here, own):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    assert settings.load().models_file == settings.PROJECT / "models.toml"
    for folder in (own, here):
        (folder / "models.toml").touch()
        (folder / "stagescope.toml").write_text(f'device = "{folder.name}"')
        found = settings.load()
        assert (found.models_file, found.device) == (folder / "models.toml", folder.name)
        assert settings.own_models_file() == folder / "models.toml"


def test_a_wheel_reads_its_models_and_adds_to_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert settings.own_models_file() == settings.PROJECT / "models.toml"  # of a checkout
    monkeypatch.setattr(settings, "INSTALLED", True)
    assert settings.load().models_file == settings.PROJECT / "models.toml"
    assert settings.own_models_file() == tmp_path / "stagescope" / "models.toml"
    gone = next(one for one in registry.entries() if one.name == "eventgpt-7b")
    assert gone.folder == tmp_path / "checkpoints" / "EventGPT-7b"  # nothing is put in a wheel
