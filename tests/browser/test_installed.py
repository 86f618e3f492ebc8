"""The wheel, installed where no checkout is: its commands, and its app with its checks."""

import http.server
import os
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import ROOT, Visitor, serve, visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ATTACK = """<iframe src="{0}"></iframe><script>
const socket = new WebSocket("{0}_stcore/stream".replace("http", "ws"), ["streamlit"]);
socket.onopen = () => document.title = "open";
socket.onclose = () => document.title ||= "closed";
</script>"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment's commands: this one's libraries, and the wheel."""
    made = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(made)]
    subprocess.run([*pip, *build, str(ROOT)], check=True)
    (wheel,) = made.glob("stagescope-*.whl")
    venv.create(made / "env", symlinks=True)
    packages = sysconfig.get_path("purelib", "venv", {"base": str(made / "env")})
    # Named so, and not with .pth files of its own, which lead to the checkout.
    (Path(packages) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, "--python", str(made / "env"), *install], check=True)
    return Path(sysconfig.get_path("scripts", "venv", {"base": str(made / "env")}))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is also the home of who starts something there."""
    for name in [name for name in os.environ if name.startswith(("STAGESCOPE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_commands_answer_verify_and_write_nothing_beside_the_code(
    commands: Path, home: Path
) -> None:
    (folder,) = commands.parent.glob("lib/*/site-packages/stagescope")
    before, line = files(folder), "--models llava-demo --max-new-tokens 8"
    assert {path.name for path in folder.parent.iterdir()} == {
        "stagescope", "stagescope-0.1.0.dist-info", "libraries.pth"}  # fmt: skip

    def run(arguments: str) -> str:
        command = [str(commands / "stagescope"), *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    said = run(f"compare --sample scene_200002 {line}")
    assert "This image was taken" in said and "`stagescope verify --models llava-demo" in said
    assert "llava-demo: verified" in run(f"verify --samples 1 {line}")
    demo = "engine/demo/checkpoints/llava"
    run(f"models add {folder / demo} --name again --label Again")
    assert '[[model]]\nname = "again"' in (home / ".config/stagescope/models.toml").read_text()
    assert {"again", "llava-demo"} <= {line.split()[0] for line in run("models").splitlines()}
    assert "This image was taken" in run("compare --sample scene_200002 --models llava-demo,again")
    (home / "models.toml").write_text(f'[[model]]\nname = "one"\ncheckpoint = "{demo}"\n'
                                      'dtype = "float32"\n')  # fmt: skip
    assert [line.split()[0] for line in run("models").splitlines()] == ["one"]
    assert files(folder) == before


def test_another_package_named_engine_is_refused(commands: Path, home: Path) -> None:
    (home / "engine.py").write_text("")
    code = "import engine\nimport stagescope"
    done = subprocess.run([str(commands / "python"), "-c", code], capture_output=True, text=True)
    assert f"another package named engine ({home / 'engine.py'})" in done.stderr


@pytest.fixture
def installed(commands: Path, home: Path) -> Iterator[str]:
    yield from serve(home, {}, 0, [str(commands / "stagescope"), "app", "--port"], home)


@pytest.fixture
def elsewhere(home: Path) -> Iterator[int]:
    """The port of another server on this machine, which shows what is in the folder."""
    folder = home / "pages"
    folder.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_its_app_answers_and_no_other_page_opens_its_socket_or_frames_it(
    installed: str, server: str, elsewhere: int, home: Path, visitor: Visitor, other: Page
) -> None:
    page = visit(visitor.page.context, installed).open()
    page.run()
    assert all(answer.strip() for answer in page.answers()) and not page.outside

    for address, outcome in ((installed, "closed"), (server, "open")):  # the control
        name = f"{outcome}.html"  # one name, changed within a second, would come from the cache
        (home / "pages" / name).write_text(ATTACK.format(address))
        for host in ("127.0.0.1", "localhost"):
            other.goto(f"http://{host}:{elsewhere}/{name}")
            other.wait_for_function("document.title")
            assert other.title() == outcome
            (frame,) = other.frames[1:]
            assert ("Streamlit" in frame.content()) == (outcome == "open")
