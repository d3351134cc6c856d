"""The procedures of a project: finding, checking, adding and approving them."""

from __future__ import annotations

import json
from pathlib import Path

from mimo.call import Call
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.failures import failure
from mimo.errors import Command, Conflict, Hint, Invalid, NotFound, Untrusted
from mimo.features.procedures import reading
from mimo.features.procedures.model import (
    LATEST,
    Procedure,
    describe,
    is_version,
    split_reference,
    version_key,
)
from mimo.features.procedures.reading import Reading
from mimo.frozen import frozen, replace
from mimo.memory.approval import approval_of
from mimo.memory.codec.front_matter import Fault
from mimo.operations import consent, disclosure, refresh
from mimo.operations.saving import approving
from mimo.project.projects import index_owner
from mimo.surroundings import Question

FOLDER = f"{STORE}/procedures"
MOST_FAULTS = 100
_SUFFIX = ".md"
_LARGEST = 1024 * 1024
_ASKED_SECONDS = 0.2
EXAMPLE = """\
---
name: greet
version: 1.0.0
---
```yaml
initial_state: hello
states:
  hello:
    action: {module: step, function: log, args: [{message: "Hi, {{who}}"}]}
    transitions: [{event: success, target: done}]
  done: {}
```"""
"""A whole procedure, for agents that gave an invalid one."""


@frozen
class ProcedureFile:
    """The content of a procedure's file, `.mind/procedures/<name>@<version>.md`."""

    path: str
    """Relative to the project, with `/`."""
    data: bytes
    problem: str | None = None
    """The reason if it can't be read."""

    @property
    def approval(self) -> str:
        """Returns the name by which the text is approved."""
        return approval_of(self.path, self.data)

    @property
    def stem(self) -> str:
        """Returns `name@version` from the name of the file."""
        return self.path.rpartition("/")[2].removesuffix(_SUFFIX)


def path_of(key: str) -> str:
    """Returns the path of the procedure `name@version`."""
    return f"{FOLDER}/{key}{_SUFFIX}"


def listed(root: Path) -> list[ProcedureFile]:
    """Returns all procedure files, by name; links and special files have a `problem`."""
    folder = root / FOLDER
    if folder.is_symlink() or (root / STORE).is_symlink():
        return []
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failure("list", folder, error) from error
    result = []
    for name in names:
        if not name.endswith(_SUFFIX) or name.startswith(".") or not name.isprintable():
            continue
        path, data, problem = f"{FOLDER}/{name}", b"", None
        try:
            data, _ = disk.look(files.safe_path(root, path), limit=_LARGEST)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            problem = failure("read", root / path, error).message
        if len(data) > _LARGEST:
            data, problem = b"", f"larger than {_LARGEST:,} bytes"
        result.append(ProcedureFile(path=path, data=data, problem=problem))
    return result


def given(path: Path) -> bytes:
    """Returns the bytes of a file that the user named. Raises `Invalid` if it can't be read."""
    try:
        return disk.look(path, limit=_LARGEST)[0]
    except OSError as error:
        reason = failure("read", path, error).message
        raise Invalid(reason, hint="name a procedure's Markdown file") from None


def check(file: ProcedureFile, *, calls: bool = False) -> Reading:
    """Returns a file's procedure or faults; with `calls` the commands that it calls are checked.

    That loads all commands.
    """
    if file.problem:
        return Reading(procedure=None, faults=(Fault(None, file.problem),))
    if calls:
        from mimo.features.procedures import calling

        result = reading.read(file.data, calling.fault)
    else:
        result = reading.read(file.data)
    key = result.procedure.key if result.procedure else file.stem
    if file.path.startswith(f"{FOLDER}/") and file.stem != key:
        reason = f"the file must be named `{key}.md`, as in its header"
        return Reading(procedure=None, faults=(Fault(2, reason),))
    return replace(result, faults=result.faults[:MOST_FAULTS])


def read_files(call: Call, *, calls: bool = False) -> list[tuple[ProcedureFile, Reading]]:
    """Returns all procedure files, checked: by name, the newest version first."""
    ordered = _sort_by_version(listed(call.mind.project.root))
    return [(file, checked(call, file, calls=calls)) for file in ordered]


def checked(call: Call, file: ProcedureFile, *, calls: bool = False) -> Reading:
    """Returns the same as `check` for a file of the project, with reasons for the caller."""
    result = check(file, calls=calls)
    if disclosure.may_quote(call, file.approval):
        return result
    faults = tuple(fault._replace(reason=disclosure.WITHHELD) for fault in result.faults)
    warnings = tuple(fault._replace(reason=disclosure.WITHHELD) for fault in result.warnings)
    return replace(result, faults=faults, warnings=warnings)


def _sort_by_version(procedures: list[ProcedureFile]) -> list[ProcedureFile]:
    """Returns files by the names of their procedures, of each the highest version first."""
    parts = {file.path: file.stem.partition("@") for file in procedures}
    newest = sorted(procedures, key=lambda file: version_key(parts[file.path][2]), reverse=True)
    return sorted(newest, key=lambda file: parts[file.path][0])


def find(
    call: Call, name: str, version: str, *, calls: bool = False
) -> tuple[ProcedureFile, Procedure]:
    """Returns a procedure by its name (or `name@version`) and version; `latest` is the highest.

    Raises `Invalid` with all faults of its file, and `NotFound`.
    """
    reference = split_reference(name)
    if reference is None:
        raise Invalid(
            f"`{name}` is not a name of a procedure", hint=Hint("see ", Command("procedure list"))
        )
    name = reference[0]
    version = reference[1] if version == LATEST else version
    if version != LATEST and not is_version(version):
        raise Invalid(f"`{version}` is not a version", hint="give one such as 1.0.2, or `latest`")
    for file in candidates(call, name, version):
        procedure = valid(file, checked(call, file, calls=calls))
        if procedure.active:
            return file, procedure
    raise missing(call, name, version)


def candidates(call: Call, name: str, version: str) -> list[ProcedureFile]:
    """Returns the files that may hold a procedure, the highest version first."""
    named = []
    for file in listed(call.mind.project.root):
        of_file, _, file_version = file.stem.partition("@")
        if of_file == name and version in (file_version, LATEST) and is_version(file_version):
            named.append(file)
    return _sort_by_version(named)


def missing(call: Call, name: str, version: str) -> NotFound:
    """Returns the error for a procedure that is missing, with the existing ones as its hint.

    To an agent it names approved ones only: the author of a procedure chooses its name.
    """
    active = [
        procedure
        for file, result in read_files(call)
        if (procedure := result.procedure) is not None
        and procedure.active
        and (call.agent is None or is_approved(call, file.data, procedure))
    ]
    versions = [procedure.version for procedure in active if procedure.name == name]
    if versions:
        hint = f"versions of `{name}` are {', '.join(versions)}"
        return NotFound(f"no version {version} of procedure `{name}`", hint=hint)
    names = ", ".join(dict.fromkeys(procedure.name for procedure in active))
    hint = (
        f"procedures are {names}"
        if names
        else Hint("make one with ", Command("procedure new", "NAME"))
    )
    return NotFound(f"no procedure `{name}`", hint=hint, details={"name": name})


def valid(file: ProcedureFile, result: Reading) -> Procedure:
    """Returns the procedure of a file. Raises `Invalid` with all faults."""
    if result.procedure:
        return result.procedure
    reasons = [f"line {f.line}: {f.reason}" if f.line else f.reason for f in result.faults]
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    raise Invalid(
        f"`{file.path}` is not a valid procedure: {reasons[0]}{more}",
        hint="; ".join(reasons[1:11]) or Hint("see ", Command("procedure check")),
        details={"file": file.path, "faults": [fault._asdict() for fault in result.faults]},
    )


def added(call: Call, data: bytes, source: str) -> tuple[ProcedureFile, Reading]:
    """Writes a procedure into the project and returns its file, checked.

    `source` names the text in errors. A text that mind writes is approved unless it runs programs:
    a person must approve that. Raises `Invalid` with all faults, `Conflict`, and `StorageFailed`.
    """
    draft = ProcedureFile(path=source, data=data)
    result = check(draft, calls=True)
    try:
        procedure = valid(draft, result)
    except Invalid as error:
        if call.agent is not None:
            error.hint = Hint(error.hint, f"; a valid text: {json.dumps(EXAMPLE)}")
        raise
    file = ProcedureFile(path=path_of(procedure.key), data=data)
    target = files.safe_path(call.mind.project.root, file.path)
    with approving(call, enabled=not procedure.runs_programs):
        try:
            files.write_new(target, data)
        except Conflict:
            if disk.read(target) != data:
                raise Conflict(
                    f"`{file.path}` already exists with another text",
                    hint="edit that file, or give this one a new version",
                ) from None
    refresh.commit_soon(call)
    return file, result


def require_approved(call: Call, file: ProcedureFile, procedure: Procedure) -> None:
    """Passes if the text is approved on this machine, or the user approves it in a question.

    Raises `Untrusted` otherwise: a text that came with a clone must not run by itself.
    """
    if is_approved(call, file.data, procedure):
        return
    if not _agreed(call, file, procedure):
        runs = procedure.runs_programs
        raise Untrusted(
            f"the current text of `{file.path}`{', which runs programs,' if runs else ''} "
            "is not approved on this machine",
            hint=Hint(
                "read it (",
                Command("procedure show", procedure.key),
                "), then run it on a terminal, which asks",
                *(() if runs else (", or approve it with ", Command("trust"))),
            ),
            details={"file": file.path, "digest": files.digest(file.data)},
        )
    texts = _approvals(call, file.data, procedure)
    call.mind.trust.approve(texts, paths=dict.fromkeys(texts, file.path))
    call.mind.trust.retire({file.path: texts})


def is_approved(call: Call, data: bytes, procedure: Procedure) -> bool:
    """Returns whether exactly this text may run: approved, and its programs agreed to."""
    return all(call.mind.trust.approved(digest) for digest in _approvals(call, data, procedure))


def _approvals(call: Call, data: bytes, procedure: Procedure) -> list[str]:
    """Returns the digests that must be approved for a text to run.

    A text that runs programs needs a second one, which only an answer at a terminal adds: a user
    who approves all files of a project thinks of its memories. The digest contains a secret, so
    that no file can have it.
    """
    digest = approval_of(path_of(procedure.key), data)
    if not procedure.runs_programs:
        return [digest]
    secret = index_owner(call.mind.home, call.mind.randomness)
    return [digest, files.digest(f"{secret}\nprograms of {digest}".encode())]


def _agreed(call: Call, file: ProcedureFile, procedure: Procedure) -> bool:
    """Returns whether the user approves a procedure: on the terminal, or in the calling client.

    A client may answer for its user, so programs are approved on the terminal alone.
    """
    if call.agent is not None:
        texts = {file.path: file.data}
        return not procedure.runs_programs and consent.agreed(call, texts, "it runs")
    if call.ask is None:
        return False
    states = procedure.definition["states"].values()
    actions = [state["action"] for state in states if state and state.get("action")]
    text = "\n".join(
        [
            f"The current text of `{procedure.key}` is not approved on this machine. Its actions:",
            *dict.fromkeys(f"  {describe(action)}" for action in actions),
            "Approve this text and run it?",
        ]
    )
    question = Question(text=text, choices=("yes", "no"))
    while (answer := call.ask(question, _ASKED_SECONDS)) is None:
        pass
    return answer == "yes"
