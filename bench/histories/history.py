"""One random history: a setting, several events, and the checks at the end."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.histories.clone import Clone, Failed, same
from bench.histories.edits import Edits, Words
from bench.histories.people import Clock, Person
from mimo.call import Call
from mimo.features.history.commands import blame, diff, log
from mimo.features.upkeep.checks import doctor
from mimo.memory.model import Record
from mimo.operations import finding, past, syncing

SETTINGS = (
    "one repository", "project in a folder", "project in a submodule", "submodule beside",
    "linked worktree", "sparse clone", "shallow clone", "core.autocrlf", "eol attribute",
)  # fmt: skip


NOT_VOUCHED = ("core.autocrlf", "eol attribute", "project in a submodule")
"""Settings with which git does not vouch for one's own commits (docs/trust.md)."""
END = (
    "index like a new one", "doctor", "trust", "log, blame, diff and list at a revision",
)  # fmt: skip
"""The checks at the end."""


class History:
    """A repository of Ann, a clone of Ben, and what they do."""

    def __init__(self, folder: Path, seed: int, events: int = 3) -> None:
        """Takes an empty folder. All that happens follows from the seed."""
        self.chance = random.Random(seed)
        self.folder, self.seed, self._events = folder, seed, events
        self.setting = SETTINGS[seed % len(SETTINGS)]
        self.tried: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        """Results that are no fault, such as texts that are grouped in other ways."""
        self.now = ""
        """The kind of operation under way."""
        self.clock = Clock()
        self.edits = Edits(Words(self.chance))
        self.people: list[Person] = []
        self._names = itertools.count(1)
        self.own: set[str] = set()
        """The names of texts that Ann's mind wrote or that Ann committed."""
        self.foreign: set[str] = set()
        """The names of texts that Ben committed."""

    def run(self) -> None:
        """Raises `Failed` or another error if a promise was broken."""
        environ = dict(os.environ)
        try:
            self._begin(self.setting)
            self._make()
            self.own.clear()  # another repository of Ann does not vouch for its commits here
            kinds = list(EVENTS)
            for _ in range(self._events):
                kind = self.chance.choice(kinds)
                self._begin(kind)
                EVENTS[kind](self)
                kinds.remove(kind)
            self._end()
        finally:
            for person in self.people:
                person.close()
            os.environ.clear()
            os.environ.update(environ)

    def _begin(self, kind: str) -> None:
        self.now = kind
        self.tried[kind] += 1

    # The repositories.

    def _make(self) -> None:
        self.ann, self.ben = (
            Person(name, self.folder, self.clock, self.chance) for name in ("ann", "ben")
        )
        self.people = [self.ann, self.ben]
        top = self.folder / "shop"
        prefix = "pkg/" if self.setting == "project in a folder" else ""
        if self.setting in ("project in a submodule", "submodule beside"):
            top = self._with_submodule(top)
        elif self.setting == "shallow clone":
            self._first(self.folder / "origin", prefix)
            self.ann.git(
                self.folder, "clone", "-q", "--depth=2", f"file://{self.folder}/origin", "shop"
            )
        else:
            top.mkdir()
            self.ann.git(top, "init", "-q")
        if self.setting == "core.autocrlf":
            self.ann.git(top, "config", "core.autocrlf", "true")
        if self.setting == "eol attribute":
            (top / ".gitattributes").write_text("*.md text eol=crlf\n")
        if not (top / prefix / ".mind").exists():
            self._fill(top, prefix)
        self.shop = Clone(self.ann, top, prefix, driver=True)
        self.ann.init(self.shop.root)
        self.ann.install(self.shop.root)
        self.ann.call(self.shop.root).mind.trust.begin()
        if self.setting == "sparse clone":
            (top / "src").mkdir()
            (top / "src" / "main.py").write_text("print()\n")
            self.commit(self.shop)
            self.shop.git("sparse-checkout", "set", ".mind", "docs")
        if self.setting == "linked worktree":
            linked = self.folder / "linked"
            self.shop.git("worktree", "add", "-q", "-b", "work", str(linked))
            self.shop = Clone(self.ann, linked, prefix, driver=True)
        scratch = self.folder / "scratch"
        self.shop.git("worktree", "add", "-q", "--detach", str(scratch))
        self.scratch = Clone(self.ann, scratch, prefix, driver=True)
        self.main = self.shop.ask("symbolic-ref", "--short", "HEAD")
        self._clone_of_ben(prefix)

    def _with_submodule(self, top: Path) -> Path:
        """Makes a repository with another one in it, and returns the top of the project's."""
        inner = self.folder / "inner"
        inner.mkdir()
        self.ann.git(inner, "init", "-q")
        if self.setting == "project in a submodule":
            self._fill(inner, "")
        else:
            self._first_of(inner)
        top.mkdir()
        self.ann.git(top, "init", "-q")
        self.ann.git(top, "submodule", "--quiet", "add", str(inner), "lib")
        if self.setting == "submodule beside":
            self._fill(top, "")
            return top
        self.ann.git(top, "commit", "-qm", "submodule")
        self.ann.git(top / "lib", "checkout", "-q", "-B", "main")
        return top / "lib"

    def _first_of(self, inner: Path) -> None:
        (inner / ".mind" / "facts").mkdir(parents=True)
        (inner / ".mind" / "facts" / "a.md").write_text("---\nid: a\ntype: fact\n---\nInner.\n")
        self.ann.git(inner, "add", "-A")
        self.ann.git(inner, "commit", "-qm", "inner")

    def _first(self, origin: Path, prefix: str) -> None:
        origin.mkdir()
        self.ann.git(origin, "init", "-q")
        self._fill(origin, prefix)
        self._edit_and_commit(Clone(self.ann, origin, prefix, driver=True))
        self._edit_and_commit(Clone(self.ann, origin, prefix, driver=True))

    def _fill(self, top: Path, prefix: str) -> None:
        root = top / prefix
        root.mkdir(exist_ok=True)
        (top / "README.md").write_text(f"# {self.edits.words()}\n")
        self.ann.init(root)
        call = self.ann.call(root)
        for _ in range(self.chance.randint(3, 5)):
            self.edits.store(call)
        self.edits.ingest(call)
        self.commit(Clone(self.ann, top, prefix, driver=True))

    def _clone_of_ben(self, prefix: str) -> None:
        """Clones Ann's repository for Ben, with or without the merge driver."""
        place = self.folder / "bens"
        driver = self.chance.random() < 0.5
        source = self.shop.ask("rev-parse", "--path-format=absolute", "--git-common-dir")
        self.ben.git(self.folder, "clone", "-q", "-b", self.main, source, str(place))
        if self.chance.random() < 0.3:
            self.ben.git(place, "config", "core.autocrlf", self.chance.choice(["true", "input"]))
        self.bens = Clone(self.ben, place, prefix, driver=driver)
        self.ben.init(self.bens.root)
        if driver:
            self.ben.install(self.bens.root)

    # What they do.

    def commit(self, clone: Clone, *words: str) -> None:
        """Commits all changes, and notes whose texts they are."""
        clone.git("add", "-A")
        clone.git("commit", "-q", "--allow-empty", "-m", "edit", *words)

    def _edit(self, clone: Clone, *, plain: bool = False) -> None:
        """Changes a file or two; `plain` if other branches must not disagree about names."""
        for _ in range(self.chance.randint(1, 2)):
            kind = self.chance.random()
            if kind < 0.45:
                call = clone.person.call(clone.root)
                self.edits.by_mind(call, add=True, remove=not plain)
            elif kind < 0.93:
                self.edits.by_hand(clone.root, rename=not plain, remove=not plain)
            else:
                self.edits.bytes_of(clone.root)

    def _edit_and_commit(self, clone: Clone, *, plain: bool = False) -> str:
        before = set(clone.approvals())
        self._edit(clone, plain=plain)
        texts = set(clone.approvals()) - before
        (self.own if clone.person.name == "ann" else self.foreign).update(texts)
        self._commit_somehow(clone)
        return clone.commit_of()

    def _commit_somehow(self, clone: Clone) -> None:
        if self.chance.random() < 0.15:
            syncing.sync(clone.person.call(clone.root), message=None)
        self.commit(clone)

    def _branch(self, clone: Clone, start: str, *, plain: bool = False, most: int = 2) -> str:
        """Returns a new branch with one or more commits of edits."""
        name = f"b{next(self._names)}"
        clone.git("checkout", "-q", "-b", name, start)
        for _ in range(self.chance.randint(1, most)):
            self._edit_and_commit(clone, plain=plain)
        return name

    def _home(self) -> None:
        self.shop.git("checkout", "-q", self.main)

    def _two(self, **options: bool) -> tuple[str, str]:
        start = self.shop.commit_of()
        return self._branch(self.shop, start, **options), self._branch(self.shop, start, **options)

    def _elsewhere(self, start: str, *heads: str) -> Clone:
        """Returns the scratch working tree after merges of heads into a commit, one by one."""
        scratch = self.scratch
        scratch.git("checkout", "-q", "-f", "--detach", start)
        stuck: set[str] = set()
        for head in heads:
            scratch.merge(head)
            stuck |= scratch.stuck
        scratch.stuck = stuck
        return scratch

    def _note(self, *, equal: bool) -> None:
        self.noted["same bytes" if equal else "competing texts in other groups"] += 1

    def merge_two(self) -> None:
        """Merges two branches, in both directions."""
        first, second = self._two()
        self.shop.git("checkout", "-q", first)
        self.shop.merge(second)
        stuck = set(self.shop.stuck)
        other = self._elsewhere(second, first)
        self._note(equal=same(self.now, self.shop.tree(), other.tree(), stuck | other.stuck))
        merged = self.shop.tree()
        self.shop.merge(other.commit_of())
        if not stuck | other.stuck and merged.memories != self.shop.tree().memories:
            raise Failed("a merge of two equal merges changes something")
        self._keep()

    def _keep(self) -> None:
        """Makes the current commit that of the main branch."""
        commit = self.shop.commit_of()
        self._home()
        self.shop.merge(commit)

    def three_orders(self) -> None:
        """Merges three branches in all orders."""
        start = self.shop.commit_of()
        heads = [self._branch(self.shop, start, plain=True, most=1) for _ in range(3)]
        self._home()
        results = []
        for order in itertools.permutations(heads):
            done = self._elsewhere(order[0], *order[1:])
            results.append((done.tree(), set(done.stuck), done.commit_of()))
        stuck = {path for _, paths, _ in results for path in paths}
        first, _, commit = results[0]
        for tree, _, _ in results[1:]:
            self._note(equal=same(self.now, first, tree, stuck))
        self.shop.merge(commit)

    def octopus(self) -> None:
        """Merges three branches at once, which gives the same as one after the other."""
        start = self.shop.commit_of()
        heads = [self._branch(self.shop, start, plain=True, most=1) for _ in range(3)]
        self._home()
        done = self._elsewhere(start, *heads)
        stuck = set(done.stuck)
        if self.shop.git("merge", "-q", "--no-edit", *heads, fails=True).returncode:
            self.noted["octopus refused by git"] += 1
            self.shop.git("reset", "-q", "--hard", start)
            self.shop.merge(done.commit_of())
            return
        self.noted["octopus merged by git"] += 1
        same(self.now, self.shop.tree(), done.tree(), stuck)
        self.shop.check_files(self.now)

    def criss_cross(self) -> None:
        """Merges two branches into each other while both go on, and then again."""
        first, second = self._two(plain=True)
        before = self.shop.commit_of(second)
        self._edit_and_commit(self.shop, plain=True)
        self.shop.merge(first)
        self.shop.git("checkout", "-q", first)
        self._edit_and_commit(self.shop, plain=True)
        self.shop.merge(before)
        self._edit_and_commit(self.shop, plain=True)
        other = self._elsewhere(second, first)
        stuck = set(other.stuck)
        self.shop.merge(second)
        self._note(equal=same(self.now, self.shop.tree(), other.tree(), stuck | self.shop.stuck))
        self._keep()

    def rebase(self) -> None:
        """Rebases a branch; without competing texts that gives the same as a merge."""
        first, second = self._two(plain=True)
        merged = self._elsewhere(first, second)
        stuck, tree = set(merged.stuck), merged.tree()
        self.shop.git("checkout", "-q", second)
        self.shop.rebase(first)
        picked = self.shop.ask("rev-list", f"{first}..HEAD").split()
        if not any(each.competing for each in (tree, *map(self.shop.tree, [first, *picked]))):
            same(self.now, tree, self.shop.tree(), stuck | self.shop.stuck)
            self.noted["rebase like a merge"] += 1
        self._keep()

    def cherry_pick(self) -> None:
        """Picks a commit of a branch, and merges the branch later."""
        first, _ = self._two()
        self.shop.cherry_pick(first)
        if self.chance.random() < 0.7:
            self._edit_and_commit(self.shop)
            self.shop.merge(first)
        self._keep()

    def revert(self) -> None:
        """Reverts an earlier commit."""
        self._edit_and_commit(self.shop)
        commits = self.shop.ask("rev-list", "--first-parent", "-6", "HEAD").split()
        parents = [self.shop.ask("rev-list", "--parents", "-1", each) for each in commits]
        later = [commit for commit, parent in zip(commits, parents, strict=True) if " " in parent]
        self.shop.revert(self.chance.choice(later))

    def stash(self) -> None:
        """Stashes edits, and applies them after another commit."""
        self._edit(self.shop, plain=True)
        self.shop.git("add", "-A")  # git refuses to apply a stash over untracked files
        self.shop.git("stash", "push", "-q")
        self._edit_and_commit(self.shop, plain=True)
        if self.shop.ask("stash", "list"):
            self.shop.pop()

    def amend(self) -> None:
        """Amends a commit, and merges a branch that has the commit before that."""
        first = self._edit_and_commit(self.shop)
        branch = self._branch(self.shop, first)
        self._home()
        self._edit(self.shop)
        self.commit(self.shop, "--amend")
        self.shop.merge(branch)

    def other_client(self) -> None:
        """Ben merges in a clone of his own, and Ann merges the result."""
        name = "Ben has the driver" if self.bens.driver else "Ben's git merges text"
        self.noted[name] += 1
        for _ in range(self.chance.randint(1, 2)):
            self._edit_and_commit(self.bens)
        self._edit_and_commit(self.shop)
        before = set(self.shop.approvals())
        self.bens.git("fetch", "-q", "origin", self.main)
        self.bens.merge("FETCH_HEAD")
        self.foreign.update(set(self.bens.approvals()) - before)
        self._edit_and_commit(self.shop)
        self.shop.git("fetch", "-q", str(self.bens.top), "HEAD")
        self.shop.merge("FETCH_HEAD")

    # The end.

    def _end(self) -> None:
        clone, call = self.shop, self.ann.call(self.shop.root)
        self._begin(END[0])
        listed = finding.listing(call).records
        fresh = self._rebuilt(call)
        if _shown(listed) != _shown(fresh):
            raise Failed("the index differs from a new one")
        self._begin(END[1])
        for check in doctor(call).checks:
            if check.verdict == "fault":
                raise Failed(f"doctor: {check.name}: {check.message} {check.file}")
        self._begin(END[2])
        self._check_trust(call)
        self._begin(END[3])
        commits = clone.ask("rev-list", "HEAD").split()
        first, second = self.chance.choice(commits), self.chance.choice(commits)
        log(call)
        owned = [r for r in listed if r.place.owned and r.place.path.startswith(".mind/")]
        if owned:
            record = self.chance.choice(owned)
            blame(call, record.memory.id)
            log(call, record.memory.id)
        diff(call, f"{first}..{second}")
        finding.listing(past.at(call, first).call)

    def _check_trust(self, call: Call) -> None:
        """Checks that texts by Ann are trusted, and those by Ben are not."""
        for name, path in self.shop.approvals().items():
            if name in self.foreign - self.own and call.mind.trust.trusted(name):
                raise Failed(f"{path} of another user is trusted")
            if (
                self.setting not in NOT_VOUCHED
                and name in self.own
                and not call.mind.trust.trusted(name)
            ):
                raise Failed(f"{path} of the user is not trusted")

    def _rebuilt(self, call: Call) -> tuple[Record, ...]:
        from shutil import rmtree

        opened = self.ann.call(self.shop.root, fresh=True)
        call.mind.close()
        rmtree(self.shop.root / ".mind" / ".index", ignore_errors=True)
        return finding.listing(opened).records


def _shown(records: tuple[Record, ...]) -> Sequence[object]:
    return sorted((r.place.path, r.place.line, r.memory.id, repr(r)) for r in records)


EVENTS: dict[str, Callable[[History], None]] = {
    "merge, both directions": History.merge_two,
    "three branches, six orders": History.three_orders,
    "octopus": History.octopus,
    "criss-cross": History.criss_cross,
    "rebase": History.rebase,
    "cherry-pick": History.cherry_pick,
    "revert": History.revert,
    "stash": History.stash,
    "amend": History.amend,
    "clone of another user": History.other_client,
}
