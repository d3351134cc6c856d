"""Any order of commands of the memory tool gives the files that a dict of texts has."""

import re
import shutil
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mimo.call import Call, Caller, Surface
from mimo.call.spec import declared
from mimo.data import disk
from mimo.features.notes.undo import undo
from mimo.memory_tool import MemoryTool
from mimo.mind import Mind
from mimo.operations import finding
from mimo.operations.invoke import invoke
from mimo.project.init import init

PATHS = st.builds(
    lambda folder, name: f"/memories/{folder}{name}",
    st.sampled_from(["", "facts/", "decisions/", "private/facts/", "team/x/"]),
    st.sampled_from(["a.md", "b.txt"]),
)
FOLDERS = st.sampled_from(["facts", "decisions", "private", "team", "team/x"])
LINE = st.text("abcdeé 漢-#*:", max_size=8).map(lambda text: f"x{text}x")
TEXTS = st.lists(LINE, min_size=1, max_size=4).map("\n".join)
HEADER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


class Files(RuleBasedStateMachine):
    """The tool of a project beside the dict that its files should be."""

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        with patch("os.fsync"):
            init(self.root, disk.home_of({}), now=datetime(2026, 11, 20, tzinfo=UTC))
        self.tool = MemoryTool(self.root)
        self.texts: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.before: list[tuple[dict[str, str], dict[str, str]]] = []
        # What survives a power cut is tested elsewhere.
        self.unflushed = patch("os.fsync")
        self.unflushed.start()

    def teardown(self):
        self.unflushed.stop()
        shutil.rmtree(self.root)

    def call(self, command, **given):
        answer = self.tool.handle({"command": command, **given})
        assert "unexpected" not in answer.text
        return answer

    def did(self):
        self.before.append((dict(self.texts), dict(self.ids)))

    def whole(self, path):
        """Returns the text of a file as `view` shows it."""
        rows = self.call("view", path=path).text.split("\n")[1:]
        return "\n".join(row.split("\t", 1)[1] for row in rows)

    @rule(path=PATHS, text=TEXTS)
    def create(self, path, text):
        answer = self.call("create", path=path, file_text=text)
        assert answer.is_error == (path in self.texts)
        if not answer.is_error:
            self.did()
            self.texts[path] = f"{text}\n"
            self.ids[path] = self.whole(path).split("id: ")[1].split("\n")[0]

    @rule(path=PATHS, old=LINE, new=LINE)
    def str_replace(self, path, old, new):
        body = self.texts.get(path, "")
        whole = self.whole(path) if body else ""
        answer = self.call("str_replace", path=path, old_str=old, new_str=new)
        assert answer.is_error == (whole.count(old) != 1)
        if not answer.is_error and old != new:
            self.did()
            self.texts[path] = body.replace(old, new)

    @rule(path=PATHS, line=st.integers(-1, 6), text=TEXTS)
    def insert(self, path, line, text):
        body = self.texts.get(path, "")
        header = self.whole(path).count("\n") - body.count("\n") if body else 0
        answer = self.call("insert", path=path, insert_line=header + line, insert_text=text)
        lines = body.split("\n")[:-1]
        assert answer.is_error == (not body or not 0 <= line <= len(lines))
        if not answer.is_error:
            self.did()
            lines[line:line] = [text]
            self.texts[path] = "\n".join(lines) + "\n"

    @rule(path=PATHS)
    def delete(self, path):
        answer = self.call("delete", path=path)
        assert answer.is_error == (path not in self.texts)
        if not answer.is_error:
            self.did()
            del self.texts[path], self.ids[path]

    @rule(folder=FOLDERS)
    def delete_folder(self, folder):
        inside = [path for path in self.texts if path.startswith(f"/memories/{folder}/")]
        answer = self.call("delete", path=f"/memories/{folder}")
        assert answer.is_error == (not inside)
        if inside:
            self.did()
        for path in inside:
            del self.texts[path], self.ids[path]

    @rule(old=PATHS, new=PATHS)
    def rename(self, old, new):
        answer = self.call("rename", old_path=old, new_path=new)
        publishes = "/private/" in old and "/private/" not in new
        assert answer.is_error == (old not in self.texts or new in self.texts or publishes)
        if not answer.is_error:
            self.did()
            self.texts[new], self.ids[new] = self.texts.pop(old), self.ids.pop(old)

    @rule(old=FOLDERS, new=FOLDERS)
    def rename_folder(self, old, new):
        inside = [path for path in self.texts if path.startswith(f"/memories/{old}/")]
        taken = any(path.startswith(f"/memories/{new}/") for path in self.texts)
        answer = self.call("rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}")
        publishes = old == "private"
        assert answer.is_error == (
            not inside or taken or publishes or f"{new}/".startswith(f"{old}/")
        )
        if not answer.is_error:
            self.did()
            for path in inside:
                moved = f"/memories/{new}/" + path.removeprefix(f"/memories/{old}/")
                self.texts[moved], self.ids[moved] = self.texts.pop(path), self.ids.pop(path)

    @precondition(lambda self: self.before)
    @rule()
    def undo(self):
        with closing(Mind.open(None, project=self.root)) as mind:
            call = Call(mind)
            newest = [change.undoes for change in undo(call, list_=True).changes or ()][:1]
            if newest != [None]:
                return  # Undoing an undo redoes it.
            invoke(declared(undo), call.by(Caller(surface=Surface.CLI)), {})
        self.texts, self.ids = self.before.pop()
        self.before.clear()

    @invariant()
    def the_files_are_those_of_the_model(self):
        rows = self.call("view", path="/memories").text.splitlines()[2:]
        listed = {row.split("\t")[1] for row in rows} - {"/memories/README.md"}
        files = {path for path in listed if not path.endswith("/")} - {"/memories/MEMORY.md"}
        near = {path for path in self.texts if path.count("/") <= 3}
        assert files == near
        for path, text in self.texts.items():
            whole = self.whole(path)
            assert HEADER.sub("", whole, count=1) == text
            assert f"\nid: {self.ids[path]}\n" in whole

    @invariant()
    def the_index_has_the_same_memories(self):
        with closing(Mind.open(None, project=self.root)) as mind:
            call = Call(mind)
            records = finding.listing(call).records
        assert sorted(record.memory.id for record in records) == sorted(self.ids.values())


TestFiles = Files.TestCase
TestFiles.settings = settings(max_examples=8, stateful_step_count=15, deadline=None)
