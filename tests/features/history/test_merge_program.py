"""`mind merge-driver` as a program: what it answers git."""

import subprocess

import pytest

from mimo.features.history.merge_driver import main
from mimo.features.upkeep.commands import doctor, status
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
def test_a_merge_is_written_to_ours_and_told(files, tmp_path, capsys, path):
    assert main([*files, *([path] if path else [])]) == 0
    assert (tmp_path / "A").read_bytes().endswith(b"Tea\n\n## Competing: confidence\n0.9\n")
    assert "competing versions of confidence" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", [".mind/values/a/b.md", ".mind/procedures/p@1.md", ".mind/MEMORY.md"]
)
def test_what_is_no_memory_is_left_to_git(files, tmp_path, path):
    assert main([*files, path]) == 1
    assert (tmp_path / "A").read_bytes() == OURS


def test_a_file_that_is_gone_or_broken_is_left_to_git(files, tmp_path):
    (tmp_path / "B").write_bytes(b"---\nid: [\n---\n")
    assert main([*files, ".mind/facts/x.md"]) == 1
    (tmp_path / "B").unlink()
    assert main([*files, ".mind/facts/x.md"]) == 1
    assert (tmp_path / "A").read_bytes() == OURS


def test_a_path_cannot_write_to_the_terminal(files, capsys):
    main([*files, ".mind/facts/\x1b[31mx.md"])
    assert "\x1b" not in capsys.readouterr().err


def test_a_wrong_call_is_told_how_it_is_meant(capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "Usage: mind merge-driver" in capsys.readouterr().err


def test_it_loads_nothing_that_a_merge_does_not_need(files, tmp_path):
    modules = imported(tmp_path, "merge-driver", *files, ".mind/facts/x.md")
    assert not heavy(modules)
    assert not {"click", "mimo.cli.main", "mimo.mind", "mimo.index"} & modules


def test_status_and_doctor_tell_that_a_clone_lacks_it_and_doctor_mends_that(project, mind):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    assert any("doctor --fix" in warning for warning in status(mind).warnings)
    assert ("merging", "warning") in {(one.name, one.verdict) for one in doctor(mind).checks}

    mended = doctor(mind, fix=True).checks
    assert ("merging", "ok") in {(one.name, one.verdict) for one in mended}

    assert status(mind).warnings == ()


def test_doctor_adds_the_lines_that_git_needs(project, mind):
    attributes = project / ".mind" / ".gitattributes"
    attributes.write_text("*.md merge=mind\n", encoding="utf-8")
    (told,) = (check for check in doctor(mind).checks if check.name == "merging")
    assert told.file == ".mind/.gitattributes"
    assert "doctor --fix" in (told.hint or "")

    assert "merging" not in {check.name for check in doctor(mind, fix=True).checks}

    assert "procedures/** merge=text\n" in attributes.read_text(encoding="utf-8")
