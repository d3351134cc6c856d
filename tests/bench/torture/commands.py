"""The commands that are tried, and what there is before them."""

import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.bench.torture.scratch import Scratch


class Command(NamedTuple):
    """A command that is tried, and what must be there before it."""

    name: str
    words: tuple[str, ...]
    before: Callable[[Scratch], None] = lambda scratch: None

    def words_in(self, scratch: Scratch) -> list[str]:
        """Returns the words, with the ids of the memories that `prepared` made."""
        ids = {f"{{{name}}}": id for name, id in scratch.ids.items()}
        return [ids.get(word, word) for word in self.words]


def prepared(scratch: Scratch) -> None:
    """Makes a project with a little of everything."""
    scratch.project.mkdir(parents=True)
    scratch.home.mkdir()
    (scratch.home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    scratch.git("init", "--quiet", "--initial-branch=main", "--template=")
    done(scratch, "init")
    scratch.ids["fact"] = done(scratch, "add", "Tea is served at four o'clock")["id"]
    scratch.ids["other"] = done(scratch, "add", "The kettle holds two litres", "--private")["id"]
    words = ("save", "decision", "auth_strategy", "Use JWT", "--because", "No session store")
    scratch.ids["decision"] = done(scratch, *words)["id"]
    scratch.write(
        "docs/guide.md", "".join(f"# Part {n}\n\n{'Water boils. ' * 30}\n\n" for n in range(4))
    )
    scratch.write("docs/short.md", "# Short\n\nCups are in the cupboard.\n")
    scratch.write("EDITED.md", "")
    done(scratch, "sync")
    for line in ("doctor", "audit verify", "search tea", "list"):
        done(scratch, *line.split())


def done(scratch: Scratch, *words: str) -> Any:
    result = scratch.mind(*words, "--json")
    if result.status:
        raise SystemExit(f"mind {' '.join(words)} failed: {result.errors or result.output}")
    return result.answer


def _untrusted(scratch: Scratch) -> None:
    done(scratch, "untrust")


def _changed(scratch: Scratch) -> None:
    done(scratch, "edit", scratch.ids["fact"], "--content", "Tea is served at five")


def _removed(scratch: Scratch) -> None:
    done(scratch, "rm", scratch.ids["fact"])


def _unsynced(scratch: Scratch) -> None:
    done(scratch, "add", "The pot is blue")


def _competing(scratch: Scratch) -> None:
    text = "---\nid: {}\ntype: decision\ntitle: {}\ntopic: db\n---\n{}\n"
    for name, title in (
        ("decision_db_20260101_aaaaaa", "Use A"),
        ("decision_db_20260102_bbbbbb", "Use B"),
    ):
        scratch.write(f".mind/decisions/{name}.md", text.format(name, title, title))
    scratch.git("add", ".mind")
    scratch.git("commit", "--quiet", "--message=two")
    done(scratch, "trust")


def _foreign_database(scratch: Scratch) -> None:
    from tests import mama_databases

    mama_databases.example(scratch.tree / "mama.db")


def _procedure(scratch: Scratch) -> None:
    from tests.sample_procedures import GREET, text

    scratch.write("greet.md", text("greet", GREET))
    done(scratch, "procedure", "add", "greet.md")


def _no_project(scratch: Scratch) -> None:
    shutil.rmtree(scratch.project / ".mind")
    shutil.rmtree(scratch.home / ".mind")


COMMANDS = (
    Command("add", ("add", "Milk goes in first")),
    Command("save decision", ("save", "decision", "cache", "Redis", "--because", "Fast")),
    Command("save checkpoint", ("save", "checkpoint", "Login works", "--next", "Write the test")),
    Command("save insight", ("save", "insight", "Safari drops cookies", "--tag", "safari")),
    Command("evolve outcome", ("evolve", "outcome", "auth_strategy", "failed", "--reason", "No")),
    Command(
        "evolve supersede",
        ("evolve", "supersede", "auth_strategy", "Use sessions", "--because", "Revocable"),
    ),
    Command("edit", ("edit", "{fact}", "--content", "Tea is served at six", "--tag", "tea")),
    Command("rm", ("rm", "{fact}")),
    Command("rm of a private memory", ("rm", "{other}")),
    Command("ingest", ("ingest", "docs/guide.md", "docs/short.md")),
    Command("value put", ("value", "put", "agent.build", "last", '{"ok": true}')),
    Command("trust", ("trust",), _untrusted),
    Command("untrust", ("untrust",)),
    Command("review settle", ("review", "settle", "decision_db_20260101_aaaaaa", "1"), _competing),
    Command("sync", ("sync",), _unsynced),
    Command("import", ("import", "mama", "--db", "../mama.db"), _foreign_database),
    Command("undo", ("undo",), _removed),
    Command("restore", ("restore", "{fact}"), _changed),
    Command(
        "edges add",
        (
            *("edges", "add", "--title", "Cold cup"),
            *("--description", "Tea cools", "--workaround", "Warm the cup"),
        ),
    ),
    Command("keep", ("keep", "{fact}")),
    Command("procedure run", ("procedure", "run", "greet", "--context", '{"who": 1}'), _procedure),
    Command("index --rebuild", ("index", "--rebuild")),
    Command("init", ("init",), _no_project),
    Command("config", ("config", "decay.rate", "0.05")),
    Command("context write", ("context", "write")),
    Command("install", ("install", "claude-code")),
)  # fmt: skip
