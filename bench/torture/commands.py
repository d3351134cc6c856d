"""The commands that are tried, and the project before them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.torture.scratch import Result, Scratch


class Command(NamedTuple):
    """A command that is tried, and what must be there before it."""

    name: str
    words: tuple[str, ...]
    before: Callable[[Scratch], None] = lambda scratch: None
    input: str = ""
    """Its standard input."""
    until: str = ""
    """The part of its answer after which the input ends."""
    recover: Callable[[Scratch], None] | None = None
    """Prepares its repetition after the fault, which must succeed; None if it is not repeated."""

    @property
    def is_gits(self) -> bool:
        """Returns whether it is a command of git, which runs mind."""
        return self.words[0] == "git"

    def acknowledged(self, result: Result) -> bool:
        """Returns whether a run reported success."""
        if self.words == ("mcp",):
            answers = [json.loads(line) for line in result.output.splitlines()]
            results = [answer.get("result", {}) for answer in answers if answer.get("id") == 2]
            return any(answer and not answer.get("isError") for answer in results)
        if self.words == ("memory-tool",):
            return result.status == 0 and not (result.answer or {"is_error": True})["is_error"]
        return result.status == 0

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


def begun(scratch: Scratch, command: Command) -> int:
    """Makes what must be there before a command, and keeps that under its name.

    Returns the time of day of its runs, in seconds since the epoch.
    """
    scratch.load("base")
    command.before(scratch)
    # Equal runs make equal calls only if no time is ahead of their clock, which is stopped at a
    # whole second, and if the index has read no file within 20 ms of its change.
    time.sleep(1.05 - time.time() % 1)
    now = int(time.time())
    if (scratch.project / ".mind").is_dir():
        done(scratch, "list")
    scratch.save(command.name)
    return now


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


def _unlock(scratch: Scratch) -> None:
    """Removes what a git that was killed leaves, as git asks the user to."""
    for name in (".git/**/*.lock", ".merge_file_*", ".mind-*.tmp"):
        for path in scratch.project.glob(name):
            path.unlink()


def _reset(scratch: Scratch) -> None:
    """Ends a merge that was killed."""
    _unlock(scratch)
    scratch.git("reset", "--quiet", "--hard")


def _no_private(scratch: Scratch) -> None:
    shutil.rmtree(scratch.project / ".mind/private")


def _removed_earlier(scratch: Scratch) -> None:
    _removed(scratch)
    changes = done(scratch, "undo", "--list")["changes"]
    scratch.ids["change"] = changes[0]["id"]
    _unsynced(scratch)


def _undone(scratch: Scratch) -> None:
    _removed(scratch)
    done(scratch, "undo")


def _committed(scratch: Scratch) -> None:
    _changed(scratch)
    done(scratch, "sync")


def _linked(scratch: Scratch) -> None:
    done(scratch, "link", scratch.ids["fact"], scratch.ids["decision"])


def _kept(scratch: Scratch) -> None:
    done(scratch, "keep", scratch.ids["fact"])


def _ingested(scratch: Scratch) -> None:
    done(scratch, "ingest", "docs")
    scratch.write("docs/guide.md", "# Part 0\n\nMilk boils.\n")


def _notes(scratch: Scratch) -> None:
    scratch.write("../notes/Pot.md", "The pot is blue. See [[Lid]].\n")
    scratch.write("../notes/Lid.md", "The lid is red.\n")


def _imported(scratch: Scratch) -> None:
    _notes(scratch)
    done(scratch, "import", "../notes", "--from", "obsidian")


def _unfixed(scratch: Scratch) -> None:
    scratch.git("config", "--unset", "merge.mind.driver")
    scratch.write(".mind/.gitignore", ".index/\n")
    (scratch.project / ".mind/private").chmod(0o755)


def _configured(scratch: Scratch) -> None:
    done(scratch, "config", "decay.rate", "0.05")


def _installed_codex(scratch: Scratch) -> None:
    (scratch.home / ".codex").mkdir()
    (scratch.home / ".codex/config.toml").write_text('model = "o3"  # The large one.\n')


def _installed_in_codex(scratch: Scratch) -> None:
    _installed_codex(scratch)
    done(scratch, "install", "codex", "--scope", "user")


def _in_session(scratch: Scratch) -> None:
    done(scratch, "config", "hook.capture", "on")
    for prompt in ("tea at four", "the kettle", "which store?", "and the cups?"):
        scratch.mind("hook", input=_event("UserPromptSubmit", prompt=prompt))


def _session_value(scratch: Scratch) -> None:
    done(scratch, "value", "put", "session.a", "step", "3")


def _branched(scratch: Scratch) -> None:
    from mimo.project.git import own_driver

    scratch.git("config", "merge.mind.driver", own_driver())
    scratch.git("branch", "side")
    done(scratch, "edit", scratch.ids["fact"], "--content", "Tea is served at five")
    done(scratch, "sync")
    scratch.git("switch", "--quiet", "side")
    done(scratch, "edit", scratch.ids["fact"], "--tag", "tea")
    done(scratch, "edit", scratch.ids["decision"], "--tag", "auth")
    done(scratch, "sync")


_CREATE = '{"command": "create", "path": "/memories/pot.md", "file_text": "The pot is blue"}'
_RENAME = '{"command": "rename", "old_path": "/memories/pot.md", "new_path": "/memories/pots.md"}'


def _with_pot(scratch: Scratch) -> None:
    scratch.mind("memory-tool", input=_CREATE)


def _event(name: str, **fields: str) -> str:
    """Returns what a client sends to a hook."""
    return json.dumps({"hook_event_name": name, "session_id": "s1", **fields})


def _unsynced(scratch: Scratch) -> None:
    done(scratch, "add", "The pot is blue")


def _competing(scratch: Scratch) -> None:
    text = "---\nid: {}\ntype: decision\ntitle: {}\ntopic: db\ncreated: {}\n---\n{}\n"
    for name, title, day in (
        ("decision_db_20260101_aaaaaa", "Use A", "2026-01-01"),
        ("decision_db_20260102_bbbbbb", "Use B", "2026-01-02"),
    ):
        # With a date, since the times of files are those at which a test makes them.
        scratch.write(f".mind/decisions/{name}.md", text.format(name, title, day, title))
    scratch.git("add", ".mind")
    scratch.git("commit", "--quiet", "--message=two")
    done(scratch, "trust", "--all")


def _foreign_database(scratch: Scratch) -> None:
    from tests import mama_databases

    mama_databases.example(scratch.tree / "mama.db")


def _procedure(scratch: Scratch) -> None:
    from tests.sample_procedures import GREET, text

    scratch.write("greet.md", text("greet", GREET))
    done(scratch, "procedure", "add", "greet.md")


def _installed(scratch: Scratch) -> None:
    done(scratch, "install", "claude-code")


def _token(scratch: Scratch) -> None:
    done(scratch, "token", "add", "ana", "--email", "ana@example.org")


def _value(scratch: Scratch) -> None:
    done(scratch, "value", "put", "agent.build", "last", '{"ok": true}')


def _waiting(scratch: Scratch) -> None:
    from tests.sample_procedures import WAIT, text

    scratch.write("wait.md", text("wait", WAIT))
    done(scratch, "procedure", "add", "wait.md")
    scratch.mind("procedure", "run", "wait", "--timeout", "50")  # interrupted, with status 1


def _sent(scratch: Scratch) -> None:
    _waiting(scratch)
    done(scratch, "procedure", "send", "latest", "yes")


def _new_procedure(scratch: Scratch) -> None:
    from tests.sample_procedures import GREET, text

    scratch.write("greet.md", text("greet", GREET))


def _messages(name: str, arguments: Mapping[str, object]) -> str:
    """Returns what a client sends to a server for one call of a tool."""
    start = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
    ]
    return "".join(f"{json.dumps({'jsonrpc': '2.0', **message})}\n" for message in messages)


def _no_project(scratch: Scratch) -> None:
    scratch.git("rm", "-r", "--quiet", "--cached", ".mind")
    shutil.rmtree(scratch.project / ".mind")
    shutil.rmtree(scratch.home / ".mind")


UNTRIED = {
    "demo": "works in a scratch folder of its own",
    "daemon start": "writes no memory",
    "daemon stop": "writes no memory",
    "daemon restart": "writes no memory",
    "daemon run": "writes no memory but the index",
    "update-outcome": "is `evolve outcome` by an older name",
    "mind-add-global-edge": "is `pitfalls add` by an older name",
    "store-fact": "is `memory store` by an older name",
    "knowledge": "is `memory` by an older name",
}
"""Writing commands that are not tried, and why."""

COMMANDS = (
    Command("add", ("add", "Milk goes in first")),
    Command("add of a first private memory", ("add", "Cups break", "--private"), _no_private),
    Command("save decision", ("save", "decision", "cache", "Redis", "--because", "Fast")),
    Command(
        "save decision on a known topic",
        ("save", "decision", "auth_strategy", "Use sessions", "--because", "Revocable"),
    ),
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
    Command("rm --purge", ("rm", "{fact}", "--purge")),
    Command("ingest", ("ingest", "docs/guide.md", "docs/short.md")),
    Command("ingest --update", ("ingest", "--update", "docs"), _ingested),
    Command("value put", ("value", "put", "agent.build", "last", '{"ok": true}')),
    Command(
        "value put --ttl-seconds",
        ("value", "put", "agent.build", "last", "1", "--ttl-seconds", "600"),
    ),
    Command("value put of a session", ("value", "put", "session.a", "step", "4"), _session_value),
    Command("value rm of a session", ("value", "rm", "session.a", "step"), _session_value),
    Command("trust", ("trust", "--all"), _untrusted),
    Command("trust ID", ("trust", "{fact}"), _untrusted),
    Command("untrust", ("untrust",)),
    Command("review settle", ("review", "settle", "decision_db_20260101_aaaaaa", "1"), _competing),
    Command("sync", ("sync",), _unsynced, recover=_unlock),
    Command("merge driver", ("git", "merge", "--no-edit", "main"), _branched, recover=_reset),
    Command("import", ("import", "mama", "--db", "../mama.db"), _foreign_database),
    Command("import of a folder", ("import", "../notes", "--from", "obsidian"), _notes),
    Command("import --rollback", ("import", "../notes", "--rollback"), _imported),
    Command("undo", ("undo",), _removed),
    Command("undo ID", ("undo", "{change}"), _removed_earlier),
    Command("undo of an undo", ("undo",), _undone),
    Command("undo --purge", ("undo", "{change}", "--purge"), _removed_earlier),
    Command("restore", ("restore", "{fact}"), _changed),
    Command("restore --at", ("restore", "{fact}", "--at", "HEAD~1"), _committed),
    Command(
        "pitfalls add",
        (
            *("pitfalls", "add", "--title", "Cold cup"),
            *("--description", "Tea cools", "--workaround", "Warm the cup"),
        ),
    ),
    Command("keep", ("keep", "{fact}")),
    Command("keep --off", ("keep", "{fact}", "--off"), _kept),
    Command("procedure run", ("procedure", "run", "greet", "--context", '{"who": 1}'), _procedure),
    Command("index --rebuild", ("index", "--rebuild")),
    Command("init", ("init",), _no_project, recover=_unlock),
    Command("doctor --fix", ("doctor", "--fix"), _unfixed, recover=_unlock),
    Command("config", ("config", "decay.rate", "0.05")),
    Command("config --user", ("config", "--user", "decay.rate", "0.05")),
    Command("config --unset", ("config", "decay.rate", "--unset"), _configured),
    Command("context write", ("context", "write")),
    Command("install", ("install", "claude-code")),
    Command("uninstall", ("uninstall", "claude-code"), _installed),
    Command("install of codex", ("install", "codex", "--scope", "user"), _installed_codex),
    Command("uninstall of codex", ("uninstall", "codex", "--scope", "user"), _installed_in_codex),
    Command("link", ("link", "{fact}", "{decision}")),
    Command("link --remove", ("link", "{fact}", "{decision}", "--remove"), _linked),
    Command("memory store", ("memory", "store", "Milk goes in first", "--tag", "milk")),
    Command("memory delete", ("memory", "delete", "{fact}")),
    Command("pitfalls starter", ("pitfalls", "starter")),
    Command("review keep", ("review", "keep", "decision_db_20260101_aaaaaa"), _competing),
    Command("token add", ("token", "add", "ana", "--email", "ana@example.org")),
    Command("token rm", ("token", "rm", "ana"), _token),
    Command("value rm", ("value", "rm", "agent.build", "last"), _value),
    Command("procedure add", ("procedure", "add", "greet.md"), _new_procedure),
    Command("procedure new", ("procedure", "new", "brew")),
    Command("procedure send", ("procedure", "send", "latest", "yes"), _waiting),
    Command("procedure cancel", ("procedure", "cancel", "latest"), _waiting),
    Command("procedure resume", ("procedure", "resume", "latest"), _sent),
    Command("projects forget", ("projects", "forget", "shop")),
    Command("module install", ("module", "install")),
    Command("add --user", ("add", "--user", "Always use pnpm")),
    Command("export", ("export", "--output", "../memories.jsonl")),
    Command("export to a folder", ("export", "--format", "markdown", "--output", "../vault")),
    Command("report", ("report", "../memory.html")),
    Command("hook at a start", ("hook",), input=_event("SessionStart")),
    Command("hook at a prompt", ("hook",), input=_event("UserPromptSubmit", prompt="tea at four")),
    Command("hook at a stop", ("hook",), _in_session, input=_event("Stop")),
    Command("memory tool: create", ("memory-tool",), input=_CREATE),
    Command("memory tool: rename", ("memory-tool",), _with_pot, input=_RENAME),
    Command(
        "mcp",
        ("mcp",),
        input=_messages("mind_add", {"content": "Milk goes in first"}),
        until='"id":2',
    ),
)  # fmt: skip
