"""The texts that git vouches for: those that the user committed, and those on the default branch.

The answers are names of texts, so a file is trusted only with exactly the bytes in a commit. Git
checks signatures with the programs and lists of signers in the user's settings; those of the
repository are ignored. Anyone can write any e-mail address into a commit, so an address alone
proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from mimo.data import disk
from mimo.data.disk import STORE
from mimo.errors import Command, Hint, Invalid, MindError
from mimo.frozen import NamedTuple
from mimo.memory.changes import UNREVIEWED
from mimo.project import git, reflogs, revisions
from mimo.project.approvals import COMMITTED, SIGNED, Retired
from mimo.project.committed import DROPPED, CommittedTexts, Effect, History
from mimo.project.location import GitAnswers, Location
from mimo.project.memories import approvals_of
from mimo.project.reflogs import Reflogs

_GOOD = "G"
_OF_USER = ("system", "global", "command")
"""The scopes of settings that do not come with a repository."""
_SIGNER_FILES = ("gpg.ssh.allowedsignersfile", "gpg.ssh.revocationfile")
_TRUST_LEVEL = "gpg.mintrustlevel"
"""With the files above, the settings that decide which signatures are good."""
_KEYRINGS = ("pubring.kbx", "pubring.gpg", "public-keys.d/pubring.db", "trustdb.gpg")
_FIELDS = "%H%x00%ae%x00%ce%x00%at%x00%ct%x00%G?%x00%GS%x00"
"""Seven fields, which an empty word follows. Only NUL can't be part of an address."""


class _Settings(NamedTuple):
    """The settings of git at one moment; none if git can't read them.

    Those of the repository, which may have come with it, never decide about signatures.
    """

    rows: tuple[tuple[str, str, str, str], ...] = ()
    """The scope, the origin, the name in lower case, and the value, in order of precedence."""

    def last(self, name: str, scopes: Collection[str] = ()) -> str:
        """Returns the value of a setting in these scopes, or in all; empty without one."""
        rows = (row for row in reversed(self.rows) if row[2] == name)
        values = (value for scope, *_, value in rows if not scopes or scope in scopes)
        return next(values, "").strip()

    @property
    def email(self) -> str:
        """Returns the user's e-mail address; empty without one."""
        return self.last("user.email").casefold()

    @property
    def own_email(self) -> str:
        """Returns the user's e-mail address without the settings of the repository."""
        return self.last("user.email", _OF_USER).casefold()

    @property
    def has_key(self) -> bool:
        """Returns whether the user's own settings name a key for signatures."""
        return bool(self.last("user.signingkey", ("global",)))

    @property
    def signer_files(self) -> dict[str, str]:
        """Returns the files of signers that the user's own settings name; empty without one."""
        return {name: os.path.expanduser(self.last(name, ("global",))) for name in _SIGNER_FILES}  # noqa: PTH111

    @property
    def of_signatures(self) -> list[str]:
        """Returns options with the user's own settings of signatures, not the repository's."""
        settings = [f"{name}={file}" for name, file in self.signer_files.items()]
        if level := self.last(_TRUST_LEVEL, ("global",)):
            settings.append(f"{_TRUST_LEVEL}={level}")
        return [word for setting in settings for word in ("-c", setting)]

    @property
    def own_files(self) -> list[str]:
        """Returns the files of the user's own settings, with those that they include."""
        origins = {row[1].removeprefix("file:") for row in self.rows if row[0] == "global"}
        return sorted(origins.difference(places := _user_settings())) + places


class Vouched(NamedTuple):
    """The current answers of git, and the texts that they add or end."""

    answers: GitAnswers
    effects: tuple[Effect, ...] = ()
    """Those of the user's commits since the last answers, in their order."""
    standing: tuple[str, ...] = ()
    """The names of retired texts that count at the current commit."""
    still_signed: frozenset[str] | None = None
    """The names of all texts whose signatures are good; None if no earlier one can have ended."""
    followed: frozenset[str] | None = None
    """The names of all texts on the default branch that `only` permits; None if unchanged."""


class Vouching:
    """Questions to the git repository of one project."""

    def __init__(self, location: Location, only: Sequence[str], globs: Sequence[str]) -> None:
        """Takes the place of the project, the setting `trust.only`, and the project's globs."""
        self._location = location
        self._root = location.root
        self._only = tuple(only)
        self._texts = CommittedTexts(location, globs)

    def look(
        self,
        seen: GitAnswers,
        *,
        follow: bool,
        trusted: Callable[[str], bool],
        retired: Sequence[Retired],
    ) -> Vouched:
        """Returns git's current answers. Raises `Invalid` if git can't be asked.

        `trusted` checks a name against the approvals and the last answers. `retired` has the texts
        that may count at earlier commits.
        """
        settings = self._settings()
        asks_signers = settings.has_key or SIGNED in self._only
        signers, files = self._signers(settings) if asks_signers else ("", [])
        history = History(trusted, {text.digest for text in retired}, dict.fromkeys(seen.dropped))
        vouched = self._with_own_commits(Vouched(seen), settings, history)
        if settings.has_key:
            vouched = self._with_own_signatures(vouched, settings, signers, history)
        if follow:
            vouched = self._with_default_branch(vouched, settings, signers)
        else:
            vouched = _without_branch(vouched)
        watched = (*settings.own_files, *files, *(self._remote_heads() if follow else ()))
        dropped, now = tuple(history.dropped)[-DROPPED:], int(time.time())
        answers = vouched.answers._replace(signers=signers, watched=watched, dropped=dropped)
        ended = {n: Retired(n, e.path, e.commit, now) for e in vouched.effects for n in e.ended}
        retired = [*(text for text in retired if text.digest not in ended), *ended.values()]
        return vouched._replace(answers=answers, standing=self._texts.standing(retired))

    def head(self) -> str | None:
        """Returns the id of the current commit; None without one."""
        return self._texts.head()

    def admitted(self) -> frozenset[str] | None:
        """Returns the names of the files whose last commits `trust.only` permits.

        None if the setting is empty, which permits everything. No names if git can't be asked.
        """
        if not self._only:
            return None
        try:
            return self._by(self._only, "HEAD", self._settings())
        except MindError:
            return frozenset()

    def by_own_address(self) -> frozenset[str]:
        """Returns the texts at HEAD whose last commits name the user's address as their author's.

        Raises `Invalid` if git can't be asked or has no address, and for an address that the
        repository sets.
        """
        settings = self._settings()
        if not (email := settings.email):
            raise Invalid(
                "git has no e-mail address of yours",
                hint="set it with `git config --global user.email ADDRESS`",
            )
        if email != settings.own_email:
            raise Invalid(
                f"the address `{email}` is from the settings of this repository, which may have"
                " come with it",
                hint="if it is yours, set `user.email` in your own settings: `git config --global`,"
                " or an `includeIf` there",
            )
        return self._by((email,), "HEAD", settings)

    def by_others(self) -> frozenset[str]:
        """Returns the texts at HEAD whose last commits do not name the user's address.

        For a repository that the user made here. Raises `Invalid` if git can't be asked.
        """
        settings, head = self._settings(), self.head()
        if head is None:
            return frozenset()
        texts = self._approvals(self._texts.tree(head).items())
        return texts - self._by((settings.email,), head, settings) if settings.email else texts

    def email(self) -> str:
        """Returns the user's e-mail address from git's settings; empty without one."""
        return self._settings().email

    def base(self) -> str | None:
        """Returns the commit that identifies the history which the user chooses to follow."""
        ref = self._default_ref(self._settings())
        return revisions.commit_id(self._root, ref or "HEAD")

    # --- the user's commits

    def _with_own_commits(self, vouched: Vouched, settings: _Settings, history: History) -> Vouched:
        common, seen, email = self._location.common, vouched.answers, settings.email
        if common is None or not email:
            return vouched
        log = reflogs.read(common, seen.positions, seen.rebasing)
        effects = self._texts.effects(COMMITTED, self._own_commits(log, email), history, log)
        answers = seen._replace(positions=log.positions, rebasing=log.rebasing)
        return vouched._replace(answers=answers, effects=tuple(effects))

    def _with_own_signatures(
        self, vouched: Vouched, settings: _Settings, signers: str, history: History
    ) -> Vouched:
        seen, still = vouched.answers, None
        if not settings.own_email:
            return vouched
        effects = self._texts.effects(SIGNED, self._own_signed(seen.signed, settings), history)
        if seen.signers != signers:
            commits, none = self._own_signed(None, settings), History(lambda _: False, set(), {})
            all_effects = self._texts.effects(SIGNED, commits, none) if seen.signed else effects
            still = set[str]()
            for effect in all_effects:
                still -= effect.ended
                still |= effect.names
        # A shallow clone may get more of its history, so it is checked as a whole each time.
        head = None if git.boundary(self._root) else self._texts.head()
        return vouched._replace(
            answers=seen._replace(signed=head),
            effects=(*vouched.effects, *effects),
            still_signed=None if still is None else frozenset(still),
        )

    def _own_commits(self, log: Reflogs, email: str) -> list[str]:
        """Returns those of the commits made here that are the user's, or that revert others."""
        commits, boundary = log.commits, git.boundary(self._root)
        headers = revisions.blobs(self._root, commits)
        return [
            commit
            for commit in commits
            if commit not in boundary
            and (_is_by(text := headers.get(commit, b""), email) or commit in log.reverts)
            and (commits[commit] is not None or not _is_unreviewed(text))
        ]

    def _own_signed(self, since: str | None, settings: _Settings) -> list[str]:
        """Returns the commits that the user signed, on any machine, the oldest first.

        Commits whose author date and commit date differ are left out: a rebase or a cherry-pick
        signs the texts of another author, who may have used the user's address. So are those that
        were made here within a rebase, see `reflogs.read`.
        """
        email, head = settings.own_email, self._texts.head()
        if head is None or head == since:
            return []
        exists = since and git.run(self._root, "cat-file", "-e", f"{since}^{{commit}}")
        revs = [head, f"^{since}"] if exists and not exists.returncode else [head]
        words = ("log", "-z", "--reverse", "--topo-order", "--no-merges", "--fixed-strings")
        logged = git.ask(
            self._root,
            *settings.of_signatures,
            *words,
            "--regexp-ignore-case",
            f"--author={email}",
            f"--format={_FIELDS}",
            *revs,
            "--",
        )
        common = self._location.common
        excluded = git.boundary(self._root)
        excluded |= reflogs.commits_within_rebases(common) if common else frozenset()
        good = []
        fields = os.fsdecode(logged).split("\0")
        for place in range(0, len(fields) - 7, 8):
            commit, author, committer, written, committed, verdict, signer = fields[place:][:7]
            theirs = signer.strip().rpartition("<")[2].removesuffix(">").casefold()
            mine = {author.casefold(), committer.casefold(), theirs} == {email}
            if verdict == _GOOD and mine and written == committed and commit not in excluded:
                good.append(commit)
        texts = revisions.blobs(self._root, good)
        return [id for id in good if not _is_unreviewed(texts.get(id, b""))]

    # --- the default branch

    def _with_default_branch(self, vouched: Vouched, settings: _Settings, signers: str) -> Vouched:
        seen, ref = vouched.answers, self._default_ref(settings)
        tip = revisions.commit_id(self._root, ref) if ref else None
        if ref is None or tip is None:
            reason = (
                "there is no default branch: commit to `main` or `master`, set another one with "
                "`git config init.defaultBranch NAME`, or `git remote set-head origin --auto`"
            )
            return _without_branch(vouched, ref=seen.ref, stopped=reason)
        # Another remote may be that of a contributor, whose branch has the same history.
        if seen.ref is not None and seen.ref.split("/")[:3] != ref.split("/")[:3]:
            reason = Hint(
                f"the default branch is now `{short_name(ref)}`, not `{short_name(seen.ref)}`; ",
                Command("trust", follow=True),
                " follows it",
            )
            return _without_branch(vouched, ref=seen.ref, stopped=reason)
        if seen.base is not None and not self._is_related(seen.base, tip):
            reason = Hint(
                f"`{short_name(ref)}` shares no history with the followed commits; ",
                Command("trust", follow=True),
                " follows its current history",
            )
            return _without_branch(vouched, ref=ref, stopped=reason)
        signed = SIGNED in self._only and seen.signers != signers
        if signed or (seen.tip, seen.only) != (tip, self._only):
            if self._only:
                texts = self._by(self._only, tip, settings)
            else:
                texts = self._approvals(self._texts.tree(tip).items())
            vouched, seen = vouched._replace(followed=texts), seen._replace(only=self._only)
        # The same applies to the authors of the files of a shallow clone.
        stored_tip = None if self._only and git.boundary(self._root) else tip
        answers = seen._replace(ref=ref, tip=stored_tip, base=tip, stopped=None)
        return vouched._replace(answers=answers)

    def _default_ref(self, settings: _Settings) -> str | None:
        """Returns the full name of the default branch: the remote's, or the local one."""
        names = dict.fromkeys(("main", "master", settings.last("init.defaultbranch")))
        local = [f"refs/heads/{name}" for name in names if name]
        words = ("for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/*/HEAD", *local)
        lines = os.fsdecode(git.run(self._root, *words).stdout).splitlines()
        target_of = dict(line.split(" ", 1) for line in lines if " " in line)
        if target := target_of.get("refs/remotes/origin/HEAD"):
            return target
        # Without a HEAD of its own, `origin` must not give way to the remote of a contributor.
        remotes = os.fsdecode(git.run(self._root, "remote").stdout).splitlines()
        if len(remotes) == 1 and (target := target_of.get(f"refs/remotes/{remotes[0]}/HEAD")):
            return target
        return next((ref for ref in local if ref in target_of), None)

    def _is_related(self, base: str, tip: str) -> bool:
        """Returns whether two commits have a common ancestor; always true in a shallow clone."""
        if base == tip or not git.run(self._root, "merge-base", base, tip).returncode:
            return True
        shallow = git.run(self._root, "rev-parse", "--is-shallow-repository").stdout
        return shallow.strip() == b"true"

    def _by(self, only: Collection[str], commit: str, settings: _Settings) -> frozenset[str]:
        """Returns the texts at a commit whose last commits `only` permits.

        The last commits of files that a shallow clone began with are unknown, so none is permitted.
        If the last commit is a merge, git may have merged the file, so all commits of the file must
        be permitted, and each side must have it: otherwise git may have followed a rename.
        """
        authors = {word.casefold() for word in only if word != SIGNED}
        folders = ("./",) if self._texts.globs else (f"{STORE}/",)
        by_path = revisions.commits_by_path(self._root, commit, folders)
        brought = self._texts.brought({commits[0].id for commits in by_path.values()})
        merges = {
            path: text.before
            for (id_, path), text in brought.items()
            if len(text.before) > 1 and path in by_path and by_path[path][0].id == id_
        }
        deciding = {
            path: commits if path in merges else commits[:1]
            for path, commits in by_path.items()
            if all(blob.strip("0") for blob in merges.get(path, ()))
        }
        emails = {c.id: c.email.casefold() for commits in deciding.values() for c in commits}
        good = {id_ for id_, email in emails.items() if email in authors}
        if SIGNED in only:
            good |= self._with_good_signatures(emails, settings)
        good -= git.boundary(self._root)
        pairs = [
            (commits[0].id, path)
            for path, commits in deciding.items()
            if all(c.id in good for c in commits)
        ]
        contents = revisions.contents(self._root, pairs)
        return frozenset(
            name for (_, path), data in contents.items() for name in approvals_of(path, data)
        )

    def _with_good_signatures(self, commits: Iterable[str], settings: _Settings) -> set[str]:
        data = "".join(f"{commit}\n" for commit in commits).encode()
        words = ("log", "--no-walk=unsorted", "--format=%H %G?", "--stdin")
        logged = git.ask(self._root, *settings.of_signatures, *words, data=data)
        lines = (line.split() for line in logged.decode("ascii", "replace").splitlines())
        return {words[0] for words in lines if words[1:] == [_GOOD]}

    def _signers(self, settings: _Settings) -> tuple[str, list[str]]:
        """Returns the state of what decides which signatures are good, and the files of it."""
        named = settings.signer_files.values()
        files = [os.path.join(self._root, name) for name in named if name]  # noqa: PTH118
        home = os.environ.get("GNUPGHOME") or os.path.expanduser("~/.gnupg")  # noqa: PTH111
        files += [f"{home}/{name}" for name in _KEYRINGS]
        stamps = [disk.stamp(file, follow=True) for file in files]
        return repr((settings.of_signatures, stamps)), files

    def _remote_heads(self) -> list[str]:
        """Returns the files from which git reads the default branches of remotes."""
        folder = f"{self._location.common}/refs/remotes"
        try:
            return [folder, *(f"{folder}/{name}/HEAD" for name in sorted(os.listdir(folder)))]  # noqa: PTH208
        except OSError:
            return [folder]

    # --- git

    def _settings(self) -> _Settings:
        words = ("config", "--list", "--show-scope", "--show-origin", "--null")
        result = git.run(self._root, *words)
        if result.returncode:
            return _Settings()
        fields = os.fsdecode(result.stdout).split("\0")
        rows = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        parted = ((scope, origin, text.partition("\n")) for scope, origin, text in rows)
        return _Settings(tuple((scope, origin, text[0], text[2]) for scope, origin, text in parted))

    def _approvals(self, texts: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Returns the names that approve blobs, given with their paths, of up to a megabyte."""
        blob_of = tuple(dict.fromkeys(texts))
        content = self._texts.small(blob for _, blob in blob_of)
        return frozenset(
            name
            for path, blob in blob_of
            if blob in content
            for name in approvals_of(path, content[blob])
        )


def _user_settings() -> list[str]:
    """Returns the files from which git reads the user's settings."""
    if file := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [file]
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [os.path.expanduser(name) for name in ("~/.gitconfig", f"{folder}/git/config")]  # noqa: PTH111


def _without_branch(
    vouched: Vouched, *, ref: str | None = None, stopped: str | None = None
) -> Vouched:
    """Returns answers without texts of the default branch; the chosen history stays."""
    answers = vouched.answers._replace(ref=ref, tip=None, stopped=stopped)
    return vouched._replace(answers=answers, followed=frozenset())


def _is_by(commit: bytes, email: str) -> bool:
    """Returns whether a commit has an address for its author and its committer."""
    addresses = [
        line.rpartition(b">")[0].rpartition(b"<")[2].decode("utf-8", "replace").casefold()
        for line in commit.partition(b"\n\n")[0].split(b"\n")
        if line.startswith((b"author ", b"committer "))
    ]
    return addresses == [email, email]


def _is_unreviewed(commit: bytes) -> bool:
    """Returns whether mind made a commit without a person: for an agent, or automatically."""
    return UNREVIEWED.encode() in commit.partition(b"\n\n")[2].split(b"\n")


def short_name(ref: str) -> str:
    """Returns the short name of a branch, such as `origin/main`."""
    return ref.removeprefix("refs/").removeprefix("remotes/").removeprefix("heads/")
