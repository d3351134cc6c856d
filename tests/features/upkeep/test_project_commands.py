"""`mind init`, `trust`, `status`, `doctor` and `config`."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.data import disk
from mimo.errors import Invalid, LaterFormat
from mimo.features.notes.commands import add
from mimo.features.upkeep.checks import Verdict, doctor
from mimo.features.upkeep.commands import config, init
from mimo.mind import Mind
from tests.conftest import git
from tests.kit import with_console


@pytest.fixture
def nowhere(home: Path) -> Call:
    """A memory without a project."""
    return Call(Mind(home=home, project=None, environ={}))


class TestInit:
    def test_init_inside_another_project_asks_the_user(self, nowhere, project):
        inner = project / "packages" / "api"
        inner.mkdir(parents=True)

        with pytest.raises(Invalid, match="inside the project") as raised:
            init(nowhere, str(inner))
        assert f"`mind init {inner} --nested`" in raised.value.hint
        nowhere = with_console(nowhere, ask=lambda *_: "no")
        with pytest.raises(Invalid):
            init(nowhere, str(inner))
        assert not (inner / ".mind").exists()

        nowhere = with_console(nowhere, ask=lambda *_: "yes")
        assert init(nowhere, str(inner)).created
        nowhere = with_console(nowhere, ask=None)
        assert not init(nowhere, str(inner)).created  # It is one already: nothing to ask.
        (other := project / "packages" / "web").mkdir()
        assert init(nowhere, str(other), nested=True).created

    @pytest.mark.parametrize(("answer", "zone"), [("yes", "local"), ("no", "UTC"), (None, "UTC")])
    def test_init_offers_the_zone_of_the_computer(
        self, nowhere, tmp_path, monkeypatch, answer, zone
    ):
        asked = []
        monkeypatch.setattr("mimo.zones.system_name", lambda _: "Europe/Berlin")

        def ask(question, _):
            asked.append(question.text)
            return answer

        nowhere = with_console(nowhere, ask=ask)
        for name in ("blog", "shop"):
            (tmp_path / name).mkdir(exist_ok=True)
            init(Call(nowhere.mind.reopened(), console=nowhere.console), str(tmp_path / name))

        assert asked[0] == "Times are shown in UTC. Show them in local time (Europe/Berlin)?"
        assert len(asked) == (2 if answer is None else 1)
        assert nowhere.mind.reopened().config["time.zone"] == zone

    @pytest.mark.parametrize("ask", [None, lambda *_: pytest.fail("it asked")])
    def test_init_does_not_ask_for_a_zone_without_need(self, nowhere, tmp_path, monkeypatch, ask):
        name = None if ask else "Europe/Berlin"  # In UTC, or without a terminal.
        monkeypatch.setattr("mimo.zones.system_name", lambda _: name)
        nowhere = with_console(nowhere, ask=ask)
        (tmp_path / "blog").mkdir()

        assert init(nowhere, str(tmp_path / "blog")).created
        assert nowhere.mind.reopened().config.origins["time.zone"] == "default"

    def test_init_is_complete_if_the_zone_can_not_be_stored(self, nowhere, tmp_path, monkeypatch):
        monkeypatch.setattr("mimo.zones.system_name", lambda _: "Europe/Berlin")
        (tmp_path / "settings.toml").write_text("# mine\n", encoding="utf-8")
        nowhere.mind.home.mkdir(exist_ok=True)
        (nowhere.mind.home / "config.toml").symlink_to(tmp_path / "settings.toml")
        nowhere = with_console(nowhere, ask=lambda *_: "yes")
        root = tmp_path / "blog"
        root.mkdir()
        git(root, "init", "-q")

        made = init(Call(nowhere.mind.reopened(), console=nowhere.console), str(root))

        assert "`time.zone` stays as it is" in made.notices[-1]
        assert "mind" in git(root, "config", "merge.mind.driver")


class TestDoctor:
    def test_the_checks_show_their_progress_until_they_end(self, call):
        shown = []
        doctor(with_console(call, progress=lambda *line: shown.append(line)))
        total = shown[-1][-1]
        of_checks = [line for line in shown if line[0] == "Checking"]
        assert of_checks == [("Checking", done, total) for done in range(1, total + 1)]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("---\nId: tea\nType: fact\nmine: 1\n---\none\n", "`Id`, `Type`"),
            ("---\nid: tea\ntags: #hot #leaf\n---\none\n", "its tags are a comment"),
            ("\n---\nid: tea\ntype: fact\n---\none\n", "its header is read as text"),
            ("---\nid:tea\ntype:fact\n---\none\n", "its header is read as text"),
            ("---\nid:\u00a0tea\ntype: fact\n---\none\n", "its header is read as text"),
            ("----\nmine: 1\ntags: [a]\n----\none\n", "its header is read as text"),
            ("---\nid: tea\ntags:  # none yet\nCreator: 1\n---\none\n", None),
            ("one\n\n---\nid: tea\n---\n", None),
            ("---\n\nTags helped.\n\n---\nEnd.\n", None),
        ],
    )
    def test_a_header_that_is_not_read_as_meant_is_named(self, call, text, reason):
        facts = call.mind.folder / "facts"
        facts.mkdir()
        (facts / "tea.md").write_text(text, encoding="utf-8")

        diagnosis = doctor(call)
        warnings = [check for check in diagnosis.checks if check.file]

        assert diagnosis.healthy
        assert [check.verdict for check in warnings] == [Verdict.WARNING] * bool(reason)
        assert not reason or reason in warnings[0].message


class TestConfig:
    def test_approvals_of_a_later_version_keep_only_the_settings_of_the_project(self, call, home):
        add(call, "Tea is at five")
        with closing(sqlite3.connect(home / "trust.db")) as database:
            database.execute("PRAGMA user_version = 3")
        settings = call.mind.folder / "config.toml"
        before = settings.read_bytes()
        for given in ({"value": "5000"}, {"unset": True}):
            with pytest.raises(LaterFormat, match="has format 3"):
                config(call, "context.budget", **given)
        assert settings.read_bytes() == before
        assert config(call, "context.budget", "5000", user=True).settings[0].origin == "user"

    @pytest.mark.parametrize("user", [True, False])
    def test_two_processes_lose_no_setting(self, call, monkeypatch, user):
        read, started = disk.read, list[threading.Thread]()

        def slowly(path, *given, **options):
            data = read(path, *given, **options)
            if path.name == "config.toml" and given == () and "limit" in options and not started:
                words = (Call(call.mind.reopened()), "decay.floor", "0.06")
                started.append(threading.Thread(target=config, args=words, kwargs={"user": user}))
                started[0].start()
                started[0].join(0.5)  # Unless it waits for us.
            return data

        config(call, "decay.floor", "0.04", user=user)
        monkeypatch.setattr(disk, "read", slowly)
        config(call, "decay.rate", "0.02", user=user)
        started[0].join()

        changed = call.mind.reopened().config
        assert (changed["decay.rate"], changed["decay.floor"]) == (0.02, 0.06)
