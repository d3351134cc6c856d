"""The procedures of a project: finding, checking, adding and approving them."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from mimo.errors import Invalid, NotFound, Untrusted
from mimo.features.procedures import reading
from mimo.features.procedures.model import (
    LATEST,
    VERSION,
    Fault,
    Module,
    Procedure,
    describe,
    split_reference,
    version_key,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.operations.saving import approving
from mimo.store import files
from mimo.store import procedures as store
from mimo.store.procedures import ProcedureFile
from mimo.store.projects import index_owner
from mimo.surroundings import Question

MOST_FAULTS = 100
_ASKED_SECONDS = 0.2
_TEMPLATE = """\
---
name: {name}
version: 1.0
description: Greets a person by name if the context has one
timeout_ms: 300000
max_retries: 3
context_schema:
  properties:
    who: {{type: string, minLength: 1}}
---
# {name}

A procedure is a state machine. It starts in `initial_state` and performs the action of its current
state. The action ends with an event: `success`, `error`, or one that the action names. The
transition of that event leads to the next state. A state without transitions is an end. The prose
around the block is yours.

Try it: `mind procedure run {name} --context '{{"who": "Ada"}}'`. After a change, check it with
`mind procedure check {name}` and `mind procedure show {name}`.

```yaml
initial_state: prepare

states:
  prepare:
    # Steps: log, validate, delay, conditional, set_context, http_request, ask.
    action:
      module: step
      function: set_context
      args: [{{values: {{greeting: "Hello"}}}}]
    transitions:
      - {{event: success, target: has_name}}

  has_name:
    # Ends with the event "true" or "false"; they need quotes.
    action:
      module: step
      function: conditional
      args: [{{field: who, operator: ne, value: null}}]
    transitions:
      - {{event: "true", target: greet}}
      - {{event: "false", target: greet_all}}

  greet:
    # {{{{name}}}} is replaced by its value in the context.
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, {{{{who}}}}!"}}]
    transitions:
      - {{event: success, target: done}}

  greet_all:
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, everyone!"}}]
    transitions:
      - {{event: success, target: done}}

  # Any command of mind, by name (the result goes into the context, here as `found`):
  #   action:
  #     module: mind
  #     function: mind_search
  #     args: [{{query: "{{{{who}}}}"}}]
  #     result: found
  #
  # A program and its arguments; it runs after a person has approved this text:
  #   action:
  #     module: shell
  #     function: run
  #     args: [git, status, --short]
  #     timeout: 5000

  done: {{}}
```
"""


def template(name: str) -> str:
    """Returns the Markdown of a complete procedure to start from."""
    return _TEMPLATE.format(name=name)


class Commands(Protocol):
    """The command set as procedures call it: by name."""

    def fault(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Returns why a procedure can't call a command with arguments of these names, or None."""

    def call(self, mind: Mind, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a command's result as JSON. Raises `MindError`."""


@frozen
class Checked:
    """A procedure's file, read and checked."""

    path: str
    data: bytes
    procedure: Procedure | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()

    @property
    def digest(self) -> str:
        """Returns the digest by which the text is approved."""
        return files.digest(self.data)


def checked(file: ProcedureFile, commands: Commands | None) -> Checked:
    """Returns a file's procedure or faults; with `commands`, their names are checked too."""
    if file.problem:
        fault = Fault(line=None, reason=file.problem)
        return Checked(path=file.path, data=b"", procedure=None, faults=(fault,))
    result = reading.read(file.data, commands.fault) if commands else reading.read(file.data)
    procedure, faults = result.procedure, result.faults
    if procedure and file.path.startswith(f"{store.FOLDER}/") and file.stem != procedure.key:
        reason = f"the file must be named `{procedure.key}.md`, as in its header"
        procedure, faults = None, (Fault(line=2, reason=reason),)
    return Checked(
        path=file.path,
        data=file.data,
        procedure=procedure,
        faults=faults[:MOST_FAULTS],
        warnings=result.warnings,
    )


def every(mind: Mind, commands: Commands | None = None) -> list[Checked]:
    """Returns all procedure files, checked: by name, the newest version first."""

    def order(file: ProcedureFile) -> tuple[str, int, int]:
        name, _, version = file.stem.partition("@")
        major, minor = version_key(version) if VERSION.fullmatch(version) else (0, 0)
        return name, -major, -minor

    return [checked(file, commands) for file in sorted(store.listed(mind.project.root), key=order)]


def one(
    mind: Mind, name: str, version: str, commands: Commands | None = None
) -> tuple[Checked, Procedure]:
    """Returns a procedure by its name (or `name@version`) and version; `latest` is the highest.

    Raises `Invalid` with all faults of its file, and `NotFound`.
    """
    reference = split_reference(name)
    if reference is None:
        raise Invalid(f"`{name}` is not a name of a procedure", hint="see `mind procedure list`")
    name = reference[0]
    version = reference[1] if version == LATEST else version
    if version != LATEST and not VERSION.fullmatch(version):
        raise Invalid(f"`{version}` is not a version", hint="give one such as 1.0, or `latest`")
    for file in _candidates(mind, name, version):
        result = checked(file, commands)
        if result.procedure is None:
            raise faulty(result)
        if result.procedure.active:
            return result, result.procedure
    raise _missing(mind, name, version)


def _candidates(mind: Mind, name: str, version: str) -> list[ProcedureFile]:
    """Returns the files that may hold a procedure, the highest version first."""
    candidates = []
    for file in store.listed(mind.project.root):
        file_name, _, file_version = file.stem.partition("@")
        wanted = file_name == name and version in (file_version, LATEST)
        if wanted and VERSION.fullmatch(file_version):
            candidates.append((version_key(file_version), file))
    return [file for _, file in sorted(candidates, key=lambda pair: pair[0], reverse=True)]


def _missing(mind: Mind, name: str, version: str) -> NotFound:
    procedures = [one.procedure for one in every(mind) if one.procedure and one.procedure.active]
    versions = [procedure.version for procedure in procedures if procedure.name == name]
    if versions:
        hint = f"versions of `{name}` are {', '.join(versions)}"
        return NotFound(f"no version {version} of procedure `{name}`", hint=hint)
    names = ", ".join(dict.fromkeys(procedure.name for procedure in procedures))
    hint = f"procedures are {names}" if names else "make one with `mind procedure new NAME`"
    return NotFound(f"no procedure `{name}`", hint=hint, details={"name": name})


def faulty(file: Checked) -> Invalid:
    """Returns the error of a file with faults, which names them all."""
    reasons = [f"line {f.line}: {f.reason}" if f.line else f.reason for f in file.faults]
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return Invalid(
        f"`{file.path}` is not a valid procedure: {reasons[0]}{more}",
        hint="; ".join(reasons[1:11]) or "see `mind procedure check`",
        details={
            "file": file.path,
            "faults": [{"line": fault.line, "reason": fault.reason} for fault in file.faults],
        },
    )


def added(mind: Mind, data: bytes, commands: Commands) -> tuple[Checked, Procedure]:
    """Writes a procedure into the project and returns it.

    A text that mind writes is approved unless it runs programs or sends requests: a person must
    approve that. Raises `Invalid` with all faults, `Conflict`, and `StorageFailed`.
    """
    draft = checked(ProcedureFile(path="the text", data=data), commands)
    if draft.procedure is None:
        raise faulty(draft)
    procedure = draft.procedure
    with approving(mind, wanted=not any(action.reaches_out for action in procedure.actions)):
        file = store.write(mind.project.root, procedure.key, data)
    return checked(file, None), procedure


def named(mind: Mind, name: str, version: str, commands: Commands) -> list[Checked]:
    """Returns the file of a procedure, checked, faulty or not. Raises `NotFound`."""
    candidates = _candidates(mind, name, version)
    if not candidates:
        raise _missing(mind, name, version)
    return [checked(candidates[0], commands)]


def definition_hash(procedure: Procedure) -> str:
    """Returns the SHA-256 of a definition as canonical JSON."""
    text = json.dumps(
        procedure.definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return files.digest(text.encode("utf-8", "replace"))


def runs_programs(procedure: Procedure) -> bool:
    """Returns whether a procedure runs programs."""
    return any(action.module is Module.SHELL for action in procedure.actions)


def require_approved(mind: Mind, file: Checked, procedure: Procedure) -> None:
    """Passes if the text is approved on this machine, or the user approves it on the terminal.

    Raises `Untrusted` otherwise: a text that came with a clone must not run by itself.
    """
    if is_approved(mind, file.data, procedure):
        return
    if mind.ask is None or not _agreed(mind, procedure):
        runs = runs_programs(procedure)
        raise Untrusted(
            f"the current text of `{file.path}`{', which runs programs,' if runs else ''} "
            "is not approved on this machine",
            hint=f"read it (`mind procedure show {procedure.key}`), then run it on a terminal, "
            f"which asks{'' if runs else ', or approve it with `mind trust`'}",
            details={"file": file.path, "digest": file.digest},
        )
    mind.trust.approve(_approvals(mind, file.data, procedure))


def is_approved(mind: Mind, data: bytes, procedure: Procedure) -> bool:
    """Returns whether exactly this text may run: approved, and its programs agreed to."""
    return all(mind.trust.approved(digest) for digest in _approvals(mind, data, procedure))


def _approvals(mind: Mind, data: bytes, procedure: Procedure) -> list[str]:
    """Returns the digests that must be approved for a text to run.

    A text that runs programs needs a second one, which only an answer at a terminal adds: a user
    who approves all files of a project thinks of its memories. The digest contains a secret, so
    that no file can have it.
    """
    digest = files.digest(data)
    if not runs_programs(procedure):
        return [digest]
    secret = index_owner(mind.home, mind.randomness)
    return [digest, files.digest(f"{secret}\nprograms of {digest}".encode())]


def _agreed(mind: Mind, procedure: Procedure) -> bool:
    text = "\n".join(
        [
            f"The current text of `{procedure.key}` is not approved on this machine. Its actions:",
            *dict.fromkeys(f"  {describe(action)}" for action in procedure.actions),
            "Approve this text and run it?",
        ]
    )
    question = Question(text=text, choices=("yes", "no"))
    answer = None
    while answer is None and mind.ask is not None:
        answer = mind.ask(question, _ASKED_SECONDS)
    return answer == "yes"
