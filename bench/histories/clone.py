"""A clone that a person works in: its trees, and merges that are checked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.histories.edits import memory_files
from bench.histories.people import START, Person, lines
from mimo.memory.codec.file import Parsed, body_links, parse
from mimo.memory.merge import united
from mimo.memory.model import Memory
from mimo.project.memories import approvals_of

_WORD = re.compile(rb"\bw[0-9]+\b")
_MARKER = re.compile(rb"^(<<<<<<< |>>>>>>> )", re.MULTILINE)
_ID = re.compile(rb"^id: .*$", re.MULTILINE)
_INGESTED = "sources/"
_APART = ("MEMORY.md", "values/", "procedures/", "sources/", "config.toml", ".git")
"""Files that are not memories."""


class Failed(Exception):
    """A promise was broken."""


class Blob(NamedTuple):
    """A file of a commit."""

    id: str
    data: bytes


class Tree:
    """The files of a commit, without submodules."""

    def __init__(self, files: Mapping[str, Blob], prefix: str) -> None:
        """Takes the files by path, and the project's folder (`pkg/` or empty)."""
        self.files = files
        start = f"{prefix}.mind/"
        self.memories = {
            path.removeprefix(prefix): blob
            for path, blob in files.items()
            if path.startswith(start)
            and path.endswith(".md")
            and not path.removeprefix(start).startswith(_APART)
        }
        """The files of memories, by path in the project."""
        self.words = {
            word.decode()
            for path, blob in files.items()
            if not path.removeprefix(start).startswith(_INGESTED)
            for word in _WORD.findall(blob.data)
        }
        """The words that people wrote; the copies in ingested files don't count."""

    @property
    def competing(self) -> bool:
        """Returns whether a memory has competing versions."""
        return any(b"## Competing: " in blob.data for blob in self.memories.values())


class Clone:
    """The working tree of a repository, and the project in it."""

    def __init__(self, person: Person, top: Path, prefix: str, *, driver: bool) -> None:
        """Takes the top of the working tree and the project's folder (`pkg/` or empty)."""
        self.person, self.top, self.prefix, self.driver = person, top, prefix, driver
        self.root = top / prefix
        self.stuck: set[str] = set()
        """The paths that the last merge left to a person."""
        self._trees: dict[str, Tree] = {}
        self._contents: dict[str, bytes] = {}

    def git(self, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        """Returns the result of a git command."""
        return self.person.git(self.top, *words, fails=fails)

    def ask(self, *words: str) -> str:
        """Returns the output of a git command."""
        return self.person.ask(self.top, *words)

    def commit_of(self, revision: str = "HEAD") -> str:
        """Returns the id of a commit."""
        if len(revision) == 40:
            return revision
        return self.ask("rev-parse", f"{revision}^{{commit}}")

    def tree(self, revision: str = "HEAD") -> Tree:
        """Returns the files of a commit."""
        commit = self.commit_of(revision)
        if commit not in self._trees:
            rows = [row for row in self.ask("ls-tree", "-r", "-z", commit).split("\0") if row]
            ids = {row.partition("\t")[2]: row.split()[2] for row in rows if " blob " in row}
            if missing := [id_ for id_ in ids.values() if id_ not in self._contents]:
                self._contents.update(self._blobs(missing))
            files = {path: Blob(id_, self._contents[id_]) for path, id_ in ids.items()}
            self._trees[commit] = Tree(files, self.prefix)
        return self._trees[commit]

    def _blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        wanted = list(dict.fromkeys(ids))
        data = subprocess.run(
            ["git", "cat-file", "--batch"], cwd=self.top, check=True, capture_output=True,
            input="".join(f"{id_}\n" for id_ in wanted).encode(),
        ).stdout  # fmt: skip
        blobs, at = {}, 0
        for id_ in wanted:
            start = data.index(b"\n", at) + 1
            size = int(data[at:start].split()[2])
            blobs[id_], at = data[start : start + size], start + size + 1
        return blobs

    def working_words(self) -> set[str]:
        """Returns the words in the files of the working tree."""
        words: set[str] = set()
        for path in self.top.rglob("*"):
            parts = path.relative_to(self.top).parts
            if ".git" not in parts and "sources" not in parts and path.is_file():
                words |= {word.decode() for word in _WORD.findall(path.read_bytes())}
        return words

    # Operations that merge. Each takes the commits as git does: base, ours, theirs.

    def merge(self, *heads: str) -> None:
        """Merges branches, as `git merge` does, and checks the result."""
        ours = self.commit_of()
        theirs = [self.commit_of(head) for head in heads]
        bases = lines(self.ask("merge-base", "--all", ours, theirs[0]))
        self._run(bases, ours, theirs[0], "merge", "-q", "--no-edit", *heads)

    def cherry_pick(self, commit: str) -> None:
        """Applies the change of a commit."""
        id_ = self.commit_of(commit)
        parent = self.commit_of(f"{id_}^")
        self._run([parent], self.commit_of(), id_, "cherry-pick", "--allow-empty", id_)

    def revert(self, commit: str) -> None:
        """Reverts a commit."""
        id_ = self.commit_of(commit)
        merge = len(self.ask("rev-list", "--parents", "-1", id_).split()) > 2
        parent = self.commit_of(f"{id_}^")
        self._run(
            [id_], self.commit_of(), parent, "revert", "--no-edit", *(["-m1"] if merge else []), id_
        )

    def pop(self) -> None:
        """Applies the stash."""
        stash = self.commit_of("stash")
        parent = self.commit_of("stash^")
        self._run([parent], self.commit_of(), stash, "stash", "pop", "-q")

    def rebase(self, upstream: str) -> None:
        """Moves the commits of this branch onto another."""
        ours, theirs = self.commit_of(upstream), self.commit_of()
        bases = lines(self.ask("merge-base", "--all", ours, theirs))
        self._run(bases, ours, theirs, "rebase", "-q", upstream)

    def _run(self, bases: Sequence[str], ours: str, theirs: str, *words: str) -> None:
        trees = ([self.tree(base) for base in bases], self.tree(ours), self.tree(theirs))
        expected = left(*trees)
        result = self.git(*words, fails=True)
        self.stuck = set()
        kept: set[str] = set()
        while (self.top / ".git").exists() and (unmerged := self._unmerged()):
            self.stuck |= set(unmerged)
            kept |= self.working_words()
            self._check_left_to_people(unmerged, words[0])
            self._resolve(unmerged)
            self._go_on(words[0])
        if result.returncode and not self.stuck:
            if words[0] not in ("cherry-pick", "revert", "rebase"):
                raise Failed(f"{words}: {result.stdout}{result.stderr}")
            self._go_on(words[0])
        if words[0] == "stash":
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", "stash")
        self._unite()
        if self.ask("status", "--porcelain"):  # Git kept two names of a memory without a conflict.
            self.git("commit", "-q", "-a", "-m", "one copy")
        if lost := expected - self.tree().words - kept:
            raise Failed(f"{' '.join(words)}: lost {sorted(lost)}")
        self.check_files(f"{' '.join(words)}")
        if self.driver and len(bases) == 1 and words[0] != "rebase":
            self._check_united(trees[0][0], trees[1], trees[2])

    def _unmerged(self) -> dict[str, set[str]]:
        """Returns the stages of each path that git left to a person."""
        unmerged: dict[str, set[str]] = {}
        for row in self.ask("ls-files", "-u", "-z").split("\0"):
            if row:
                meta, _, path = row.partition("\t")
                unmerged.setdefault(path, set()).add(meta.split()[2])
        return unmerged

    def _go_on(self, word: str) -> None:
        """Lets git go on after conflicts were resolved."""
        if word == "merge":
            self.git("commit", "-q", "--no-edit")
        elif word == "rebase":
            for _ in range(20):
                if not (self._git_dir() / "rebase-merge").exists() or self._unmerged():
                    return
                if self.git("rebase", "--continue", fails=True).returncode:
                    self.git("rebase", "--skip", fails=True)
            raise Failed("a rebase does not end")
        elif any((self._git_dir() / f"{each}_HEAD").exists() for each in ("CHERRY_PICK", "REVERT")):
            self.git("commit", "-q", "--no-edit", "--allow-empty")

    def _git_dir(self) -> Path:
        return Path(self.ask("rev-parse", "--absolute-git-dir"))

    def _check_left_to_people(self, unmerged: Mapping[str, set[str]], word: str) -> None:
        """Checks that git left no memory as text that mind can merge."""
        for path, stages in unmerged.items():
            memory = path.removeprefix(f"{self.prefix}.mind/")
            if not self.driver or ".mind/" not in path or memory.startswith(_APART):
                continue
            data = (self.top / path).read_bytes() if (self.top / path).exists() else b""
            if {"2", "3"} <= stages and _MARKER.search(data):
                raise Failed(f"{word}: {path} was left as text with conflict markers")

    def _resolve(self, unmerged: Mapping[str, set[str]]) -> None:
        """Resolves conflicts as a person does who wants to keep both sides."""
        for path, stages in unmerged.items():
            file = self.top / path
            if {"2", "3"} <= stages and file.exists():
                ours, theirs = (self._stage(path, stage) for stage in "23")
                if _MARKER.search(file.read_bytes()):
                    file.write_bytes(both(ours, theirs))
            elif not file.exists() and stages & {"2", "3"} and stages != {"1"}:
                side = "--ours" if "2" in stages else "--theirs"
                self.git("checkout", side, "--", path, fails=True)
        self._unite()
        self.git("add", "-A", "--sparse")

    def _unite(self) -> None:
        """Makes one file of several with the same memory, which `mind doctor` reports.

        Both sides renamed it, or one renamed a file that both had added.
        """
        places: dict[bytes, Path] = {}
        for path in memory_files(self.root):
            data = path.read_bytes()
            if match := _ID.search(data):
                first = places.setdefault(match[0], path)
                if first != path:
                    self.stuck |= {each.relative_to(self.top).as_posix() for each in (first, path)}
                    if first.read_bytes() != data:
                        first.write_bytes(both(first.read_bytes(), data))
                    path.unlink()

    def _stage(self, path: str, stage: str) -> bytes:
        words = ["git", "cat-file", "blob", f":{stage}:{path}"]
        return subprocess.run(words, cwd=self.top, capture_output=True, check=True).stdout

    # Checks.

    def check_files(self, name: str) -> None:
        """Checks that every memory can be read, and has no conflict markers."""
        for path in memory_files(self.root):
            data, relative = path.read_bytes(), path.relative_to(self.root).as_posix()
            if _MARKER.search(data):
                raise Failed(f"{name}: {relative} has conflict markers")
            parsed = parse(data, path=relative, modified=START)
            if not isinstance(parsed, Parsed):
                raise Failed(f"{name}: {relative}: {parsed.reason} (line {parsed.line})")

    def _check_united(self, base: Tree, ours: Tree, theirs: Tree) -> None:
        """Checks that the tags and links of both sides are united."""
        merged = self.tree()
        for path, blob in merged.memories.items():
            sides = [tree.memories.get(path) for tree in (base, ours, theirs)]
            if None in sides or path in {p.removeprefix(self.prefix) for p in self.stuck}:
                continue
            memories = [read(side, path) for side in sides if side]
            result = read(blob, path)
            if None in memories or result is None:
                continue
            before, left_, right = (memory for memory in memories if memory)
            for field in ("tags", "links"):
                if any(version.field == field for version in result.competing):
                    raise Failed(f"{path}: {field} compete")
                lists = [
                    [repr(item) for item in getattr(memory, field)]
                    for memory in (before, left_, right)
                ]
                got = {repr(item) for item in getattr(result, field)}
                if field == "tags" and got != set(united(*lists)):
                    raise Failed(f"{path}: {field} {got} of {lists}")
                new = {item for side in lists[1:] for item in side} - set(lists[0])
                if field == "links" and not new <= got | set(map(repr, _links(result))):
                    raise Failed(f"{path}: {field} {got} of {lists}")

    def approvals(self) -> dict[str, str]:
        """Returns the path of each memory in the working tree, by the name that approves it."""
        paths = {path.relative_to(self.root).as_posix(): path for path in memory_files(self.root)}
        return {
            name: place
            for place, path in paths.items()
            for name in approvals_of(place, path.read_bytes())
        }


def _links(memory: Memory) -> Iterable[object]:
    return [link for version in memory.competing for link in body_links(version.text, {})]


def read(blob: Blob, path: str) -> Memory | None:
    """Returns the memory in a file, None if it has none."""
    parsed = parse(blob.data, path=path, modified=START)
    return parsed.memory if isinstance(parsed, Parsed) else None


def left(bases: Sequence[Tree], ours: Tree, theirs: Tree) -> set[str]:
    """Returns the words that a merge must keep: those that no side removed since the base."""
    before = {word for base in bases for word in base.words}
    removed = (before - ours.words) | (before - theirs.words)
    return (ours.words | theirs.words) - removed


def both(ours: bytes, theirs: bytes) -> bytes:
    """Returns our file with those lines of their body that it lacks."""
    text = ours.decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    body = theirs.decode().replace("\r\n", "\n")
    if body.removeprefix("\ufeff").startswith("---\n"):
        body = body.partition("\n---\n")[2]
    have = set(text.replace("\r\n", "\n").split("\n"))
    new = [line for line in body.split("\n") if line not in have]
    return (text.rstrip("\r\n") + newline + "".join(f"{line}{newline}" for line in new)).encode()


def same(name: str, first: Tree, second: Tree, skip: Iterable[str] = ()) -> bool:
    """Returns whether memories have the same bytes.

    Returns False if only competing texts are grouped in other ways. Raises `Failed` if a value or
    a line differs.
    """
    skipped, equal = set(skip), True
    paths = {path for path in {*first.memories, *second.memories} if "~" not in path} - skipped
    for path in sorted(paths):
        left, right = first.memories.get(path), second.memories.get(path)
        if left is None or right is None:
            raise Failed(f"{name}: only one of the results has {path}")
        if left.id != right.id:
            if _grouped(left, path) != _grouped(right, path):
                texts = f"{left.data.decode()}\n-- and --\n{right.data.decode()}"
                raise Failed(f"{name}: {path} differs:\n{texts}")
            equal = False
    return equal


def _grouped(blob: Blob, path: str) -> object:
    """Returns a memory with the set of the lines of each text that has competing versions."""
    memory = read(blob, path)
    if memory is None:
        return blob.data
    texts = {version.field for version in memory.competing if version.field.startswith("the ")}
    values = {name: getattr(memory, name) for name in memory.__dataclass_fields__}
    values["content"] = values["sections"] = None
    values["competing"] = [v for v in memory.competing if v.field not in texts]
    kept: dict[str, set[str] | str] = {}
    parts = {"the text": memory.content}
    parts |= {f"the section {name}": text for name, text in memory.sections.items()}
    for name in {*parts, *texts}:
        versions = [version.text for version in memory.competing if version.field == name]
        every = [parts.get(name, ""), *versions]
        kept[name] = set("\n".join(every).split("\n")) if versions else every[0]
    return values, kept
