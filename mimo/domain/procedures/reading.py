"""A procedure's Markdown file -> a procedure, or everything that is wrong with it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mimo.domain.codec import document, located_yaml
from mimo.domain.codec.document import Unreadable
from mimo.domain.procedures import context_schema
from mimo.domain.procedures.blocks import states_block
from mimo.domain.procedures.procedure import (
    LONGEST_MS,
    MAX_RETRIES,
    MOST_RETRIES,
    NAME,
    TIMEOUT_MS,
    VERSION,
    Fault,
    Procedure,
    State,
    split_reference,
)
from mimo.domain.procedures.states import CommandFault, Reader
from mimo.frozen import frozen

KEYS = (
    "name",
    "version",
    "description",
    "active",
    "timeout_ms",
    "max_retries",
    "rollback_procedure",
    "context_schema",
    "metadata",
)


@frozen
class Reading:
    """What reading a file came to: a procedure where there are no faults."""

    procedure: Procedure | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    """What is allowed but hardly meant."""


def read(data: bytes, command_fault: CommandFault = lambda *_: None) -> Reading:
    """Returns the procedure that a file's bytes say, with every fault and its line."""
    try:
        parts, header = _parts(data)
    except Unreadable as error:
        return Reading(procedure=None, faults=(Fault(line=error.line, reason=error.reason),))
    faults = list(_header_faults(header))
    states = Reader(command_fault)
    try:
        block = states_block(parts.body, parts.body_line)
        definition = located_yaml.load(block.text, block.line)
    except Unreadable as error:
        faults.append(Fault(line=error.line, reason=error.reason))
        return Reading(procedure=None, faults=_in_order(faults))
    found = states.read(definition, block.line)
    if faults or states.faults:
        return Reading(procedure=None, faults=_in_order([*faults, *states.faults]))
    return Reading(procedure=_procedure(header, definition, found), warnings=tuple(states.warnings))


def _procedure(
    header: Mapping[str, Any], definition: Mapping[str, Any], states: Mapping[str, State]
) -> Procedure:
    return Procedure(
        name=header["name"],
        version=_version(header["version"]),
        description=header.get("description") or "",
        active=header.get("active") is not False,
        timeout_ms=header.get("timeout_ms") or TIMEOUT_MS,
        max_retries=_given(header.get("max_retries"), MAX_RETRIES),
        rollback=header.get("rollback_procedure"),
        context_schema=plain(header.get("context_schema") or {}),
        initial_state=definition["initial_state"],
        states=states,
        definition=plain({key: definition[key] for key in ("initial_state", "states")}),
    )


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _parts(data: bytes) -> tuple[document.Document, located_yaml.Mapping]:
    parts = document.split(data)
    if parts.syntax != "yaml":
        raise Unreadable("no header: the file must begin with `---` and `name:`", 1)
    return parts, located_yaml.load(parts.header, 2)


def plain(value: Any) -> Any:
    """Returns data without the lines that it came with."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.line or 0))


def _version(value: Any) -> str:
    """Returns a version as it was written: `1.0` without quotes is a number to YAML."""
    return repr(value) if isinstance(value, float) else str(value)


def _line(mapping: Any, key: Any) -> int:
    line: int = mapping.lines[key]
    return line


def _header_faults(header: located_yaml.Mapping) -> Iterator[Fault]:
    for key in header:
        if key not in KEYS:
            reason = f"`{key}` is no key of a procedure's header; what is your own goes under "
            yield Fault(line=_line(header, key), reason=f"{reason}`metadata`")
    for key in ("name", "version"):
        if header.get(key) is None:
            yield Fault(line=header.lines.get(key, 1), reason=f"`{key}` is missing")
    for key, check in _CHECKS.items():
        if header.get(key) is not None and (told := check(header[key])):
            yield Fault(line=_line(header, key), reason=told)
    schema = header.get("context_schema")
    if isinstance(schema, dict):
        yield from context_schema.faults(schema, _line)
    elif schema is not None:
        yield Fault(line=_line(header, "context_schema"), reason="context_schema is no mapping")


def _name_fault(value: Any) -> str | None:
    if isinstance(value, str) and NAME.fullmatch(value):
        return None
    return f"`name` must be letters, digits, `-` and `_`, 64 at most; not `{value}`"


def _version_fault(value: Any) -> str | None:
    good = VERSION.fullmatch(_version(value))
    return None if good else f"`version` must be two numbers such as 1.0, not `{value}`"


def _whole(key: str, low: int, high: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        good = type(value) is int and low <= value <= high
        return None if good else f"`{key}` must be a whole number from {low} to {high}"

    return check


def _rollback_fault(value: Any) -> str | None:
    good = isinstance(value, str) and split_reference(value)
    return None if good else f"`rollback_procedure` must be `name` or `name@1.0`, not `{value}`"


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "name": _name_fault,
    "version": _version_fault,
    "description": lambda value: (
        None if isinstance(value, str) else "`description` must be text; put it in quotes"
    ),
    "active": lambda value: None if isinstance(value, bool) else "`active` must be true or false",
    "timeout_ms": _whole("timeout_ms", 1, LONGEST_MS),
    "max_retries": _whole("max_retries", 0, MOST_RETRIES),
    "rollback_procedure": _rollback_fault,
}
