"""Committing, pulling and pushing the memory, and finding private files that git tracks."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.data import disk
from mimo.data.disk import PRIVATE_FOLDERS, STORE
from mimo.data.files import DECISIVE, is_shared
from mimo.errors import Command, Conflict, Hint, Invalid, MindError, StorageFailed
from mimo.project import git
from mimo.project.revisions import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import CompletedProcess

_UNDER_WAY = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
"""Files that git has while a command of that name is in progress."""
_MAX_NAMES = 3
PROGRAM = "mind <mind@localhost>"
"""The author of commits of the program itself."""

_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")
_TRIES = 5
_NEW, _MISSING = "??", " D"
"""Marks of `git status`: not in git's index yet, and missing on the disk."""
_INTENT, _INTENT_AFTER_REMOVAL = " A", "DA"
"""Marks of `git status`: only the intent to add the file is in git's index (`git add -N`)."""
_EDITING_SECONDS = 3600
"""The time for which an editor of `git commit` is expected to be open."""
_SLOW = 600
"""Deadline in seconds for commands that run hooks, sign, or use the network."""


def unshared(root: Path) -> tuple[str, ...]:
    """Returns the tracked files in private folders, relative to the project.

    Empty outside git, and if git can't be asked.
    """
    if git.directory(root) is None:
        return ()
    try:
        listed = git.ask(root, "ls-files", "-z", "--", STORE)
    except MindError:
        return ()
    text = os.fsdecode(listed)
    if not any(f"/{name}" in text.casefold() for name in PRIVATE_FOLDERS):
        return ()  # Looking at each path takes longer.
    return tuple(path for path in text.split("\0") if path and not is_shared(path))


def check_idle(root: Path) -> None:
    """Raises `Conflict` during a merge, a rebase, a bisect or the like."""
    if command := under_way(root):
        raise Conflict(
            f"a `git {command}` is in progress in this repository",
            hint=f"{_ways_out(command)}; then sync again",
        )


def check_unattended(root: Path) -> None:
    """Raises `Conflict` if an automatic commit would be lost, or make the user's commit fail.

    On a detached HEAD, it would be on no branch. While the editor of `git commit` is open, git
    locks nothing, and refuses the user's commit if HEAD has moved.
    """
    if git.branch(root) is None:
        raise Conflict(
            "HEAD is detached, so a commit would be on no branch",
            hint="switch to a branch, or make one with `git switch -c NAME`",
        )
    if _is_editing(root):
        raise Conflict(
            "`git commit` may be waiting for its editor",
            hint="finish that commit; after an hour it counts as abandoned",
        )


def _is_editing(root: Path) -> bool:
    """Returns whether git wrote the message of a commit after the last commit, within an hour."""
    last_commit = git.stamp(root)
    with suppress(OSError):
        written = ((git.directory(root) or root) / "COMMIT_EDITMSG").lstat().st_mtime_ns
        is_recent = 0 <= time.time() - written / 1e9 < _EDITING_SECONDS
        return is_recent and last_commit is not None and written > last_commit.st_mtime_ns
    return False


def under_way(root: Path) -> str:
    """Returns the git command that is in progress, such as `merge`; empty if none is.

    In a git directory that the user can't read, the user has none.
    """
    folder = git.directory(root) or root
    for name, command in _UNDER_WAY.items():
        if os.path.lexists(folder / name):
            return command
    # If the user committed a conflict, git only has the list of the commits that are left.
    todo = disk.first_line(folder / "sequencer" / "todo")
    return todo and ("revert" if todo.startswith("revert ") else "cherry-pick")


def _ways_out(command: str) -> str:
    if command == "bisect":
        return "end it with `git bisect reset`"
    return f"finish it with `git {command} --continue`, or cancel it with `git {command} --abort`"


def pending(root: Path) -> tuple[Change, ...]:
    """Returns the files that a commit of the memory would contain, by path."""
    result = []
    for path, marks in sorted(_status(root).items()):
        removed = "D" in marks and not os.path.lexists(root / path)
        change = "removed" if removed else "added" if set(marks) & set("?A") else "changed"
        result.append(Change(path=path, change=change))
    return tuple(result)


def _status(root: Path) -> dict[str, str]:
    """Returns the two marks of `git status` for each changed file of the memory that is shared.

    git's ignore rules do not matter.
    """
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignored=no")
    listed = os.fsdecode(git.ask(root, "status", *words, "--", STORE)).split("\0")
    prefix = os.fsdecode(git.ask(root, "rev-parse", "--show-prefix").rstrip(b"\n"))
    private = {_identity(root / STORE / name) for name in PRIVATE_FOLDERS} - {None}
    result = {}
    for entry in listed:
        marks, path = entry[:2], entry[3 + len(prefix) :]
        # The name is empty for a repository inside `.mind/`.
        name = path.rpartition("/")[2]
        temporary = disk.is_temporary(name)
        if not name or temporary or not is_shared(path):
            continue
        # A private folder may have another name on this file system.
        if _identity(root / STORE / path.split("/")[1]) not in private:
            result[path] = marks
    return result


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def check_shared(root: Path) -> None:
    """Raises `Invalid` if ignore rules keep the whole memory out of git."""
    result = git.run(root, "check-ignore", "--quiet", "--", f"{STORE}/config.toml")
    if result.returncode == 0:
        hint = "remove it from .gitignore to share it; `git check-ignore -v .mind` shows the line"
        raise Invalid(f"git ignores `{STORE}/` here", hint=hint)


def commit(root: Path, message: str, paths: Iterable[str], author: str | None = None) -> str | None:
    """Commits exactly these files, with the user's hooks and signing.

    With an `author`, such as `Ana <ana@example.org>`, the committer may be the program: see
    `identity`. Other staged files stay staged. Returns the short id; None if the files equal the
    last commit after the user's filters. Raises `StorageFailed` with the message of git or of a
    hook. If a hook added a private file, the commit is undone, unless another commit followed.
    Without a commit, git's index is as it was before.
    """
    # With the user's `commit.cleanup`, a line that begins with `#` could be removed.
    options = ("--cleanup=whitespace", f"--message={message}")
    words = ["commit", "--quiet", *options, "--only", *_FROM_INPUT]
    settings: tuple[str, ...] = ()
    if author:
        words, settings = [*words, f"--author={author}"], identity(root)
    parent = os.fsdecode(git.run(root, "rev-parse", "--verify", "--quiet", "HEAD").stdout).strip()
    staged, intended = _entries(root), {p for p, marks in _status(root).items() if marks == _INTENT}
    added: set[str] = set()
    try:
        names = _committed(root, words, frozenset(paths), added, settings)
    except BaseException:  # An interruption, too.
        with suppress(MindError):
            _take_back(root, added)
        _remove_message(root, message)
        raise
    if not names:
        return None
    since = ("HEAD", f"^{parent}") if parent else ("HEAD",)
    tip, private = _private_since(root, "--first-parent", *since)
    if private:
        _undo(root, tip, parent, private)
        _set_entries(root, {path: staged.get(path) for path in names if path not in intended})
        if intended := intended.intersection(names):
            _set_entries(root, dict.fromkeys(intended))
            _do(root, "add", "--intent-to-add", *_FROM_INPUT, data=_names(intended))
        _remove_message(root, message)
        raise StorageFailed(
            f"a git hook added the private file `{private[0]}`, so the commit was undone",
            hint=Hint(
                "restore the ignore rules with ", Command("doctor", fix=True), ", then sync again"
            ),
            details={"files": private},
        )
    with suppress(MindError):  # The commit is made, even if another process locks git's index.
        _unstage_earlier(root, names)
    return git.ask(root, "rev-parse", "--short", tip).decode().strip()


def _private_since(root: Path, *revisions: str) -> tuple[str, list[str]]:
    """Returns the first of the commits that changed the memory, and the private files of all."""
    words = ("rev-list", "--reverse", "--topo-order", "--full-history", *revisions, "--", STORE)
    listed = git.ask(root, *words)
    form = ("--stdin", "-r", "--root", "-c", "--no-commit-id", "--name-only", "--no-renames", "-z")
    options = (*form, "--diff-filter=d", "--relative", "--", STORE)
    changed = os.fsdecode(git.ask(root, "diff-tree", *options, data=listed)).split("\0")
    private = sorted({path for path in changed if path and not is_shared(path)})
    return listed.decode().partition("\n")[0] or "HEAD", private


def _undo(root: Path, tip: str, parent: str, private: list[str]) -> None:
    """Moves the branch to the commit before. Raises `StorageFailed` if another one followed."""
    target = ("HEAD", parent, tip) if parent else ("-d", "HEAD", tip)
    try:
        _do(root, "update-ref", "-m", "mind sync: undone", *target)
    except StorageFailed as error:
        back = f"git reset --soft {parent[:10]}" if parent else "git update-ref -d HEAD"
        raise StorageFailed(
            f"a git hook added the private file `{private[0]}` to the commit `{tip[:10]}`, which "
            "can't be undone because another commit followed",
            hint=f"`{back}` undoes both; then commit without the private files",
            details={"files": private},
        ) from error


def _unstage_earlier(root: Path, names: Iterable[str]) -> None:
    """Gives files that a hook changed and staged the text of the commit in git's index.

    A hook stages into a temporary index of `git commit`, and the real one keeps the earlier text.
    If the staged text equals the file on the disk, it was staged after the commit, and stays.
    """
    marks = _status(root)
    unstage(root, [name for name in names if " " not in marks.get(name, " ")])


def _remove_message(root: Path, message: str) -> None:
    """Removes the message of a failed commit, which would look like that of an open editor."""
    with suppress(OSError, MindError):
        file = (git.directory(root) or root) / "COMMIT_EDITMSG"
        if message.strip().encode() in disk.read(file):
            file.unlink()


def _committed(
    root: Path,
    words: Sequence[str],
    paths: frozenset[str],
    added: set[str],
    settings: Iterable[str],
) -> list[str]:
    """Commits files, and returns their paths; empty if they equal the last commit.

    Meanwhile, other processes may remove files, and stage or commit them. Adds to `added` as
    `_known` does. Raises `StorageFailed`.
    """
    failure: StorageFailed | None = None
    names: list[str] = []
    for _ in range(_TRIES):
        previous, names = names, _known(root, paths, added)
        if not names or _equals_head(root, names):
            unstage(root, names)
            return []
        if failure and names == previous:
            break
        try:
            _do(root, *words, data=_names(names), settings=settings)
        except StorageFailed as error:
            failure = error
        else:
            return names
    raise failure or StorageFailed("git commit: the files change all the time")


def _known(root: Path, paths: frozenset[str], added: set[str]) -> list[str]:
    """Makes new files known to git's index, and returns the paths that a commit can name.

    `git commit` refuses names that it does not know. The index gets the intent to add these files,
    and not their text: if this process is killed, a later commit of the user does not contain them.
    Adds them to `added`. Raises `StorageFailed`.
    """
    marks = _status(root)
    for tries_left in reversed(range(_TRIES)):
        new = [path for path in paths if marks.get(path) == _NEW]
        if not new:
            break
        added.update(new)
        try:
            _do(root, "add", "--intent-to-add", *_FROM_INPUT, data=_names(new))
        except StorageFailed:  # Another process may have removed a file.
            if not tries_left:
                raise
        marks = _status(root)
    return sorted(path for path in paths if marks.get(path, _NEW) != _NEW)


def _equals_head(root: Path, names: Iterable[str]) -> bool:
    """Returns whether the files equal the last commit, after the user's filters."""
    quick = ("-c", "diff.ignoreSubmodules=all")
    words = ("commit", "--dry-run", "--short", "--untracked-files=no", "--only", *_FROM_INPUT)
    result = _waited(git.run_as_person, root, *quick, *words, data=_names(names))
    # git also ends with 1 if it does not know one of the names.
    errors = re.search(rb"^(?:error|fatal): ", result.stderr, re.MULTILINE)
    return result.returncode == 1 and not errors


def _take_back(root: Path, added: Iterable[str]) -> None:
    """Removes from git's index the files that it only has the intent to add."""
    marks, head = _status(root), _head(root)
    intended = (_INTENT, _INTENT_AFTER_REMOVAL)
    _set_entries(
        root,
        {
            path: None
            for path in added
            if marks.get(path) in intended or (marks.get(path) == _MISSING and path not in head)
        },
    )


# Entries of git's index. One is the mode and the id of a file's text, as git prints them.


def staged_texts(root: Path, id: str, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yields the path and the text of each staged file that the last commit has not.

    Only files at these paths, and other files of the memory whose staged text has the id. Raises
    `Invalid`.
    """
    words = ("--raw", "--no-abbrev", "--no-renames", "--diff-filter=d", "--relative", "-z")
    listed = os.fsdecode(git.ask(root, "diff", "--cached", *words)).split("\0")
    staged = {path: marks.split(" ")[3] for marks, path in zip(*[iter(listed)] * 2, strict=False)}
    targets = set(paths)
    if id and staged:
        words = ("--cached", "-z", "--files-with-matches", "--fixed-strings", "-e", id)
        targets.update(os.fsdecode(git.run(root, "grep", *words, "--", STORE).stdout).split("\0"))
    for path in sorted(targets & staged.keys()):
        yield path, git.ask(root, "cat-file", "blob", staged[path])


def unstage(root: Path, paths: Iterable[str]) -> None:
    """Gives files in git's index the text of the last commit; removes those that are not in it.

    The files on the disk do not change, and none is read. Raises `StorageFailed`.
    """
    if paths := tuple(paths):
        head = _head(root, paths)
        _set_entries(root, {path: head.get(path) for path in paths})


def _head(root: Path, paths: Iterable[str] = ()) -> dict[str, str]:
    """Returns the entries of the last commit for the files of the memory and these, by path."""
    extra_paths = [f":(literal){path}" for path in paths if not path.startswith(f"{STORE}/")]
    words = ("ls-tree", "-r", "-z", "HEAD", "--", STORE, *extra_paths)
    listed = os.fsdecode(git.run(root, *words).stdout)
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {path: f"{marks.split(' ')[0]} {marks.split(' ')[2]}" for marks, _, path in entries}


def _entries(root: Path) -> dict[str, str]:
    """Returns the entries of git's index for the files of the memory that do not conflict."""
    listed = os.fsdecode(git.ask(root, "ls-files", "--stage", "-z", "--", STORE))
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {path: marks.removesuffix(" 0") for marks, _, path in entries if marks.endswith(" 0")}


def _set_entries(root: Path, entries: Mapping[str, str | None]) -> None:
    """Sets entries of git's index by path; None removes one. Raises `StorageFailed`."""
    prefix = os.fsdecode(git.ask(root, "rev-parse", "--show-prefix").rstrip(b"\n"))
    removed = "".join(f"{path}\0" for path, entry in entries.items() if entry is None)
    added = "".join(f"{entry}\t{prefix}{path}\0" for path, entry in entries.items() if entry)
    for words, lines in ((("--force-remove", "--stdin"), removed), (("--index-info",), added)):
        if lines:
            _do(root, "update-index", "-z", *words, data=os.fsencode(lines), run=git.run)


def _names(paths: Iterable[str]) -> bytes:
    """Returns paths as git reads them with the options `_FROM_INPUT`."""
    return b"".join(b":(literal)" + os.fsencode(path) + b"\0" for path in paths)


def pull(root: Path) -> str:
    """Fetches and merges the upstream's commits, and returns the output of git.

    Raises as `fetch` does, and `Conflict` if the commits conflict: git then waits for the user to
    resolve the conflicts.
    """
    # The commits that were checked: without a name, `git pull` would fetch again.
    names = (".", upstream) if (upstream := fetch(root)) else ()
    keys = (f"branch.{git.branch(root)}.rebase", "pull.rebase", "pull.ff")
    settings = [git.run(root, "config", "--get", key).stdout for key in keys]
    try:
        options = [] if any(settings) else ["--no-rebase"]
        return _do(root, "pull", *options, "--no-edit", *names)
    except StorageFailed:
        words = ("--name-only", "--no-relative", "--diff-filter=U", "-z")
        listed = os.fsdecode(git.run(root, "diff", *words).stdout).split("\0")
        files, command = sorted(filter(None, listed)), under_way(root)
        if not files or not command:
            raise
        raise Conflict(
            f"the pulled commits conflict in {some(files)}",
            hint=f"edit and `git add` the conflicting files, then {_ways_out(command)}",
            details={"files": files},
        ) from None


def some(names: Sequence[str]) -> str:
    """Returns the first names in backticks, and the number of the others."""
    more = len(names) - _MAX_NAMES
    listing = ", ".join(f"`{name}`" for name in names[:_MAX_NAMES])
    return f"{listing} and {more:,} more" if more > 0 else listing


def fetch(root: Path) -> str:
    """Fetches the upstream's commits, and returns the local ref of them; empty without an upstream.

    Raises `Conflict` if a file of the upstream would replace a private file: git overwrites ignored
    files without asking. Raises `Invalid` if git can't list the files of the upstream.
    """
    _do(root, "fetch", "--quiet")
    if git.run(root, "rev-parse", "--verify", "--quiet", "@{upstream}^{commit}").returncode:
        if _fetched_without_ref(root):
            raise Invalid(
                "git does not store the upstream branch here, so its files can't be checked",
                hint="`git remote set-branches --add REMOTE BRANCH` makes git store it",
            )
        return ""
    tracked = set(unshared(root))
    lost = {
        private: path
        for path in _of_upstream(root)
        for private in _replaced(root, path)
        if private not in tracked
    }
    if lost:
        example = max(lost)  # The index comes before the memories, and can be made again.
        raise Conflict(
            f"a pull would overwrite the private file `{example}`",
            hint=f"the upstream has a file at `{lost[example]}`; remove it there, or move yours",
            details={"files": sorted(lost)},
        )
    return os.fsdecode(git.ask(root, "rev-parse", "--symbolic-full-name", "@{upstream}")).strip()


def _fetched_without_ref(root: Path) -> bool:
    """Returns whether git has fetched commits that `git pull` would merge."""
    try:
        fetched = disk.read((git.directory(root) or root) / "FETCH_HEAD")
    except FileNotFoundError:
        return False
    return any(b"\tnot-for-merge\t" not in line for line in fetched.splitlines())


def _of_upstream(root: Path) -> Iterator[str]:
    """Yields the files of the memory in the upstream, relative to the project.

    A file in place of the folder of the memory, or of a folder above it, counts as `.mind`.
    """
    prefix = os.fsdecode(git.ask(root, "rev-parse", "--show-prefix").rstrip(b"\n"))
    parts = f"{prefix}{STORE}".split("/")
    folders = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    words = ("ls-tree", "-z", "--full-tree")
    listed = git.ask(root, *words, "-t", "@{upstream}", "--", *folders)
    kinds = {
        os.fsdecode(path): about.split()[1]
        for about, _, path in (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
    }
    if any(kinds.get(folder, b"tree") != b"tree" for folder in folders):
        yield STORE
    elif folders[-1] in kinds:
        listed = git.ask(root, *words, "-r", "--name-only", f"@{{upstream}}:./{STORE}")
        yield from (f"{STORE}/{path}" for path in os.fsdecode(listed).split("\0") if path)


def _replaced(root: Path, path: str) -> Iterator[str]:
    """Yields the private files that git would replace to write a file of the memory."""
    if _is_folder(root / path):
        for folder, _, names in os.walk(root / path):
            below = (Path(folder, name).relative_to(root).as_posix() for name in names)
            yield from (file for file in below if not is_shared(file))
    elif not is_shared(path):
        # A file in place of a folder is replaced, too.
        for place in (root / path, *(root / path).parents):
            if place in (root / STORE, root):
                break
            if os.path.lexists(place) and not _is_folder(place):
                yield place.relative_to(root).as_posix()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def push(root: Path, *words: str) -> str:
    """Pushes the branch, unless a commit that no remote has contains a private file."""
    if git.branch(root) is None:
        raise Invalid(
            "HEAD is detached, so no branch can be pushed", hint="run `git switch -c NAME`"
        )
    if private := _private_since(root, "HEAD", "--not", "--remotes")[1]:
        raise Invalid(
            f"the commits to push contain the private file `{private[0]}`",
            hint="take it out of them, for example with `git rebase --interactive`",
            details={"files": private},
        )
    return _do(root, "push", "--quiet", *words)


def identity(root: Path) -> tuple[str, ...]:
    """Returns git's options that name the program as committer, unless the user has a name."""
    defaults = {"user.name": "mind", "user.email": "mind@localhost"}
    if all(git.run(root, "config", "--get", key).stdout.strip() for key in defaults):
        return ()
    return tuple(word for key, value in defaults.items() for word in ("-c", f"{key}={value}"))


# A working copy that belongs to the program.


def merge_upstream(root: Path, *options: str) -> None:
    """Merges the fetched commits of the upstream, memories field by field.

    A memory that one side changed and the other removed is kept. Raises `Conflict` if files other
    than memories conflict; nothing has changed then.
    """
    settings = (*identity(root), "-c", f"merge.mind.driver={git.own_driver()}")
    words = (*settings, "merge", "--quiet", "--no-edit", *options, "@{upstream}")
    result = git.run_as_person(root, *words, seconds=_SLOW)
    if result.returncode == 0:
        return
    stages: dict[bytes, set[bytes]] = {}
    for entry in git.ask(root, "ls-files", "--unmerged", "-z").split(b"\0"):
        marks, _, path = entry.partition(b"\t")
        if path:
            stages.setdefault(path, set()).add(marks.rsplit(b" ", 1)[-1])
    if stages and all(len(sides) == 2 and b"1" in sides for sides in stages.values()):
        names = _names(map(os.fsdecode, stages))
        _do(root, "add", *_FROM_INPUT, data=names)
        _do(root, "commit", "--quiet", "--no-edit", settings=settings)
        return
    git.run_as_person(root, "merge", "--abort", seconds=_SLOW)
    reason = git.complaint(result.stderr or result.stdout)
    if stages:
        reason = f"they conflict in {some(sorted(map(os.fsdecode, stages)))}"
    raise Conflict(
        f"the commits of others can't be merged: {reason}", hint=f"merge them by hand in `{root}`"
    )


def publish(root: Path) -> None:
    """Pushes the branch to the remote `origin`, and never by force. Raises `StorageFailed`."""
    push(root, "--set-upstream", "origin", f"HEAD:refs/heads/{git.branch(root)}")


# The user's memory for all projects, which the user's machines share.


def set_remote(root: Path, url: str) -> None:
    """Makes a repository the remote `origin` of this one, with its default branch as upstream.

    Raises `StorageFailed` if it can't be reached; nothing has changed then.
    """
    listed = _do(root, "ls-remote", "--symref", "--", url, "HEAD", "refs/heads/*")
    names = re.findall(r"^ref: (refs/heads/\S+)\tHEAD$", listed, re.MULTILINE)
    names += sorted(re.findall(r"\t(refs/heads/\S+)$", listed, re.MULTILINE))
    own_branch = git.branch(root) or "main"
    has_remote = git.output(root, "remote", "get-url", "origin") is not None
    git.ask(root, "remote", "set-url" if has_remote else "add", "origin", url)
    git.ask(root, "config", f"branch.{own_branch}.remote", "origin")
    target = names[0] if names else f"refs/heads/{own_branch}"
    git.ask(root, "config", f"branch.{own_branch}.merge", target)


def merge_machines(root: Path) -> str:
    """Fetches and merges the commits of the user's other machines, and returns what changed.

    The histories need not be related: a machine may join with memories of its own. Raises as
    `fetch` does, and `Conflict` for the repository of a project, whose settings would apply here,
    and for one with private files, which would count as the user's own.
    """
    if not (upstream := fetch(root)):
        return ""
    listed = git.ask(root, "ls-tree", "-r", "-z", "--name-only", upstream)
    for path in os.fsdecode(listed).split("\0"):
        name = path.casefold()  # Some file systems have one file for both.
        if name in DECISIVE:
            raise Conflict(
                f"the remote has `{path}`, so it is the repository of a project",
                hint="name an empty repository, or one with your memory for all projects",
            )
        is_named_so = path.startswith(f"{STORE}/")
        if name.startswith(f"{STORE}/") and not (is_named_so and is_shared(path)):
            raise Conflict(
                f"the remote has `{path}`, which no machine of yours shares", hint="remove it there"
            )
    before = os.fsdecode(git.ask(root, "rev-parse", "HEAD")).strip()
    merge_upstream(root, "--allow-unrelated-histories")
    changes = git.output(root, "diff", "--shortstat", before, "HEAD")
    return changes or "already up to date"


def push_machine(root: Path) -> str:
    """Pushes to the branch that the user's machines share, as `push` does."""
    target = git.output(root, "config", f"branch.{git.branch(root)}.merge")
    return push(root, "origin", f"HEAD:{target}")


def _do(
    root: Path,
    *words: str,
    data: bytes = b"",
    settings: Iterable[str] = (),
    run: Callable[..., CompletedProcess[bytes]] = git.run_as_person,
) -> str:
    """Runs a git command, and returns its output.

    Waits if another process works with git's index. Raises `StorageFailed` with git's message.
    """
    result = _waited(run, root, *settings, *words, data=data)
    if result.returncode:
        errors = result.stderr or result.stdout
        reason = git.complaint(errors)
        if b"sparse-checkout" in result.stderr:
            raise StorageFailed(
                f"git {words[0]}: files of the memory are outside of this sparse checkout",
                hint=f"run `git sparse-checkout add {STORE}` in `{root}`",
            )
        if _is_locked(result):
            lock = reason.partition("'")[2].rpartition("'")[0]
            raise StorageFailed(
                f"`{lock}` is held by another process",
                hint="wait until git is done; if no git is running, remove the file",
                details={"path": lock},
            )
        raise StorageFailed(
            f"git {words[0]}: {reason}",
            hint=_advice(errors.decode("utf-8", "replace"), reason) or "see `git status`",
        )
    return (result.stdout + result.stderr).decode("utf-8", "replace").strip()


def _waited(
    run: Callable[..., CompletedProcess[bytes]], root: Path, *words: str, data: bytes
) -> CompletedProcess[bytes]:
    """Returns the result of a git command; waits if another process works with git's index."""
    for is_last in disk.attempts():
        result = run(root, *words, data=data, seconds=_SLOW)
        if is_last or not _is_locked(result):
            return result
    raise AssertionError


def _is_locked(result: CompletedProcess[bytes]) -> bool:
    return bool(result.returncode) and b"index.lock': File exists" in result.stderr


def _advice(printed: str, reason: str) -> str:
    """Returns the last lines that git printed beside the reason, its commands in backticks."""
    parts: list[str] = []
    lines = (line.removeprefix("hint: ").removeprefix("hint:") for line in printed.splitlines())
    for text in filter(str.strip, lines):
        is_result = re.fullmatch(git.HOOK_RESULT, text)
        is_note = text.startswith((*git.NOTES, "*** ")) or text == "Aborting"
        if is_note or is_result or text.endswith(reason):
            continue
        if text[0].isspace():
            parts[-1:] = [" ".join([*parts[-1:], f"`{text.strip()}`"])]
        elif parts and text[0].islower():
            parts[-1] += f" {text.strip()}"
        else:
            parts.append(text.strip())
    return "; ".join(parts[-3:])
