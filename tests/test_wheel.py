"""The built wheel, installed into an empty environment."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = {
    "mimo/completions/mind.bash": "share/bash-completion/completions/mind",
    "mimo/completions/_mind": "share/zsh/site-functions/_mind",
    "mimo/completions/mind.fish": "share/fish/vendor_completions.d/mind.fish",
    "man/mind.1": "share/man/man1/mind.1",
    "man/mind-search.1": "share/man/man1/mind-search.1",
}


def run(*argv: object, cwd: Path, **env: str) -> str:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env={**own, **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds its dependencies in the one of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    hatch = "from hatchling.build import build_wheel; print(build_wheel('{}'))"
    name = run(sys.executable, "-c", hatch.format(folder), cwd=ROOT).splitlines()[-1]
    made = folder / "environment"
    venv.create(made)
    uv = Path(sys.executable).with_name("uv")
    wheel = folder / name
    install = (uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-cache")
    run(*install, "--python", made / "bin" / "python", wheel, cwd=folder)
    own = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(made / "bin" / "python", "-c", own, cwd=folder).strip())
    dependencies = run(sys.executable, "-c", own, cwd=folder)
    (packages / "dependencies.pth").write_text(dependencies, encoding="utf-8")
    wheel.unlink()
    return made


def test_a_wheel_brings_man_pages_and_completions(environment: Path) -> None:
    for source, place in SHARED.items():
        assert (environment / place).read_bytes() == (ROOT / source).read_bytes()
    pages = {path.name for path in (environment / "share/man/man1").iterdir()}
    assert pages == {path.name for path in (ROOT / "man").iterdir()}


def test_the_program_of_a_wheel_works(environment: Path, tmp_path: Path) -> None:
    mind = environment / "bin" / "mind"
    folder = tmp_path / "shop"
    folder.mkdir()

    assert run(mind, "--version", cwd=folder).startswith("mind ")
    scripts = run(mind, "completion", "bash", cwd=folder)
    assert scripts == (ROOT / "mimo/completions/mind.bash").read_text("utf-8")
    where = "import mimo; print(mimo.__file__)"
    assert str(environment) in run(environment / "bin" / "python", "-c", where, cwd=folder)
    assert "FAILED, do not repeat it" in run(mind, "demo", cwd=folder)
