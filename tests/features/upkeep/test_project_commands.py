"""`mind init`, `trust`, `status`, `doctor` and `config`."""

from pathlib import Path

import pytest

from mimo.commands.spec import to_json
from mimo.errors import Invalid
from mimo.features.notes.commands import add
from mimo.features.review.commands import trust, untrust
from mimo.features.search.commands import search
from mimo.features.upkeep.commands import Verdict, config, doctor, init, status
from mimo.mind import Mind


@pytest.fixture
def nowhere(home: Path) -> Mind:
    """A memory without a project."""
    return Mind(home=home, project=None, environ={})


class TestInit:
    @pytest.mark.req("003-36")
    def test_a_new_project_is_made_registered_and_trusted(self, nowhere, tmp_path):
        root = tmp_path / "blog"
        root.mkdir()

        made = init(nowhere, str(root))

        assert (made.created, made.trusted, made.name) == (True, True, "blog")
        assert ".mind/config.toml" in made.added
        assert status(nowhere).global_stats.projects_registered == 1

    def test_one_inside_another_is_made_if_the_user_agrees(self, nowhere, project):
        inner = project / "packages" / "api"
        inner.mkdir(parents=True)

        with pytest.raises(Invalid, match="inside the project") as raised:
            init(nowhere, str(inner))
        assert "mind init --nested" in raised.value.hint
        nowhere.ask = lambda *_: "no"
        with pytest.raises(Invalid):
            init(nowhere, str(inner))
        assert not (inner / ".mind").exists()

        nowhere.ask = lambda *_: "yes"
        assert init(nowhere, str(inner)).created
        nowhere.ask = None
        assert not init(nowhere, str(inner)).created  # It is one already: nothing to ask.
        (other := project / "packages" / "web").mkdir()
        assert init(nowhere, str(other), nested=True).created

    def test_a_home_of_another_configuration_can_not_be_made_one(self, nowhere, tmp_path):
        root = tmp_path / "x"
        (root / ".mind").mkdir(parents=True)
        (root / ".mind" / "index-owner").write_text("", encoding="utf-8")

        with pytest.raises(Invalid, match="a home of mind"):
            init(nowhere, str(root))

    def test_a_second_time_changes_nothing(self, nowhere, tmp_path):
        init(nowhere, str(tmp_path))

        again = init(nowhere, str(tmp_path))

        assert (again.created, again.added) == (False, ())

    def test_a_store_that_came_with_a_clone_is_not_trusted(self, nowhere, tmp_path):
        clone = tmp_path / "clone"
        (clone / ".mind" / "facts").mkdir(parents=True)

        made = init(nowhere, str(clone))

        assert (made.created, made.trusted) == (False, False)

    def test_decision_records_that_are_here_are_named_with_the_line_that_includes_them(
        self, nowhere, tmp_path
    ):
        records = tmp_path / "docs" / "adr"
        records.mkdir(parents=True)
        (records / "0001-x.md").write_text("# X\n", encoding="utf-8")

        made = init(nowhere, str(tmp_path))

        assert made.found[0] == "docs/adr"
        assert made.include is not None
        assert '"docs/adr/*.md"' in made.include


class TestTrust:
    def test_approval_covers_what_is_here_now_and_not_what_comes_later(self, mind):
        untrust(mind)
        facts = mind.folder / "facts"
        facts.mkdir()
        (facts / "one.md").write_text("the first text\n", encoding="utf-8")

        approved = trust(mind)
        (facts / "two.md").write_text("the second text\n", encoding="utf-8")

        assert (approved.approved, approved.total) == (1, 1)
        labels = {row.source_file: row.trust for row in search(mind, "text").results}
        assert labels == {".mind/facts/one.md": "trusted", ".mind/facts/two.md": "untrusted"}

    def test_following_covers_what_comes_later_too(self, mind):
        untrust(mind)
        trust(mind, follow=True)
        (mind.folder / "facts").mkdir()
        (mind.folder / "facts" / "two.md").write_text("the second text\n", encoding="utf-8")

        assert search(mind, "second").results[0].trust == "trusted"

    def test_untrust_takes_everything_back(self, mind):
        add(mind, "tea is hot")

        state = untrust(mind)

        assert (state.approved, state.total) == (0, 1)


class TestStatus:
    @pytest.mark.req("003-26", "003-27", "003-32")
    def test_without_a_project_and_without_a_daemon_it_answers(self, nowhere):
        answer = to_json(status(nowhere))

        assert answer["current_project"] is None
        assert answer["daemon"] == {
            "running": False,
            "pid": None,
            "uptime_seconds": None,
            "projects_watching": 0,
            "last_index": None,
        }

    @pytest.mark.req("003-28", "003-29", "003-30", "003-31", "003-37", "003-44")
    def test_the_current_project_is_counted_exactly(self, mind, clock):
        (mind.project.root / "pyproject.toml").write_text("", encoding="utf-8")
        add(mind, "use JWT", type="decision")
        add(mind, "uploads fail", type="issue")
        clock.forward(hours=2)
        add(mind, "proxies cut bodies", type="learning")

        project = to_json(status(mind))["current_project"]

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
        assert to_json(status(mind))["global_stats"]["total_memories"] == 3

    @pytest.mark.req("003-29")
    def test_memory_without_news_for_two_weeks_is_stale_and_none_is_empty(self, mind, clock):
        assert to_json(status(mind))["current_project"]["memory_health"] == "empty"
        add(mind, "tea is hot")
        clock.forward(days=15)

        assert to_json(status(mind))["current_project"]["memory_health"] == "stale"


class TestDoctor:
    def test_a_sound_project_is_healthy(self, mind):
        add(mind, "tea is hot")

        found = doctor(mind)

        assert found.healthy
        assert {check.verdict for check in found.checks} == {Verdict.OK}

    def test_what_is_wrong_is_named_with_file_and_line(self, mind):
        facts = mind.folder / "facts"
        facts.mkdir()
        (facts / "broken.md").write_text("---\na: 1\nb: [open\n---\nx\n", encoding="utf-8")
        (facts / "lost.md").write_text("see [[nowhere]]\n", encoding="utf-8")

        found = doctor(mind)

        assert not found.healthy
        fault = next(check for check in found.checks if check.verdict is Verdict.FAULT)
        assert (fault.file, fault.line) == (".mind/facts/broken.md", 4)
        assert any("nowhere" in check.message for check in found.checks)

    def test_two_files_with_one_id_are_named(self, mind):
        facts = mind.folder / "facts"
        facts.mkdir()
        (facts / "tea.md").write_text("---\nid: tea\ntype: fact\n---\none\n", encoding="utf-8")
        (facts / "copy.md").write_text("---\nid: tea\ntype: fact\n---\ntwo\n", encoding="utf-8")

        named = [check.file for check in doctor(mind).checks if check.file]

        assert named == [".mind/facts/copy.md"]

    def test_without_a_project_it_says_what_to_do(self, nowhere):
        assert any("mind init" in (check.hint or "") for check in doctor(nowhere).checks)

    def test_a_setting_that_is_not_understood_is_a_warning(self, mind):
        (mind.folder / "config.toml").write_text("format = 1\ncolour = 3\n", encoding="utf-8")

        found = doctor(mind.reopened())

        assert found.healthy
        assert any("colour" in check.message for check in found.checks)


class TestConfig:
    def test_a_setting_is_changed_where_it_stands_and_comments_stay(self, mind):
        path = mind.folder / "config.toml"
        before = path.read_text(encoding="utf-8")

        changed = config(mind, "decay.rate", "0.05")

        assert (changed.settings[0].value, changed.settings[0].origin) == (0.05, "project")
        assert path.read_text(encoding="utf-8").startswith(before.rstrip("\n"))

    def test_unset_goes_back_to_the_default(self, mind):
        config(mind, "decay.rate", "0.05")

        assert config(mind, "decay.rate", unset=True).settings[0].value == 0.1

    def test_a_users_setting_is_kept_in_the_users_file(self, mind, home):
        config(mind, "mcp.tool_names", "slash")

        assert "slash" in (home / "config.toml").read_text(encoding="utf-8")
        with pytest.raises(Invalid, match="setting of the project"):
            config(mind, "include", "docs/*.md", user=True)

    def test_a_file_that_cannot_be_parsed_is_not_touched(self, mind):
        path = mind.folder / "config.toml"
        path.write_text("include = [", encoding="utf-8")

        with pytest.raises(Invalid, match=r"config\.toml"):
            config(mind, "decay.rate", "0.05")

        assert path.read_text(encoding="utf-8") == "include = ["

    def test_without_a_key_every_setting_is_listed(self, nowhere):
        assert len(config(nowhere).settings) > 4
