"""The built wheel: the same bytes everywhere, and installed into an empty environment."""

import os
import shutil
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


def built(folder: Path, source: Path = ROOT) -> Path:
    """Builds a wheel into a folder, with the time of a commit as `make dist` does."""
    hatch = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    return (
        folder
        / run(sys.executable, "-c", hatch, cwd=source, SOURCE_DATE_EPOCH="1763900000").splitlines()[
            -1
        ]
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds its dependencies in the one of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    made = folder / "environment"
    venv.create(made)
    uv = Path(sys.executable).with_name("uv")
    install = (uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-cache")
    run(*install, "--python", made / "bin" / "python", wheel, cwd=folder)
    own = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(made / "bin" / "python", "-c", own, cwd=folder).strip())
    dependencies = run(sys.executable, "-c", own, cwd=folder)
    (packages / "dependencies.pth").write_text(dependencies, encoding="utf-8")
    return made


def test_a_copy_with_other_times_and_permissions_makes_the_same_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copyfile(ROOT / name, copy / name)
    for name in ("mimo", "man"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, copy_function=shutil.copyfile, ignore=ignored)
    for path in copy.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_000_000_000, 1_000_000_000))

    again = built(tmp_path, copy)
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


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
