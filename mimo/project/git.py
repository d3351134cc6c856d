"""Running git: the only module that starts it.

Commands that read ignore every setting of the repository that could run a program or name other
files. Some facts are read from git's files, which is faster than starting git.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from mimo.data import disk
from mimo.errors import Invalid
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import CompletedProcess, Popen

_NO_BARE = "safe.bareRepository=explicit"
_READING = (
    _NO_BARE,
    "protocol.allow=never",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.askPass=",
    "core.alternateRefsCommand=:",
    "core.sshCommand=false",
    "credential.helper=",
    "core.quotePath=true",
    "diff.submodule=short",
    "submodule.recurse=false",
    "log.showSignature=false",
    "log.follow=false",
    "log.mailmap=false",
    "log.showRoot=true",
    "log.diffMerges=separate",
    "diff.renames=true",
    f"diff.orderFile={os.devnull}",
    "trailer.separators=:",
    "gpg.program=gpg",
    "gpg.openpgp.program=gpg",
    "gpg.x509.program=gpgsm",
    "gpg.ssh.program=ssh-keygen",
    "i18n.logOutputEncoding=UTF-8",
)
"""Settings that override those of the repository."""
_QUIET = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
}
"""`GIT_ALLOW_PROTOCOL` is the one that a repository's `protocol.file.allow` can't override."""
_FLAGS = {
    "log": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--no-color"),
    "blame": ("--no-textconv",),
    "status": ("--ignore-submodules=all",),
}
"""Options that keep a sub-command from running programs that attributes or submodules name."""
_DISABLED = ("clean=", "smudge=", "process=", "required=false")

_KEPT_NAMES = frozenset(
    "GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_CONFIG_COUNT GIT_EXEC_PATH"
    " GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM".split()
)
_KEPT_GROUPS = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_OF_PERSON = frozenset(("GIT_ASKPASS", "GIT_ALLOW_PROTOCOL"))
_OF_PERSON_GROUPS = (
    *("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_"),
    "GIT_TRACE",
)

_READ_ALWAYS = ("HEAD", "config", "index", "packed-refs", "commondir")
"""Files of a git directory that most commands open."""
_MOST_RULES = 1_000_000
"""The largest file of ignore rules; git reads them whole."""
SECONDS = 60
"""Deadline of a command that reads."""
_SECONDS_OF_OUTPUT = 5
_SECONDS_OF_RUNNING = 600
PARTIAL = "in a partial clone, `git fetch --refetch --no-filter` gets the missing files"
_NO_GIT = "install git; without it, mind works except for history and sync"

NOTES = ("[WARNING] ", "[INFO] ", "From .", " * remote-tracking branch ", " * branch ")
"""The beginnings of lines without a reason: of the program pre-commit, and of a local fetch."""
HOOK_RESULT = r"(.*[^.])\.{3,}(?:\([^()]*\))?(Passed|Failed|Skipped)"
"""A line in which pre-commit reports the result of a hook."""
_ERRORS = ("fatal: ", "error: ", "[ERROR] ")

_BRANCH = r"ref: refs/heads/([^\x00-\x1f\x7f]+)"
_IN_REFTABLE = ".invalid"
"""The branch in the file HEAD if git stores the real one in a reftable."""

DRIVER = (
    'd=${GIT_DIR:-.git}; [ -d "$d" ] || d=$(git rev-parse --git-dir); d=$d/mind-merge-$PPID; '
    "set -- $(git hash-object --no-filters %O %A %B); r=$d/%P/$1-$2-$3; "
    'if [ -s "$r" ]; then mv -f "$r" %A || exit 255; '
    'else mind merge-driver %O %A %B %P "$d" || git merge-file %A %O %B; fi'
)
"""The merge driver for memories; if mind is not on the PATH, git merges them as text.

git starts it for each file, and Python takes fifty times longer to start than to merge. So the
first call in a git process merges all files and stores the results in a folder of that process
(`mind-merge-…` in the git directory), under the ids of the three texts. Later calls take them. A
text that is not in it, such as that of a renamed file, is merged by a call of its own.
"""


def run(
    root: Path,
    *words: str,
    data: bytes = b"",
    seconds: float = SECONDS,
    index: bool = False,
    globs: bool = False,
) -> CompletedProcess[bytes]:
    """Returns the result of a git command that reads, for any exit status.

    `words` are the sub-command and its arguments; `-c NAME=VALUE` may precede them. Paths are
    taken literally, or as `globs`. With `index`, the index of a commit under way is read, see
    `_index`. Raises `Invalid` if git can't be run or takes longer than `seconds`.
    """
    return _run(*_reading(root, words, index=index, globs=globs), data, seconds)


def ask(root: Path, *words: str, data: bytes = b"", seconds: float = SECONDS) -> bytes:
    """Returns the output of a command that reads. Raises `Invalid` if it fails."""
    result = run(root, *words, data=data, seconds=seconds)
    if result.returncode:
        hint = PARTIAL if b"promisor" in result.stderr else "see `git status`"
        raise Invalid(f"git {words[0]}: {complaint(result.stderr)}", hint=hint)
    return result.stdout


def run_as_person(
    root: Path, *words: str, data: bytes = b"", seconds: float = SECONDS
) -> CompletedProcess[bytes]:
    """Returns the result of a git command, run as in the user's shell.

    The user's hooks, filters, signing and credentials are used. Raises `Invalid` as `run` does.
    """
    program, _ = _program_and_top(root)
    command = [program, "-c", _NO_BARE, "-C", str(root), *words]
    environ = _environment(_KEPT_NAMES | _OF_PERSON, (*_KEPT_GROUPS, *_OF_PERSON_GROUPS))
    return _run(command, _without_commit(environ), data, seconds)


def clone(source: Path, root: Path) -> CompletedProcess[bytes]:
    """Returns the result of cloning a repository of this machine. Raises `Invalid` without git."""
    command = [_program(), "clone", "--quiet", "--no-hardlinks", "--", str(source), str(root)]
    return _run(command, _environment(_KEPT_NAMES, _KEPT_GROUPS), b"", _SECONDS_OF_RUNNING)


def create(root: Path) -> None:
    """Makes a folder a git repository. Raises `Invalid` if git can't do that."""
    command = [_program(), "init", "--quiet", "--", str(root)]
    result = _run(command, _environment(_KEPT_NAMES, _KEPT_GROUPS), b"", SECONDS)
    if result.returncode:
        raise Invalid(f"git init: {complaint(result.stderr)}", hint="see `git help init`")


@contextmanager
def running(root: Path, *words: str) -> Iterator[Popen[bytes]]:
    """Yields a git process that reads and answers over pipes; it ends with the block.

    Raises `Invalid` if git can't be run.
    """
    import subprocess
    from threading import Timer

    command, environ = _reading(root, words)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ,
    ) as process:
        deadline = Timer(_SECONDS_OF_RUNNING, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()


def output(root: Path, *words: str) -> str | None:
    """Returns the output of a command that reads, stripped; None if it fails or prints nothing."""
    try:
        result = run(root, *words, seconds=_SECONDS_OF_OUTPUT)
    except Invalid:
        return None
    return None if result.returncode else result.stdout.decode("utf-8", "replace").strip() or None


def complaint(stderr: bytes) -> str:
    """Returns the first line of git's error output that states a reason."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in lines if line.startswith(_ERRORS)]
    results = (match for line in lines if (match := compiled(HOOK_RESULT).fullmatch(line)))
    failed = [f"the hook `{match[1]}` failed" for match in results if match[2] == "Failed"]
    remarks = [line for line in lines if not line.startswith(("warning: ", "hint: ", *NOTES))]
    reason = next(iter([*errors, *failed, *remarks, *lines]), "no reason given")
    for prefix in _ERRORS:
        reason = reason.removeprefix(prefix)
    return reason


def author_of(root: Path, path: str) -> str | None:
    """Returns the author of the last commit that changed a file; None if git has none."""
    logged = output(root, "log", "-1", "--format=%H%x00%an", "--", path)
    if logged is None:
        return None
    commit, _, author = logged.partition("\0")
    return None if commit in boundary(root) else author


def last_version(root: Path, path: str, revision: str) -> tuple[str, int] | None:
    """Returns the blob of a file in the last commit that changed it, and its author's date.

    The date is in seconds since 1970. Returns None if git has none, or can't read the date.
    """
    words = ("log", "-1", "--format=%at", "--raw", "--no-abbrev", "-c", revision, "--", path)
    logged = (output(root, *words) or "").partition("\t")[0].split()
    is_dated = len(logged) > 2 and logged[0].isdecimal()
    return (logged[-2], int(logged[0])) if is_dated else None


SHALLOW = "this clone is shallow; `git fetch --unshallow` gets the earlier commits"


def boundary(root: Path) -> frozenset[str]:
    """Returns the oldest commits of a shallow clone, whose parents are missing.

    git shows each as if it had added every file, so it proves nothing about their authors.
    """
    common = common_directory(root)
    try:
        data = disk.read(common / "shallow") if common else b""
    except OSError:  # git does not read it either.
        return frozenset()
    return frozenset(data.decode("ascii", "replace").split())


def has_repository(root: Path) -> bool | None:
    """Returns whether a folder is in a git working tree; None if git refuses to answer."""
    if not is_inside(root):
        return False
    return True if output(root, "rev-parse", "--is-inside-work-tree") == "true" else None


def is_inside(root: Path) -> bool:
    """Returns whether a folder is in a git repository, without running git."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def refusal(root: Path) -> str | None:
    """Returns why git does not use the repository around a folder; None if it does or has none."""
    asked = run(root, "rev-parse", "--git-dir")
    return complaint(asked.stderr) if asked.returncode and is_inside(root) else None


def is_tracked(root: Path, path: str) -> bool:
    """Returns whether a file of the project is in git's index."""
    return output(root, "ls-files", "--", path) is not None


def is_unmerged(root: Path, path: str) -> bool:
    """Returns whether git's index has a conflict of a file that is not resolved yet."""
    return output(root, "ls-files", "--unmerged", "--", path) is not None


def is_ignored(root: Path, path: str) -> bool:
    """Returns whether git's ignore rules match an untracked file."""
    return output(root, "check-ignore", "--", path) is not None


def check_rules(root: Path, folders: Iterable[Path] | None = None) -> None:
    """Raises `Invalid` for a file of ignore rules that git would read for minutes, or wait for.

    These are the files that apply in a project, and in some folders of its repository: by default
    in all folders of the memory.
    """
    top, within = working_tree(root) or root, (root.resolve(), *(folders or ()))
    places = {place for folder in within for place in (folder, *folder.parents)}
    read = [f"{place}" for place in places if place.is_relative_to(top)]
    below = [] if folders else [f"{root / disk.STORE}"]
    for name in below:  # It grows meanwhile: a folder can be too deep for a recursion.
        with suppress(OSError), os.scandir(name) as entries:
            below += (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    files = [Path(name, disk.IGNORE_FILE) for name in (*read, *below)]
    if common := common_directory(root):
        files.append(common / "info" / "exclude")
    for file in files:
        with suppress(OSError):
            status = file.lstat()
            is_pipe, size = stat.S_ISFIFO(status.st_mode), status.st_size
            if is_pipe or (stat.S_ISREG(status.st_mode) and size > _MOST_RULES):
                is_large = f"is too large: {size:,} bytes, at most {_MOST_RULES:,}"
                raise Invalid(
                    f"`{file}` {'is a named pipe' if is_pipe else is_large}",
                    hint="git can't read it: shorten or remove it",
                    details={"path": f"{file}"},
                )


def is_top(folder: Path) -> bool:
    """Returns whether a folder is the top of a working tree, without running git."""
    marker = folder / ".git"
    return os.path.isfile(marker) or os.path.lexists(marker / "HEAD")  # noqa: PTH113 - never raises


def _reading(
    root: Path, words: Sequence[str], *, index: bool = False, globs: bool = False
) -> tuple[list[str], dict[str, str]]:
    """Returns the command line and the environment of a command that reads."""
    place = next(n for n, word in enumerate(words) if n % 2 == 0 and word != "-c")
    options, name, arguments = words[:place], words[place], words[place + 1 :]
    program, top = _program_and_top(root)
    if name in ("status", "check-ignore") or "--exclude-standard" in arguments:
        check_rules(root, [root / disk.STORE] if name == "check-ignore" else None)
    # These read files of the working tree, through git's filters.
    compares_files = name == "status" or (name == "diff" and "--cached" not in arguments)
    settings = [*_READING, *(_filters_off(root) if compares_files else ())]
    command = [program, *(word for setting in settings for word in ("-c", setting)), *options]
    # `check-ignore` refuses the option, but takes its paths literally in any case.
    paths = () if name == "check-ignore" else (f"--{'glob' if globs else 'literal'}-pathspecs",)
    command += ["-C", str(root), f"--work-tree={top}", *paths]
    command += [name, *_FLAGS.get(name, ()), *arguments]
    environ = _environment(_KEPT_NAMES, _KEPT_GROUPS) | _QUIET | (_index(root) if index else {})
    return command, environ


def _filters_off(root: Path) -> Iterator[str]:
    """Yields settings that disable every filter which git's settings define.

    Raises `Invalid` if one can't be disabled: the command line ends a name at its first `=`.
    """
    listed = run(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.").stdout
    keys = listed.decode("utf-8", "surrogateescape").split("\0")
    for name in sorted({key.rpartition(".")[0] for key in keys if key}):
        if "=" in name:
            raise Invalid(
                f"git's settings name a filter with `=` in its name: `{name}`",
                hint="remove it; `git config --show-origin --get-regexp '^filter'` shows where",
            )
        yield from (f"{name}.{value}" for value in _DISABLED)


def _index(root: Path) -> dict[str, str]:
    """Returns the variable that names the index of a commit under way in this repository.

    `git commit -a` and `git commit FILE` run their hooks with a temporary index. An index of
    another repository is not used.
    """
    file, named = os.environ.get("GIT_INDEX_FILE"), os.environ.get("GIT_DIR")
    if not file:
        return {}
    if named is not None:
        git_dir = output(root, "rev-parse", "--absolute-git-dir")
        if git_dir is None or Path(named).resolve() != Path(git_dir).resolve():
            return {}
    return {"GIT_INDEX_FILE": str(Path(file).absolute())}


def _environment(names: frozenset[str], groups: tuple[str, ...]) -> dict[str, str]:
    """Returns the environment with only the listed variables of git.

    In a hook, git sets variables that name its repository: they are removed, too.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in names or name.startswith(groups)
    }
    settings = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    return {**variables, **settings, "PATH": disk.search_path()}


def _without_commit(environ: dict[str, str]) -> dict[str, str]:
    """Returns the environment of a hook without the author and the dates of the commit under way.

    git sets the author's variables for its hooks, and processes that these start keep them. The
    committer's name and address are the user's.
    """
    if not ("GIT_PREFIX" in os.environ and environ.get("GIT_AUTHOR_DATE", "").startswith("@")):
        return environ
    result = {name: value for name, value in environ.items() if not name.startswith("GIT_AUTHOR_")}
    result.pop("GIT_COMMITTER_DATE", None)
    person = {name: value for name, value in result.items() if name.startswith("GIT_COMMITTER_")}
    return result | {name.replace("COMMITTER", "AUTHOR"): value for name, value in person.items()}


def working_tree(root: Path) -> Path | None:
    """Returns the top of the working tree that contains a folder; None outside a repository.

    git is not run. Raises `Invalid` in a bare repository.
    """
    top = root.resolve()
    for folder in (top, *top.parents):
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            raise Invalid(
                f"`{folder}` is a bare git repository",
                hint="mind works in a working tree: clone it, or remove `HEAD` and `objects`",
            )
        if is_top(folder):
            return folder
    return None


def _program() -> str:
    """Returns the path of git. Raises `Invalid` if it is not installed."""
    if program := disk.program("git"):
        return program
    raise Invalid("git is not installed", hint=_NO_GIT)


def _program_and_top(root: Path) -> tuple[str, Path]:
    """Returns the path of git, and the top of the working tree that contains a folder.

    Commands name the working tree, so that a repository's `core.worktree` can't. Raises `Invalid`
    without git, outside a repository, for special files in it, and in a bare repository, since git
    before 2.38 ignores `safe.bareRepository`.
    """
    program, top = _program(), working_tree(root)
    if top is None:
        raise Invalid(f"`{root.resolve()}` is not in a git repository", hint="`git init` makes one")
    # git would wait for a named pipe forever.
    for name in _READ_ALWAYS:
        file = top / ".git" / name
        try:
            disk.check(file, follow=True)
        except NotADirectoryError:
            break
        except OSError as error:
            hint = "git can't read it: remove it"
            raise Invalid(f"`{file}`: {error.strerror}", hint=hint) from None
    return program, top


def _run(
    command: list[str], environ: dict[str, str], data: bytes, seconds: float
) -> CompletedProcess[bytes]:
    import subprocess

    try:
        return subprocess.run(
            command, input=data, capture_output=True, timeout=seconds, env=environ, check=False
        )
    except subprocess.TimeoutExpired:
        raise Invalid(
            f"git took longer than {seconds:g} s", hint="run the same git command yourself"
        ) from None
    except OSError as error:
        raise Invalid(f"git can't be run: {error.strerror}", hint=_NO_GIT) from None
    except ValueError:
        raise Invalid("an argument contains a NUL character", hint="remove it") from None


def driver(root: Path) -> str:
    """Returns the command that merges memories; empty if there is none."""
    return (
        run(root, "config", "--get", "merge.mind.driver").stdout.decode("utf-8", "replace").strip()
    )


def own_driver() -> str:
    """Returns the merge driver that runs this very program, which need not be on the PATH."""
    import shlex
    import sys

    # With -P, Python does not import from the working tree.
    program = f"{shlex.quote(sys.executable)} -P -m mimo merge-driver".replace("%", "%%")
    return DRIVER.replace("mind merge-driver", program)


def install_driver(root: Path) -> bool:
    """Installs the merge driver; returns False if it was installed already."""
    current = run(root, "config", "--local", "--get", "merge.mind.driver").stdout
    if current.decode("utf-8", "replace").strip() == DRIVER:
        return False
    ask(root, "config", "--local", "merge.mind.name", "memories, field by field")
    ask(root, "config", "--local", "merge.mind.driver", DRIVER)
    return True


class Line(NamedTuple):
    """A line of a file, and the commit that it comes from."""

    commit: str
    when: datetime
    number: int
    text: str


def blame(root: Path, path: str, *, revision: str = "HEAD", seconds: float = SECONDS) -> list[Line]:
    """Returns the lines of a file at a revision. Raises `Invalid`.

    Lines of the file itself are not read: that could run git's filters.
    """
    blamed = ask(root, "blame", "--porcelain", revision, "--", path, seconds=seconds)
    lines: list[Line] = []
    times: dict[str, datetime] = {}
    commit, number = "", 0
    for line in blamed.decode("utf-8", "replace").split("\n"):
        word, _, tail = line.partition(" ")
        if line.startswith("\t"):
            lines.append(Line(commit, times[commit], number, line[1:]))
        elif len(word) >= 40 and tail[:1].isdigit():
            commit, number = word, int(tail.split()[1])
        elif word == "author-time":
            times[commit] = disk.moment(int(tail))
    return lines


def stamp(root: Path) -> os.stat_result | None:
    """Returns the status of a file that changes with every commit; None outside git."""
    folder, common = directory(root), common_directory(root)
    if folder is None or common is None:
        return None
    files = [folder / "logs" / "HEAD", common / "reftable" / "tables.list"]
    # Commits change the branch's file even if git keeps no reflogs.
    if branch_file := disk.first_line(folder / "HEAD").partition("ref: ")[2]:
        files += [common / branch_file, common / "packed-refs"]
    for file in (*files, folder / "HEAD"):
        with suppress(OSError, ValueError):
            return file.lstat()
    return None


def reflogs(root: Path) -> Path | None:
    """Returns the folder of reflogs, in which every commit changes a file.

    None if it is missing or can't be read.
    """
    git_directory = directory(root)
    logs = git_directory / "logs" if git_directory else None
    return logs if logs and os.path.isfile(logs / "HEAD") else None  # noqa: PTH113


def branch(root: Path) -> str | None:
    """Returns the branch that is checked out; None outside git and on a detached HEAD."""
    folder = directory(root)
    match = compiled(_BRANCH).fullmatch(disk.first_line(folder / "HEAD")) if folder else None
    if match and match[1] == _IN_REFTABLE:
        return output(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    return match[1] if match else None


def directory(root: Path) -> Path | None:
    """Returns the git directory of the working tree of a folder, without running git."""
    for folder in (root, *root.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return marker
        if marker.is_file():
            target = disk.first_line(marker).partition("gitdir:")[2].strip()
            return folder / target if target else None
    return None


def common_directory(root: Path) -> Path | None:
    """Returns the git directory that all worktrees of the repository share."""
    folder = directory(root)
    return folder / disk.first_line(folder / "commondir") if folder else None
