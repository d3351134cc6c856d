"""`mind merge-driver` as a program: what it answers git."""

import pytest

from mimo.errors import StorageFailed
from mimo.features.history.merge_driver import main
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.status import status
from mimo.project.trust import Trust
from tests.conftest import git, make_store
from tests.kit import run
from tests.test_cold_start import heavy, imported

BASE = b"---\nid: x\ntype: fact\nconfidence: 0.5\n---\nTea\n"
OURS, THEIRS = BASE.replace(b"0.5", b"0.2"), BASE.replace(b"0.5", b"0.9")


@pytest.fixture
def files(tmp_path):
    names = []
    for name, data in (("O", BASE), ("A", OURS), ("B", THEIRS)):
        (tmp_path / name).write_bytes(data)
        names.append(str(tmp_path / name))
    return names


@pytest.mark.parametrize("path", [".mind/facts/x.md", "services/api/.mind/facts/x.md", None])
def test_a_merge_is_written_to_our_file_and_reported(files, tmp_path, capsys, path):
    assert main([*files, *([path] if path else [])]) == 0
    assert (tmp_path / "A").read_bytes().endswith(b"Tea\n\n## Competing: confidence\n0.9\n")
    assert "conflict of confidence" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path",
    [".mind/values/a/b.md", ".mind/procedures/p@1.md", ".mind/MEMORY.md", ".mind/policy.yaml"],
)
def test_files_without_memories_are_left_to_git(files, tmp_path, path):
    assert main([*files, path]) == 1
    assert (tmp_path / "A").read_bytes() == OURS


@pytest.mark.parametrize("path", [".mind/policy.yaml.md", ".mind/MEMORY.md.txt.md"])
def test_memories_with_names_like_those_of_other_files_are_merged(files, tmp_path, path):
    assert main([*files, path]) == 0
    assert (tmp_path / "A").read_bytes() != OURS


def test_a_project_of_a_later_format_is_left_to_git(files, tmp_path, monkeypatch):
    (make_store(tmp_path) / "config.toml").write_text("format = 2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert main([*files, ".mind/facts/x.md"]) == 1
    assert (tmp_path / "A").read_bytes() == OURS


def test_a_merge_that_cannot_be_approved_is_reported(files, tmp_path, capsys, monkeypatch):
    def fail(*_, **__):
        raise StorageFailed("no space left")

    monkeypatch.setenv("MIND_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Trust, "trusted", lambda *_: True)
    monkeypatch.setattr(Trust, "approve", fail)

    assert main([*files, ".mind/facts/x.md"]) == 0
    assert "could not be approved (no space left)" in capsys.readouterr().err


def test_missing_and_broken_files_are_left_to_git(files, tmp_path):
    (tmp_path / "B").write_bytes(b"---\nid: [\n---\n")
    assert main([*files, ".mind/facts/x.md"]) == 1
    (tmp_path / "B").unlink()
    assert main([*files, ".mind/facts/x.md"]) == 1
    assert (tmp_path / "A").read_bytes() == OURS


def test_a_path_cannot_write_to_the_terminal(files, capsys):
    main([*files, ".mind/facts/\x1b[31mx.md"])
    assert "\x1b" not in capsys.readouterr().err


def test_a_wrong_call_prints_the_usage(capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "Usage: mind merge-driver" in capsys.readouterr().err


def test_it_loads_nothing_that_a_merge_does_not_need(files, tmp_path):
    modules = imported(tmp_path, "merge-driver", *files, ".mind/facts/x.md")
    assert not heavy(modules)
    assert not {"click", "mimo.cli.main", "mimo.mind", "mimo.index"} & modules


def test_status_and_doctor_report_a_missing_driver_and_doctor_installs_it(project, call):
    git(project, "init", "-q")
    assert any("doctor --fix" in warning for warning in status(call).warnings)
    assert ("merging", "warning") in {(check.name, check.verdict) for check in doctor(call).checks}

    mended = doctor(call, fix=True).checks
    assert ("merging", "ok") in {(check.name, check.verdict) for check in mended}

    assert status(call).warnings == ()


def test_doctor_adds_the_lines_that_git_needs(project, call):
    attributes = project / ".mind" / ".gitattributes"
    attributes.write_text("*.md merge=mind\n", encoding="utf-8")
    (project / ".mind" / ".gitignore").write_text("", encoding="utf-8")
    printed = run(call, "doctor", status=None).out
    row = printed[printed.index("warning merging") :]
    assert row.count(".mind/.gitattributes") == row.count(".mind/.gitignore") == 1
    assert "hint: `mind doctor --fix` adds them" in row

    assert "merging" not in {check.name for check in doctor(call, fix=True).checks}

    assert "procedures/** merge=text\n" in attributes.read_text(encoding="utf-8")
