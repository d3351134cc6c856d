"""`mind init`, `trust`, `status`, `doctor` and `config`."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.data import disk
from mimo.errors import Invalid, LaterFormat
from mimo.features.ingest.commands import ingest
from mimo.features.notes.commands import add
from mimo.features.review.commands import trust, untrust
from mimo.features.search.commands import search
from mimo.features.upkeep.checks import Verdict, doctor
from mimo.features.upkeep.commands import COMMON, config, init
from mimo.features.upkeep.indexing import index
from mimo.features.upkeep.status import status
from mimo.mind import Mind
from mimo.rendering import PlainScreen
from mimo.rendering.results import show_on
from tests.calls import with_console
from tests.conftest import git


@pytest.fixture
def nowhere(home: Path) -> Call:
    """A memory without a project."""
    return Call(Mind(home=home, project=None, environ={}))


class TestInit:
    @pytest.mark.req("003-36")
    def test_init_makes_a_registered_and_trusted_project(self, nowhere, tmp_path):
        root = tmp_path / "blog"
        root.mkdir()

        made = init(nowhere, str(root))

        assert (made.created, made.trusted, made.name) == (True, True, "blog")
        assert ".mind/config.toml" in made.added
        assert status(nowhere).global_stats.projects_registered == 1

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

    def test_the_home_of_mind_and_a_file_are_no_projects(self, nowhere, project, home):
        with pytest.raises(Invalid, match="mind's own folder"):
            init(nowhere, str(home))
        (project / "notes.txt").write_text("", encoding="utf-8")
        for name in ("notes.txt", "missing"):
            with pytest.raises(Invalid, match="is not a folder"):
                init(nowhere, str(project / name))

    def test_init_refuses_a_home_of_mind(self, nowhere, tmp_path):
        root = tmp_path / "x"
        (root / ".mind").mkdir(parents=True)
        (root / ".mind" / "index-owner").write_text("", encoding="utf-8")

        with pytest.raises(Invalid, match="a home of mind"):
            init(nowhere, str(root))

    def test_a_second_init_changes_nothing(self, nowhere, tmp_path):
        init(nowhere, str(tmp_path))

        again = init(nowhere, str(tmp_path))

        assert (again.created, again.added) == (False, ())

    def test_a_store_that_came_with_a_clone_is_not_trusted(self, nowhere, tmp_path):
        clone = tmp_path / "clone"
        (clone / ".mind" / "facts").mkdir(parents=True)

        made = init(nowhere, str(clone))

        assert (made.created, made.trusted) == (False, False)

    def test_init_suggests_to_include_existing_decision_records(self, nowhere, tmp_path):
        records = tmp_path / "docs" / "adr"
        records.mkdir(parents=True)
        (records / "0001-x.md").write_text("# X\n", encoding="utf-8")

        made = init(nowhere, str(tmp_path))

        assert made.found[0] == "docs/adr"
        assert made.include == ("docs/adr/*.md",)


class TestTrust:
    def test_trust_approves_current_files_only(self, call):
        untrust(call)
        facts = call.mind.folder / "facts"
        facts.mkdir()
        (facts / "one.md").write_text("the first text\n", encoding="utf-8")

        approved = trust(call)
        (facts / "two.md").write_text("the second text\n", encoding="utf-8")

        assert (approved.approved, approved.total) == (1, 1)
        labels = {row.source_file: row.trust for row in search(call, "text").results}
        assert labels == {".mind/facts/one.md": "trusted", ".mind/facts/two.md": "untrusted"}

    def test_trust_follow_approves_later_files(self, call):
        untrust(call)
        trust(call, follow=True)
        (call.mind.folder / "facts").mkdir()
        (call.mind.folder / "facts" / "two.md").write_text("the second text\n", encoding="utf-8")

        assert search(call, "second").results[0].trust == "trusted"

    def test_untrust_revokes_all_approvals(self, call):
        add(call, "tea is hot")

        state = untrust(call)

        assert (state.approved, state.total) == (0, 1)


class TestStatus:
    def test_the_statements_of_a_log_are_memories_of_one_document(self, call, capsys):
        log = "- Decided to use llamas\n- TIL goats climb\n"
        (call.mind.folder / "MEMORY.md").write_text(log, encoding="utf-8")

        screen = PlainScreen()
        show_on(screen, status(call))
        screen.finish(pager=False)

        assert "2 memories read where they are\n" in capsys.readouterr().out

    def test_status_states_how_commits_from_before_the_first_reading_are_approved(
        self, call, project
    ):
        git(project, "init", "-q")
        git(project, "config", "user.email", "me@x.org")
        (call.mind.folder / "facts").mkdir()
        (call.mind.folder / "facts" / "old.md").write_text("tea is hot\n", encoding="utf-8")
        git(project, "add", ".")
        git(project, "commit", "-qm", "before")
        call.mind.trust.forget()
        add(call, "coffee is hot, too")

        trust = to_json(status(Call(call.mind.reopened())))["current_project"]["trust"]

        assert "1 of 2 files are trusted" in trust
        assert "your new commits here as me@x.org are trusted" in trust
        assert "`mind trust --mine`" in trust

    @pytest.mark.req("003-26", "003-27", "003-32", "003-42")
    def test_status_works_without_project_and_daemon(self, nowhere):
        answer = to_json(status(nowhere))

        assert answer["current_project"] is None
        assert answer["daemon"] == {
            "running": False,
            "pid": None,
            "uptime_seconds": None,
            "projects_watching": 0,
            "last_index": None,
            "start": "mind daemon start",
        }

    @pytest.mark.req("003-28", "003-29", "003-30", "003-31", "003-37", "003-44")
    def test_status_counts_the_current_project(self, call, clock):
        (call.mind.project.root / "pyproject.toml").write_text("", encoding="utf-8")
        add(call, "use JWT", type="decision")
        add(call, "uploads fail", type="issue")
        clock.forward(hours=2)
        add(call, "proxies cut bodies", type="learning")

        project = to_json(status(call))["current_project"]

        assert (project["name"], project["stack"]) == ("shop", ["python"])
        assert project["memory_health"] == "good"
        assert project["stats"] == {
            "decisions": 1,
            "issues_open": 1,
            "issues_resolved": 0,
            "learnings": 1,
            "edges": 0,
            "sessions_inferred": 2,
        }
        assert to_json(status(call))["global_stats"]["total_memories"] == 3

    @pytest.mark.req("003-29")
    def test_memory_without_changes_for_two_weeks_is_stale(self, call, clock):
        assert to_json(status(call))["current_project"]["memory_health"] == "empty"
        add(call, "tea is hot")
        clock.forward(days=15)

        assert to_json(status(call))["current_project"]["memory_health"] == "stale"


class TestDoctor:
    def test_a_project_without_faults_is_healthy(self, call):
        add(call, "tea is hot")

        diagnosis = doctor(call)

        assert diagnosis.healthy
        assert {check.verdict for check in diagnosis.checks} == {Verdict.OK}

    @pytest.mark.parametrize(
        ("place", "reason", "remedy"),
        [
            ("{folder}/missing", "does not exist", "docs/encoders.md"),
            ("{folder}/empty", "has no modules.json", "docs/encoders.md"),
            ("http://127.0.0.1:9/v1", "gives no answer", "docs/encoders.md"),
            (
                "http://gpu.example.org/v1",
                "another machine",
                "embedding.other_host gpu.example.org",
            ),
        ],
    )
    def test_an_encoder_that_cannot_be_used_is_a_warning(
        self, call, tmp_path, place, reason, remedy
    ):
        (tmp_path / "empty").mkdir()
        add(call, "tea is hot")
        config(call, "embedding.encoder", place.format(folder=tmp_path))

        diagnosis = doctor(Call(call.mind.reopened()))

        assert diagnosis.healthy
        (check,) = (check for check in diagnosis.checks if check.name == "encoder")
        assert check.verdict is Verdict.WARNING
        assert reason in check.message
        assert remedy in (check.hint or "")
        warned = any(reason in warning for warning in status(Call(call.mind.reopened())).warnings)
        assert warned is (reason != "gives no answer")  # The server is not asked by `mind status`.
        notice = index(Call(call.mind.reopened())).notice or ""
        assert reason in notice
        assert remedy in notice

    def test_the_encoder_is_named(self, call):
        for value, name in (("on", "multilingual-e5-small"), ("off", "off")):
            config(call, "embedding.encoder", value)
            (check,) = (
                each for each in doctor(Call(call.mind.reopened())).checks if each.name == "encoder"
            )
            assert check.verdict is Verdict.OK
            assert name in check.message

    def test_a_fault_has_its_file_and_line(self, call):
        facts = call.mind.folder / "facts"
        facts.mkdir()
        (facts / "broken.md").write_text("---\na: 1\nb: [open\n---\nx\n", encoding="utf-8")
        (facts / "lost.md").write_text("see [[nowhere]]\n", encoding="utf-8")

        diagnosis = doctor(call)

        assert not diagnosis.healthy
        fault = next(check for check in diagnosis.checks if check.verdict is Verdict.FAULT)
        assert (fault.file, fault.line) == (".mind/facts/broken.md", 4)
        assert any("nowhere" in check.message for check in diagnosis.checks)

    def test_a_duplicate_id_is_reported(self, call):
        facts = call.mind.folder / "facts"
        facts.mkdir()
        (facts / "tea.md").write_text("---\nid: tea\ntype: fact\n---\none\n", encoding="utf-8")
        (facts / "copy.md").write_text("---\nid: tea\ntype: fact\n---\ntwo\n", encoding="utf-8")

        named = [check.file for check in doctor(call).checks if check.file]

        assert named == [".mind/facts/copy.md"]

    def test_a_memory_with_the_id_of_an_ingested_file_is_reported(self, call, project):
        (project / "guide.md").write_text("# Guide\n\nRun make install.\n", encoding="utf-8")
        source = ingest(call, str(project / "guide.md")).source_id
        path = project / ".mind" / "facts" / "tea.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\nid: {source}\ntype: fact\n---\none\n", encoding="utf-8")

        (check,) = (check for check in doctor(call).checks if check.name == "sources")

        assert (check.verdict, check.file) == (Verdict.WARNING, ".mind/facts/tea.md")
        assert check.message.startswith("its id is that of an ingested file, too")

    def test_a_header_with_values_of_no_meaning_is_named(self, call):
        facts = call.mind.folder / "facts"
        facts.mkdir()
        header = "id: tea\ntype: fact\nlinks:\n  - {too: cup}\nimportance: high\nmine: 1\n"
        (facts / "tea.md").write_text(f"---\n{header}---\none\n", encoding="utf-8")

        diagnosis = doctor(call)
        (check,) = (check for check in diagnosis.checks if check.file)

        assert diagnosis.healthy
        assert check.file == ".mind/facts/tea.md"
        assert check.message.startswith("the value of `links`, `importance` in the header")

    def test_links_that_supersede_without_effect_or_in_a_circle_are_named(self, call):
        folder = call.mind.folder / "decisions"
        folder.mkdir()

        def write(id: str, to: str | None = None) -> None:
            links = f"links:\n  - {{to: {to}, type: supersedes}}\n" if to else ""
            header = f"id: {id}\ntitle: Use {id}\n{links}"
            (folder / f"{id}.md").write_text(f"---\n{header}---\none\n", encoding="utf-8")

        def links() -> list[tuple[str, str]]:
            checks = [check for check in doctor(call).checks if check.name == "links"]
            return [(check.message, check.hint or "") for check in checks]

        for id, to in (("a", "c"), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "Use d")):
            write(id, to)

        assert links() == [
            (
                "e supersedes `Use d` by its title, which has no effect",
                "write the id in its file: `to: d`",
            ),
            (
                "a, b, c supersede each other, so none of them is current",
                "`mind link b a --type supersedes --remove` ends it",
            ),
        ]
        write("b")
        write("e", "d")
        assert links() == [("every link leads to a memory", "")]

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

    def test_a_log_whose_end_is_not_read_is_named(self, call):
        path = call.mind.folder / "MEMORY.md"
        path.write_text("```\nmake\n\n- Decided: Zig over C\n", encoding="utf-8")

        diagnosis = doctor(call)
        (warning,) = (check for check in diagnosis.checks if check.file)

        assert diagnosis.healthy
        assert (warning.file, warning.line) == (".mind/MEMORY.md", 1)
        assert warning.verdict is Verdict.WARNING

        path.write_text("```\nmake\n```\n\n- Decided: Zig over C\n", encoding="utf-8")
        assert not any(check.file for check in doctor(call).checks)

    def test_a_log_of_the_user_whose_end_is_not_read_is_named(self, call):
        user = call.user(make=True)
        path = user.mind.folder / "MEMORY.md"
        path.write_text("- Learned: x\n\n```\n- Decided: Zig over C\n", encoding="utf-8")

        (warning,) = (check for check in doctor(call).checks if check.file)

        assert (warning.name, warning.file, warning.line) == ("user", str(path), 3)

    def test_a_repair_that_fails_stops_no_other(self, call, project):
        git(project, "init", "-q")
        rules = call.mind.folder / ".gitignore"
        rules.unlink()
        rules.symlink_to(project / "elsewhere")

        checks = doctor(call, fix=True).checks

        assert (checks[0].name, checks[0].verdict) == ("repair", Verdict.FAULT)
        assert len(checks) > 3
        assert "mind" in git(project, "config", "merge.mind.driver")

    def test_doctor_without_a_project_suggests_init(self, nowhere):
        assert any("mind init" in (check.hint or "") for check in doctor(nowhere).checks)

    def test_an_unknown_setting_is_a_warning(self, call):
        (call.mind.folder / "config.toml").write_text("format = 1\ncolour = 3\n", encoding="utf-8")

        diagnosis = doctor(Call(call.mind.reopened()))

        assert diagnosis.healthy
        assert any("colour" in check.message for check in diagnosis.checks)


class TestConfig:
    def test_a_changed_setting_keeps_comments(self, call):
        path = call.mind.folder / "config.toml"
        before = path.read_text(encoding="utf-8")

        changed = config(call, "decay.rate", "0.05")

        assert (changed.settings[0].value, changed.settings[0].origin) == (0.05, "project")
        assert path.read_text(encoding="utf-8").startswith(before.rstrip("\n"))

    def test_unset_restores_the_default(self, call):
        config(call, "decay.rate", "0.05")

        assert config(call, "decay.rate", unset=True).settings[0].value == 0.01

    def test_unset_of_a_default_does_not_change_the_file(self, call, home):
        path = call.mind.folder / "config.toml"
        before = path.read_bytes()

        config(call, "decay.rate", unset=True)
        config(call, "mcp.tool_names", unset=True)

        assert path.read_bytes() == before
        assert not (home / "config.toml").exists()

    @pytest.mark.parametrize("words", [(), ("decay.rate", "0.5")])
    def test_unset_takes_a_setting_and_no_value(self, call, words):
        with pytest.raises(Invalid, match="no value"):
            config(call, *words, unset=True)

    @pytest.mark.parametrize("given", ["0.5", None])
    @pytest.mark.parametrize("text", ["decay = 3\n", "[[decay]]\n"])
    def test_a_file_with_another_value_in_place_of_a_table_is_not_changed(self, call, text, given):
        path = call.mind.folder / "config.toml"
        path.write_text(text, encoding="utf-8")

        with pytest.raises(Invalid, match=r"`decay` in .* is not a table"):
            config(call, "decay.rate", given, unset=given is None)

        assert path.read_text(encoding="utf-8") == text

    def test_approvals_of_a_later_version_keep_only_the_settings_of_the_project(self, call, home):
        add(call, "Tea is at five")
        with closing(sqlite3.connect(home / "trust.db")) as database:
            database.execute("PRAGMA user_version = 2")
        settings = call.mind.folder / "config.toml"
        before = settings.read_bytes()
        for given in ({"value": "5000"}, {"unset": True}):
            with pytest.raises(LaterFormat, match="has format 2"):
                config(call, "context.budget", **given)
        assert settings.read_bytes() == before
        assert config(call, "context.budget", "5000", user=True).settings[0].origin == "user"

    def test_a_user_setting_is_written_to_the_users_file(self, call, home):
        config(call, "mcp.tool_names", "slash")

        assert "slash" in (home / "config.toml").read_text(encoding="utf-8")
        with pytest.raises(Invalid, match="setting of the project"):
            config(call, "include", "docs/*.md", user=True)

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

    def test_a_damaged_settings_file_is_not_changed(self, call):
        path = call.mind.folder / "config.toml"
        path.write_text("include = [", encoding="utf-8")

        with pytest.raises(Invalid, match=r"config\.toml"):
            config(call, "decay.rate", "0.05")

        assert path.read_text(encoding="utf-8") == "include = ["

    def test_config_without_a_key_lists_changed_settings_and_five_common_ones(self, call):
        config(call, "decay.rate", "0.05")
        listed = config(Call(call.mind.reopened()))

        assert [row.key for row in listed.settings if row.origin != "default"] == ["decay.rate"]
        assert {row.key for row in listed.settings} == {*COMMON, "decay.rate"}
        assert len(COMMON) == 5
        assert len(config(call, all_=True).settings) == len(listed.settings) + listed.omitted

    def test_all_settings_take_no_key(self, call):
        with pytest.raises(Invalid, match="takes no setting"):
            config(call, "decay.rate", all_=True)
