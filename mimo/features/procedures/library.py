"""The procedures of a project: finding, checking, adding and approving them."""

from mimo.errors import Invalid, NotFound, Untrusted
from mimo.features.procedures import reading
from mimo.features.procedures.model import (
    LATEST,
    VERSION,
    Commands,
    Fault,
    Module,
    Procedure,
    newest,
    split_reference,
    told,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.operations.saving import approving
from mimo.store import files
from mimo.store import procedures as store
from mimo.store.procedures import ProcedureFile
from mimo.store.projects import index_owner
from mimo.surroundings import Question

# The procedure to start from, as `mind procedure new` writes it.


_TEXT = """\
---
name: {name}
version: 1.0
description: Greets somebody, and looks whether the greeting was meant
timeout_ms: 300000
max_retries: 3
context_schema:
  properties:
    who: {{type: string, minLength: 1}}
---
# {name}

A procedure is a state machine. It begins in `initial_state`, does the action of the state that it
is in, and goes where the event leads with which that action ends: `success`, `error`, or one that
the action names. A state without transitions is an end. The prose around the block is yours.

Try it: `mind procedure run {name} --context '{{"who": "Ada"}}'`. After a change, look at it with
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
      - {{event: success, target: somebody}}

  somebody:
    # Ends with the event "true" or "false"; they need quotes.
    action:
      module: step
      function: conditional
      args: [{{field: who, operator: ne, value: null}}]
    transitions:
      - {{event: "true", target: greet}}
      - {{event: "false", target: nobody}}

  greet:
    # {{{{name}}}} is filled in from the context.
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, {{{{who}}}}!"}}]
    transitions:
      - {{event: success, target: done}}

  nobody:
    action:
      module: step
      function: log
      args: [{{message: "{{{{greeting}}}}, whoever you are!"}}]
    transitions:
      - {{event: success, target: done}}

  # Any command of mind, by name (the result goes into the context, here under `found`):
  #   action:
  #     module: mind
  #     function: mind_search
  #     args: [{{query: "{{{{who}}}}"}}]
  #     result: found
  #
  # A program, by its words; it runs once a person has approved this text:
  #   action:
  #     module: shell
  #     function: run
  #     args: [git, status, --short]
  #     timeout: 5000

  done: {{}}
```
"""


def text(name: str) -> str:
    """Returns the Markdown of a procedure that completes as it stands."""
    return _TEXT.format(name=name)


MOST_FAULTS = 100
_ASKED_SECONDS = 0.2


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
        """Returns what the text is approved by."""
        return files.digest(self.data)


def checked(file: ProcedureFile, commands: Commands | None) -> Checked:
    """Returns what a file says; the names of commands are checked where `commands` are given."""
    if file.problem:
        fault = Fault(line=None, reason=file.problem)
        return Checked(path=file.path, data=b"", procedure=None, faults=(fault,))
    found = reading.read(file.data, commands.fault) if commands else reading.read(file.data)
    procedure, faults = found.procedure, found.faults
    if procedure and file.path.startswith(f"{store.FOLDER}/") and file.stem != procedure.key:
        reason = f"the file must be named `{procedure.key}.md`, as its header says"
        procedure, faults = None, (Fault(line=2, reason=reason),)
    return Checked(
        path=file.path,
        data=file.data,
        procedure=procedure,
        faults=faults[:MOST_FAULTS],
        warnings=found.warnings,
    )


def every(mind: Mind, commands: Commands | None = None) -> list[Checked]:
    """Returns all procedure files, checked: by name, the newest version first."""
    found = [checked(file, commands) for file in store.listed(mind.project.root)]

    def order(one: Checked) -> tuple[str, tuple[int, ...]]:
        name, _, version = one.path.rpartition("/")[2].removesuffix(".md").partition("@")
        numbers = version.split(".") if VERSION.fullmatch(version) else ["0"]
        return name, tuple(-int(number) for number in numbers)

    return sorted(found, key=order)


def active(mind: Mind) -> list[tuple[Checked, Procedure]]:
    """Returns the procedures that are not deactivated: by name, the newest version first."""
    found = [(one, one.procedure) for one in every(mind)]
    return [(one, procedure) for one, procedure in found if procedure and procedure.active]


def one(
    mind: Mind, name: str, version: str, commands: Commands | None = None
) -> tuple[Checked, Procedure]:
    """Returns a procedure by its name (or `name@version`) and version; `latest` is the highest.

    Raises `Invalid` with all faults of a file that has some, and `NotFound`.
    """
    wanted = split_reference(name)
    if wanted is None:
        raise Invalid(f"`{name}` is no name of a procedure", hint="see `mind procedure list`")
    name = wanted[0]
    version = wanted[1] if version == LATEST else version
    if version != LATEST and not VERSION.fullmatch(version):
        raise Invalid(f"`{version}` is no version", hint="versions are such as 1.0, or `latest`")
    for file in _candidates(mind, name, version):
        found = checked(file, commands)
        if found.procedure is None:
            raise faulty(found)
        if found.procedure.active:
            return found, found.procedure
    raise _missing(mind, name, version)


def _candidates(mind: Mind, name: str, version: str) -> list[ProcedureFile]:
    """Returns the files that may hold a procedure, the highest version first."""
    versions = {}
    for file in store.listed(mind.project.root):
        known, _, its = file.stem.partition("@")
        if known == name and VERSION.fullmatch(its) and version in (its, LATEST):
            versions[its] = file
    found = []
    while versions and (best := newest((its, its) for its in versions)):
        found.append(versions.pop(best))
    return found


def _missing(mind: Mind, name: str, version: str) -> NotFound:
    known = [procedure for _, procedure in active(mind)]
    versions = [procedure.version for procedure in known if procedure.name == name]
    if versions:
        hint = f"versions of `{name}` are {', '.join(versions)}"
        return NotFound(f"no version {version} of procedure `{name}`", hint=hint)
    names = ", ".join(dict.fromkeys(procedure.name for procedure in known))
    hint = f"procedures are {names}" if names else "make one with `mind procedure new NAME`"
    return NotFound(f"no procedure `{name}`", hint=hint, details={"name": name})


def faulty(found: Checked) -> Invalid:
    """Returns the error of a file with faults, which names them all."""
    lines = [_told(found.path, fault) for fault in found.faults]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return Invalid(
        f"`{found.path}` is no valid procedure: {lines[0]}{more}",
        hint="; ".join(lines[1:11]) or "see `mind procedure check`",
        details={
            "file": found.path,
            "faults": [{"line": fault.line, "reason": fault.reason} for fault in found.faults],
        },
    )


def _told(path: str, fault: Fault) -> str:
    return f"line {fault.line}: {fault.reason}" if fault.line else fault.reason


def added(mind: Mind, data: bytes, commands: Commands) -> tuple[Checked, Procedure, bool]:
    """Writes a procedure into the project; returns it, and whether its text is approved.

    What mind writes counts as approved, but for a text that runs programs or speaks to other
    machines: a person approves that. Raises `Invalid` with all faults, `Conflict`, and
    `StorageFailed`.
    """
    found = checked(ProcedureFile(path="the text", data=data), commands)
    if found.procedure is None:
        raise faulty(found)
    procedure = found.procedure
    with approving(mind, wanted=not reaches_out(procedure)):
        file = store.write(mind.project.root, procedure.key, data)
    return checked(file, None), procedure, is_approved(mind, data, procedure)


def named(mind: Mind, name: str, version: str, commands: Commands) -> list[Checked]:
    """Returns the file of a procedure, checked, faulty or not. Raises `NotFound`."""
    candidates = _candidates(mind, name, version)
    if not candidates:
        raise _missing(mind, name, version)
    return [checked(candidates[0], commands)]


def definition_hash(procedure: Procedure) -> str:
    """Returns the SHA-256 of a definition as canonical JSON."""
    import json

    text = json.dumps(
        procedure.definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return files.digest(text.encode("utf-8", "replace"))


def runs_programs(procedure: Procedure) -> bool:
    """Returns whether a procedure runs programs."""
    return any(action.module is Module.SHELL for action in procedure.actions)


def reaches_out(procedure: Procedure) -> bool:
    """Returns whether a procedure runs programs or speaks to other machines."""
    return any(action.reaches_out for action in procedure.actions)


def require_approved(mind: Mind, found: Checked, procedure: Procedure) -> None:
    """Lets a text pass that somebody here has approved; asks where a person is there.

    Raises `Untrusted`: a clone must not bring what runs by itself.
    """
    if is_approved(mind, found.data, procedure):
        return
    if mind.ask is None or not _agreed(mind, procedure):
        runs = runs_programs(procedure)
        raise Untrusted(
            f"nobody here has approved `{found.path}` as it is now"
            + (", which runs programs" if runs else ""),
            hint=f"read it (`mind procedure show {procedure.key}`), then run it on a terminal, "
            f"which asks{'' if runs else ', or approve it with `mind trust`'}",
            details={"file": found.path, "digest": found.digest},
        )
    mind.trust.approve(_approvals(mind, found.data, procedure))


def is_approved(mind: Mind, data: bytes, procedure: Procedure) -> bool:
    """Returns whether exactly this text may run: approved, and its programs agreed to."""
    return all(mind.trust.approved(digest) for digest in _approvals(mind, data, procedure))


def _approvals(mind: Mind, data: bytes, procedure: Procedure) -> list[str]:
    """Returns the digests that must be approved for a text to run.

    One that runs programs needs a second one, which only an answer at a terminal brings: whoever
    approves all that is in a project thinks of its memories. The secret in it keeps a file from
    having that digest itself.
    """
    digest = files.digest(data)
    if not runs_programs(procedure):
        return [digest]
    secret = index_owner(mind.home, mind.randomness)
    return [digest, files.digest(f"{secret}\nprograms of {digest}".encode())]


def _agreed(mind: Mind, procedure: Procedure) -> bool:
    does = dict.fromkeys(f"  {told(action)}" for action in procedure.actions)
    text = "\n".join(
        [
            f"`{procedure.key}` was not approved on this machine as it is now. It does:",
            *does,
            "Approve this text and run it?",
        ]
    )
    question = Question(text=text, choices=("yes", "no"))
    answer = None
    while answer is None and mind.ask is not None:
        answer = mind.ask(question, _ASKED_SECONDS)
    return answer == "yes"
