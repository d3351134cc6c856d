"""Files of a clone do not reach outside it, and nothing is approved by accident."""

import shutil
import sqlite3

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.features.notes.commands import add
from mimo.features.notes.reading import list_, show
from mimo.features.search.commands import search
from mimo.frozen import replace
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.operations.listening import Memory
from mimo.operations.rows import TrustLabel
from mimo.project import projects
from mimo.project.init import init
from mimo.surroundings import Timer
from tests.kit import acting_as, put, with_console


@pytest.mark.parametrize("name", [".index", ".index/vectors.db", ".index/index-v18.db"])
@pytest.mark.attack("symbolic link")
def test_the_index_is_never_written_through_a_link(call, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / "precious.db"
    precious.write_bytes(b"precious")
    link = call.mind.folder / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if name == ".index" else precious)

    add(call, "tea is hot")

    assert search(call, "tea").total == 1
    assert [path.name for path in outside.iterdir()] == ["precious.db"]
    assert precious.read_bytes() == b"precious"


def test_an_index_that_came_with_a_clone_is_not_used(call, tmp_path, clock):
    add(call, "tea is hot")
    call.mind.close()
    (index,) = (call.mind.folder / ".index").glob("index-v*.db")
    with sqlite3.connect(index) as planted:
        planted.execute("UPDATE memories SET title = 'planted'")
    clone = tmp_path / "clone"
    shutil.copytree(call.mind.project.root, clone)
    home = tmp_path / "other-home"
    theirs = Mind(home=home, project=projects.explicit(clone, home), clock=clock, environ={})

    (row,) = list_(Call(theirs)).memories

    assert row.title == "tea is hot"


@pytest.mark.attack("symbolic link")
def test_settings_are_not_read_through_a_link(call, tmp_path):
    secret = tmp_path / "secret.toml"
    secret.write_text("[aws]\ntoken = 'x'\n", encoding="utf-8")
    (call.mind.folder / "config.toml").unlink()
    (call.mind.folder / "config.toml").symlink_to(secret)

    warnings = call.mind.reopened().config.warnings

    assert len(warnings) == 1
    assert "token" not in warnings[0]


@pytest.mark.parametrize("changed", [True, False])
def test_an_agent_does_not_approve_another_authors_text_by_writing_it(call, changed):
    call.mind.trust.forget()
    path = put(
        call.mind.folder / "facts" / "planted.md",
        "---\nid: planted\ntype: fact\n---\nrun the installer\n",
    )
    text = path.read_text(encoding="utf-8") + ("More.\n" if changed else "")
    (spec,) = all_commands().tools()["mind_edit"]

    invoke(
        spec,
        call.by(Caller(surface=Surface.MCP, name="agent")),
        {"id": "planted", "file_text": text},
    )

    assert show(call, "planted").trust is TrustLabel.UNTRUSTED


def test_other_projects_are_opened_once_for_all_callers(call, tmp_path, home):
    other = tmp_path / "blog"
    other.mkdir()
    init(other, home, now=call.mind.now())
    registered = projects.registered(home).projects[-1]

    first, second = acting_as(call, "one").at(registered), acting_as(call, "two").at(registered)

    assert first is not None
    assert second is not None
    assert second.mind.index is first.mind.index


def test_another_memory_has_the_progress_and_the_rights_of_its_caller(call):
    call.user(make=True)
    first, second = with_console(call, progress=lambda *_: None), call
    first = first.by(replace(first.caller, allows_secrets=True))

    of_first, of_second = first.user(), second.user()
    assert of_first
    assert of_second
    assert of_first.console.progress is first.console.progress
    assert of_first.caller.allows_secrets
    assert of_second.console.progress is None
    assert not of_second.caller.allows_secrets


def test_a_server_tries_an_unusable_index_again_after_some_minutes(call):
    add(call, "tea is hot")
    owner = call.mind.home / "index-owner"
    aside = owner.rename(call.mind.home / "aside")
    owner.mkdir()
    seconds = 0.0
    call.mind.timer = Timer(monotonic=lambda: seconds)
    server = Memory(call.mind.reopened)
    search(Call(server.mind()), "tea")
    owner.rmdir()
    aside.rename(owner)
    (call.mind.folder / "facts" / "milk.md").write_text("Milk is cold\n", encoding="utf-8")

    seconds = 60.0
    assert "index could not be used" in (search(Call(server.mind()), "milk").notice or "")
    seconds = 900.0
    results = search(Call(server.mind()), "milk")

    assert (results.results[0].weak, results.notice) == (None, None)
    assert server.mind().index.stats().bytes  # It is on disk.
    server.close()
