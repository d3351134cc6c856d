"""Nothing outside of the sandbox is read: not by `..`, not by a link, not by a race."""

import os
import socket

import pytest

from mimo.errors import FileTooLarge, Invalid, NotFound, SandboxViolation
from mimo.store.sandbox import Entry, Sandbox, Sort


@pytest.fixture
def box(tmp_path):
    box = tmp_path / "box"
    (box / "docs").mkdir(parents=True)
    (box / "docs" / "a.md").write_text("words")
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "box-evil").mkdir()
    (tmp_path / "box-evil" / "b.md").write_text("evil")
    return box


@pytest.mark.req("000-90")
@pytest.mark.req("000-94")
@pytest.mark.parametrize(
    "name",
    [
        "../secret.md",
        "docs/../../secret.md",
        "../box-evil/b.md",
        "..",
        "/etc/passwd",
        "/",
        "../missing.md",
        "docs/../../box-evil/*.md",
    ],
)
def test_a_name_that_leads_out_is_refused_whether_there_is_something_or_not(box, name):
    with pytest.raises(SandboxViolation) as error:
        Sandbox(box, box).locate(name)
    assert error.value.exit_status == 5
    assert error.value.details["sandbox"] == str(box)


@pytest.mark.parametrize(
    "name", ["docs/a.md", "./docs/a.md", "docs/../docs/a.md", "../box/docs/a.md"]
)
def test_a_name_within_is_read(box, name):
    sandbox = Sandbox(box, box)
    assert sandbox.read(sandbox.locate(name), 100) == b"words"
    assert sandbox.locate(str(box / name)) == box / "docs" / "a.md"


@pytest.mark.req("000-90")
@pytest.mark.attack("symbolic link")
def test_no_link_is_followed_wherever_it_leads(box, tmp_path):
    (box / "out.md").symlink_to(tmp_path / "secret.md")
    (box / "in.md").symlink_to(box / "docs" / "a.md")
    (box / "folder").symlink_to(tmp_path)
    (box / "dangling.md").symlink_to(tmp_path / "nothing")
    sandbox = Sandbox(box, box)
    for name in ("out.md", "in.md", "folder/secret.md", "dangling.md", "folder/x/y.md"):
        with pytest.raises(SandboxViolation, match="symbolic link"):
            sandbox.read(sandbox.locate(name), 100)
    with pytest.raises(SandboxViolation, match="symbolic link"):
        sandbox.listed(sandbox.locate("folder"))


@pytest.mark.req("000-90")
@pytest.mark.attack("symbolic link")
def test_a_link_that_takes_a_folder_s_place_after_the_check_leads_nowhere(box, tmp_path):
    sandbox = Sandbox(box, box)
    path = sandbox.locate("docs/a.md")
    assert sandbox.sort(path) is Sort.FILE
    (box / "docs").rename(box / "old")
    (tmp_path / "a.md").write_text("secret")
    (box / "docs").symlink_to(tmp_path)
    with pytest.raises(SandboxViolation):
        sandbox.read(path, 100)


def test_a_sandbox_may_be_named_through_a_link(box, tmp_path):
    (tmp_path / "link").symlink_to(box)
    sandbox = Sandbox(tmp_path / "link", tmp_path / "link")
    for name in ("docs/a.md", str(tmp_path / "link" / "docs/a.md"), str(box / "docs/a.md")):
        assert sandbox.read(sandbox.locate(name), 100) == b"words"


@pytest.mark.attack("symbolic link")
def test_a_person_may_name_any_file_but_no_link(box, tmp_path):
    (tmp_path / "linked").symlink_to(box)
    (tmp_path / "one.md").symlink_to(tmp_path / "secret.md")
    sandbox = Sandbox(None, box)
    assert sandbox.read(sandbox.locate("../secret.md"), 100) == b"secret"
    assert sandbox.locate("../linked/docs/a.md") == box / "docs" / "a.md"
    assert sandbox.locate("..") == tmp_path
    assert sandbox.locate("docs/..") == box
    with pytest.raises(Invalid, match="symbolic link"):
        sandbox.read(sandbox.locate("../one.md"), 100)


@pytest.mark.req("000-88")
def test_a_file_that_is_too_large_is_not_read(box):
    sandbox = Sandbox(box, box)
    path = sandbox.locate("docs/a.md")
    assert sandbox.read(path, 5) == b"words"
    with pytest.raises(FileTooLarge) as error:
        sandbox.read(path, 4)
    assert error.value.message == "File too large: 5 bytes (max: 4 bytes)"


def test_what_is_no_regular_file_is_refused_at_once(box):
    os.mkfifo(box / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(box / "s"))
        sandbox = Sandbox(box, box)
        for name in ("pipe", "docs"):
            with pytest.raises(Invalid, match="not a regular file"):
                sandbox.read(sandbox.locate(name), 100)
        assert [entry for entry in sandbox.listed(box) if entry.sort is Sort.OTHER] == [
            Entry("pipe", Sort.OTHER),
            Entry("s", Sort.OTHER),
        ]


def test_what_is_not_there_is_said_so(box):
    sandbox = Sandbox(box, box)
    assert sandbox.sort(sandbox.locate("docs/none.md")) is None
    assert sandbox.sort(sandbox.locate("docs/a.md/none.md")) is None
    with pytest.raises(NotFound):
        sandbox.read(sandbox.locate("docs/none.md"), 100)
    for name in ("", "a\0b"):
        with pytest.raises(Invalid):
            sandbox.locate(name)
