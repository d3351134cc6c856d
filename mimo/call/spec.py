"""The declaration of a command: one plain function, from which every surface is generated.

@command("mind_search", cli="search", effect=Effect.READ, toolset="search")
def search(mind: Mind, query: Annotated[str, Arg("Words to look for")]) -> SearchResult:
    '''Find the memories that best match a query'''

The end of the module has the published fields of results, results as JSON, and the reading of JSON.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache, partial
from math import isfinite
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
)
from typing import get_args as args_of
from typing import get_origin as origin_of

from mimo.call import Surface
from mimo.data.loads import MAX_DEPTH, DataError, loads
from mimo.errors import Command, Hint, Invalid, MindError
from mimo.frozen import NamedTuple, frozen, replace
from mimo.guard import Operation
from mimo.text.calendar import iso_utc

if TYPE_CHECKING:
    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
else:

    class Json:
        """Any JSON value."""


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class Out(NamedTuple):
    """The published form of a result's field: its help, its name, and whether it may be absent."""

    help: str = ""
    wire: str | None = None
    """The published name if it differs from the attribute's."""
    omit: bool = False
    """True if the field is absent when it is None."""
    usual: object = None
    """The value that answers to agents leave out; None for a field that they always have."""
    page: int = 0
    """The most items in an answer to an agent, by default: the last ones if it is negative."""


Omitted = Annotated[T | None, Out(omit=True)]
"""`Omitted[T]` is the type of a result's field that is absent when it is None."""

SCALARS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
"""JSON Schema's name of each plain type."""


@frozen
class Shape:
    """A parameter's type in terms that every surface understands."""

    kind: str
    """`string`, `integer`, `number`, `boolean`, `array`, or `json` for any value."""
    choices: tuple[str, ...] = ()
    """All permitted strings; empty if any string is permitted."""
    enum: type[StrEnum] | None = None
    """The enumeration whose member a choice becomes."""
    items: "Shape | None" = None


def shape_of(annotation: Any) -> Shape:
    """Returns the shape of a parameter's type.

    Raises `TypeError` for a type outside the closed set.
    """
    inner, _ = split_null(annotation)
    if inner is Json:
        return Shape(kind="json")
    if inner in SCALARS:
        return Shape(kind=SCALARS[inner])
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        choices = tuple(member.value for member in inner)
        return Shape(kind="string", choices=choices, enum=inner)
    if origin_of(inner) is Literal and all(isinstance(word, str) for word in args_of(inner)):
        return Shape(kind="string", choices=args_of(inner))
    if item := item_type(inner):
        return Shape(kind="array", items=shape_of(item[0]))
    raise TypeError(f"a command can't take {annotation!r}; see {__name__} for what it can")


def split_null(annotation: Any) -> tuple[Any, bool]:
    """Returns the type without `None` and without annotations, and whether None is allowed."""
    if origin_of(annotation) is Annotated:
        return split_null(args_of(annotation)[0])
    if origin_of(annotation) not in (Union, types.UnionType):
        return annotation, False
    members = [member for member in args_of(annotation) if member is not types.NoneType]
    if len(members) != 1 or len(args_of(annotation)) != 2:
        raise TypeError(f"{annotation!r} is a union of more than one type and None")
    return split_null(members[0])[0], True


def item_type(annotation: Any) -> tuple[Any] | None:
    """Returns the one type of a `tuple[T, ...]`'s items, or None for any other type."""
    if origin_of(annotation) is not tuple:
        return None
    match args_of(annotation):
        case (item, end) if end is Ellipsis:
            return (item,)
        case _:
            raise TypeError(f"{annotation!r} is not of the form tuple[T, ...]")


def notes_of(annotation: Any) -> tuple[Any, ...]:
    """Returns the metadata of an `Annotated` type."""
    return args_of(annotation)[1:] if origin_of(annotation) is Annotated else ()


OPERATION = "operation"
"""The argument that chooses among the operations of a tool."""


EVERYWHERE = "everywhere"
"""The attribute of the parameter `user`, which names the user's memory for all projects."""


ATTRIBUTE = "__command__"
"""The attribute of a declared function that holds its specification."""


class Effect(StrEnum):
    """The effect of a command on the store."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


class Arg(NamedTuple):
    """The properties of a parameter beside its type; all but `help` are given by name."""

    help: str
    """One phrase without a full stop."""
    short: str | None = None
    """One letter: `n` gives `-n`."""
    alias: str | tuple[str, ...] = ()
    """Other names that are accepted everywhere, with underscores; only the first is published."""
    ge: float | None = None
    le: float | None = None
    wire: str | None = None
    """The published name if it differs from the parameter's: `from` for `from_`."""
    stdin: bool = False
    """True if the command line reads it from standard input, for `-` or when it is missing."""
    file: bool = False
    """True if the command line takes the name of a file with it; `-` is standard input."""
    object: bool = False
    """True if a JSON value must be an object."""
    agents: str | None = None
    """The help in the list of tools (default: `help`); empty if the name is enough."""
    listed: bool = True
    """False if agents may give it, but the list of tools, which they pay for, leaves it out."""
    needed: bool = False
    """True if agents must give it, while the command line has another way."""
    form: Mapping[str, Any] | None = None
    """The JSON Schema in the list of tools of a value that is accepted in other forms, too."""
    words: bool = False
    """True if the command line joins all remaining words into it."""
    several: bool = False
    """True if the command line takes several, and calls the command for each."""
    named: bool = False
    """True if the command line accepts a positional parameter also by its name."""
    option: bool = False
    """True if the command line takes a required parameter by its name, not by its place."""
    many: bool = False
    """True if the option may be repeated for a JSON value; several values become a list."""
    spellings: Mapping[str, str] | None = None
    """Other words for its choices, in lower case; any case is accepted."""
    compared: bool = False
    """True if the command compares it with the stored text, and refuses only new secrets in it."""
    choices: Callable[[], tuple[str, ...]] | None = None
    """Returns the permitted strings, to which extensions add."""
    scopes: tuple[str, ...] = ()
    """The values of a text, to which the command line adds the scopes of extensions."""
    complete: str | None = None
    """The kind of words that the shell completes: `path`, or one of `mimo.cli.completing`."""
    fallback: tuple[str, str] | None = None
    """A flag and a value: the command line uses the value if only the flag was given."""
    surfaces: Surface = Surface.BOTH


class Needs(NamedTuple):
    """The permission that a command needs: an operation, on the values of named parameters."""

    operation: Operation
    namespace: str | None = None
    """The parameter that names a namespace; its value is checked before anything is touched."""
    key: str | None = None
    context: str | None = None
    """The parameter that names a type of context."""
    ttl_seconds: str | None = None
    diagnosis: bool = False
    """True if it also runs under an invalid policy: it shows the errors, and no memory."""
    person: bool = False
    """True if the user needs no permission; an agent's shell still does."""
    like: str | None = None
    """Another tool whose rules and limits apply too."""
    also: str | None = None
    """A further tool whose rules apply too."""


_WORDS = ("id", "kind", "outcome", "tag", "type")
"""The completions of words; a path, a phrase or a pattern may contain a comma."""


@frozen
class Param:
    """One parameter of a command."""

    name: str
    """The published name."""
    attribute: str
    """The Python name."""
    shape: Shape
    arg: Arg
    required: bool
    positional: bool
    """True if it is given by its place on the command line."""
    default: Any

    @property
    def has_words(self) -> bool:
        """Returns whether it is a list of words, none of which contains a comma."""
        return self.shape.items is not None and self.arg.complete in _WORDS

    @property
    def aliases(self) -> tuple[str, ...]:
        """Returns the other accepted names."""
        alias = self.arg.alias
        return (alias,) if isinstance(alias, str) else alias

    @property
    def options(self) -> tuple[str, ...]:
        """Returns its long names on the command line, such as `--tag` for `tags`."""
        names = [self.name, *self.aliases]
        if self.shape.items:
            names = [singular(name) for name in names]
        elif self.arg.many:
            names.insert(0, singular(self.name))
        return tuple(f"--{name.replace('_', '-')}" for name in names)

    @property
    def typed(self) -> str:
        """Returns its name as the command line shows it: `QUERY` by its place, or `--limit`."""
        option = self.options[0]
        return option[2:].upper() if self.positional else option


BUDGET = Param(
    name="budget",
    attribute="budget",
    shape=Shape(kind="integer"),
    arg=Arg("Tokens that the answer may take", listed=False, ge=1, le=20_000, surfaces=Surface.MCP),
    required=False,
    positional=False,
    default=None,
)
"""The argument of tools with `has_budget`, which the server applies; no function takes it.

It is not listed, and `truncated` does not name it: some clients drop what no schema lists.
"""

CURSOR = Param(
    name="cursor",
    attribute="cursor",
    shape=Shape(kind="string"),
    arg=Arg("Where to read on, as `truncated` states it", agents="", surfaces=Surface.MCP),
    required=False,
    positional=False,
    default=None,
)
"""The argument of tools with `has_budget` that have no pages; the server applies it, too."""


def singular(word: str) -> str:
    """Returns the singular of a plural: `tags` -> `tag`, `categories` -> `category`."""
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@frozen
class Tool:
    """A tool with several operations, each of which is a command of its own."""

    name: str
    description: str
    title: str = ""


@frozen
class Spec:
    """A declared command."""

    name: str
    """The canonical name: `memory`, `save/decision`, `mind_search`."""
    tool: Tool | None
    operation: str | None
    path: str
    """The words after `mind` on the command line: `memory decay-check`."""
    function: Callable[..., object]
    effect: Effect
    toolset: str
    needs: Needs
    errors: tuple[type[MindError], ...]
    needs_project: bool
    surfaces: Surface
    examples: tuple[str, ...]
    description: str
    """The description for MCP clients (default: the function's docstring)."""
    instead: str | None
    """The replacement of a deprecated name."""
    title: str = ""
    """The name that clients show to people (default: the summary)."""
    of_user: bool = False
    """True if it also works on the user's memory for all projects: on an id that the project does
    not have, and outside of any project."""
    owner: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """Returns the memory that a call works on, from the open one and the arguments."""
    is_long: bool = False
    """True if the command line has `--long` for details."""
    has_budget: bool = False
    """True if agents may choose the size of the answer, with the argument `budget`."""
    any_format: bool | Callable[[Mapping[str, Any]], bool] = False
    """True if it may run in a store that a later version of mind wrote, since it changes nothing
    there. It may depend on the arguments."""
    finds: bool = False
    """True if the exit status 1 is a finding; the status after an error is then a higher one."""
    waits: bool = False
    """True if a call may wait for events or programs for as long as its caller likes."""
    lists_output: bool = False
    """True if the list of tools has the schema of its answer, which programs read."""
    runs: bool = False
    """True if it starts or continues programs, which may do anything."""
    setting: str = ""
    """A setting of the user. Only while it is `on`, a server of the user alone has the tool."""
    screen: Callable[..., object] | None = None
    """Shows the command on a whole terminal, where there is one. It takes the call, a function that
    runs a command for a call, by its path and arguments, the arguments, and whether to use colour.
    """

    @property
    def key(self) -> str:
        """Returns the unique name, such as `memory.store`."""
        return f"{self.name}.{self.operation}" if self.operation else self.name

    @property
    def listed_name(self) -> str:
        """Returns the name of its tool as it is listed by default: `save_decision`."""
        from mimo.text.tool_names import underscored

        return underscored(self.name)

    @property
    def like(self) -> str | None:
        """Returns another tool whose rules and limits apply too."""
        return self.needs.like or (self.instead.split()[0] if self.instead else None)

    @property
    def is_of_values(self) -> bool:
        """Returns whether it handles values, to which the rules on personal data apply."""
        return self.needs.namespace is not None or self.needs.context is not None

    @property
    def summary(self) -> str:
        """Returns the first line of the function's docstring."""
        return self.help.partition("\n")[0]

    @property
    def help(self) -> str:
        """Returns the function's docstring."""
        from inspect import cleandoc

        return cleandoc(self.function.__doc__ or "")

    @property
    def params(self) -> tuple[Param, ...]:
        """Returns the parameters in the order of the declaration.

        Raises `TypeError` if one has no help, or a type outside the closed set.
        """
        params = params_of(self.function)
        if not self.has_budget:
            return params
        if any(param.name == "limit" for param in params):
            return (*params, BUDGET)
        return (*params, BUDGET, CURSOR)

    @property
    def result(self) -> Any:
        """Returns the type of the result."""
        return self.function.__annotations__["return"]


class Traits(TypedDict, total=False):
    """The properties of a command that few have; see the fields of `Spec`."""

    title: str
    of_user: bool
    owner: Callable[[Any, Mapping[str, Any]], Any] | None
    is_long: bool
    has_budget: bool
    any_format: bool | Callable[[Mapping[str, Any]], bool]
    finds: bool
    waits: bool
    runs: bool
    setting: str
    lists_output: bool
    screen: Callable[..., object] | None


def command(
    name: str | Tool,
    *,
    operation: str | None = None,
    cli: str | None = None,
    effect: Effect,
    toolset: str,
    needs: Needs | None = None,
    errors: Iterable[type[MindError]] = (),
    needs_project: bool = True,
    surfaces: Surface | None = None,
    examples: Iterable[str] = (),
    description: str | None = None,
    instead: str | None = None,
    **traits: Unpack[Traits],
) -> Callable[[F], F]:
    """Returns a decorator that declares a function as a command and does not change it.

    `name` is canonical, or the `Tool` of an `operation`. For the others, see the fields of `Spec`.
    """
    canonical = name.name if isinstance(name, Tool) else name

    def declare(function: F) -> F:
        spec = Spec(
            name=canonical,
            tool=name if isinstance(name, Tool) else None,
            operation=operation,
            path=cli or _path(canonical, operation),
            function=function,
            effect=effect,
            toolset=toolset,
            needs=needs or Needs(Operation.READ if effect is Effect.READ else Operation.WRITE),
            errors=tuple(errors),
            needs_project=needs_project,
            surfaces=surfaces or (Surface.MCP if instead else Surface.BOTH),
            examples=tuple(examples),
            description=description or function.__doc__ or "",
            instead=instead,
            **traits,
        )
        setattr(function, ATTRIBUTE, spec)
        return function

    return declare


for_people = partial(
    command,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
)
"""Declares a command that only a person may use, also outside of a project."""


def _path(name: str, operation: str | None) -> str:
    """Returns the words of a name on the command line."""
    words = [*name.split("/"), *([operation] if operation else [])]
    return " ".join(words).replace("_", "-")


def spec_of(function: object) -> Spec | None:
    """Returns the specification of a declared function, or None for anything else."""
    return getattr(function, ATTRIBUTE, None) if isinstance(function, FunctionType) else None


def declared(function: object) -> Spec:
    """Returns the specification of a declared function; raises `TypeError` for anything else."""
    spec = spec_of(function)
    if spec is None:
        raise TypeError(f"{function!r} is not a declared command")
    return spec


def specs_in(namespace: Mapping[str, object], module: str) -> tuple[Spec, ...]:
    """Returns the commands that `module` itself declares, in the order of their declaration."""
    values = [value for value in namespace.values() if getattr(value, "__module__", "") == module]
    return tuple(spec for value in values if (spec := spec_of(value)) is not None)


_HAS_GROUP = 0x08
"""The flag of a function with `**group`, as `inspect.CO_VARKEYWORDS`."""
_ABSENT = {"array": (), "boolean": False}
"""The default of an optional parameter of a group, by its kind; otherwise None."""


@cache
def params_of(function: FunctionType) -> tuple[Param, ...]:
    """Returns the parameters of a command function, the first of which (its `Call`) is not one.

    Optional parameters that several commands share are in a typed dictionary, the type of
    `**group: Unpack[Group]`, and come after those that are given by place.

    It reads the function itself: the module `inspect` takes longer to load than many commands run.
    """
    code = function.__code__
    count = code.co_argcount
    end = count + code.co_kwonlyargcount
    by_place, by_name = code.co_varnames[1:count], code.co_varnames[count:end]
    defaults = dict(zip(reversed(by_place), reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    annotations, shared = function.__annotations__, dict[str, Any]()
    if code.co_flags & _HAS_GROUP:
        (group,) = args_of(annotations[code.co_varnames[end]])
        shared = group.__annotations__
        annotations = annotations | shared
        defaults |= {name: _ABSENT.get(shape_of(of).kind) for name, of in shared.items()}
    return tuple(
        _param(function, name, annotations[name], defaults, is_keyword=name not in by_place)
        for name in (*by_place, *shared, *by_name)
    )


def _param(
    function: FunctionType,
    name: str,
    annotation: Any,
    defaults: Mapping[str, Any],
    *,
    is_keyword: bool,
) -> Param:
    arg = next((note for note in notes_of(annotation) if isinstance(note, Arg)), None)
    if arg is None or not arg.help:
        raise TypeError(f"parameter `{name}` of {function.__name__} has no help")
    required = name not in defaults
    shape = shape_of(annotation)
    choices = arg.scopes or (arg.choices() if arg.choices else shape.choices)
    return Param(
        name=arg.wire or name,
        attribute=name,
        shape=replace(shape, choices=choices),
        arg=arg,
        required=required,
        positional=(required or not is_keyword) and not arg.option,
        default=defaults.get(name),
    )


class Published(NamedTuple):
    """A published field of a result."""

    attribute: str
    name: str
    type: Any
    help: str
    omit: bool
    usual: object
    page: int


@cache
def fields_of(cls: type) -> tuple[Published, ...]:
    """Returns the published fields of a result's dataclass, in order. Raises `TypeError`."""
    annotations = getattr(cls, "__annotations__", None)
    if not annotations:
        raise TypeError(f"`{cls.__name__}` is not a dataclass")
    published = []
    for attribute, annotation in annotations.items():
        notes = notes_of(annotation)
        outs = [note for note in notes if isinstance(note, Out)]
        helps = [*(note for note in notes if isinstance(note, str)), *(out.help for out in outs)]
        published.append(
            Published(
                attribute=attribute,
                name=next((out.wire for out in outs if out.wire), attribute),
                type=annotation,
                help=next(filter(None, helps), ""),
                omit=any(out.omit for out in outs),
                usual=next((out.usual for out in outs if out.usual is not None), None),
                page=next((out.page for out in outs if out.page), 0),
            )
        )
    return tuple(published)


def to_json(value: Any, guide: Callable[[str], str] | None = None) -> Any:
    """Returns a result as plain JSON data: dataclasses as objects, times as ISO 8601 UTC with `Z`.

    `guide` makes it an answer to an agent: it spells hints and commands; fields with their usual
    value and parts of seconds are left out. Raises `ValueError` for an infinite number and for a
    time without a zone, `TypeError` for a type that a result may not have.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        value = guide(value) if guide and isinstance(value, Hint | Command) else value
        # Lone surrogates come from undecodable file names.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError("JSON has no infinite numbers")
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a result's time must have a zone")
        return iso_utc(value, "auto" if guide is None else "seconds")
    if isinstance(value, Mapping):
        return {str(key): to_json(item, guide) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, guide) for item in value]
    cls: Any = type(value)
    members = [(field, getattr(value, field.attribute)) for field in fields_of(cls)]
    return {
        field.name: to_json(member, guide)
        for field, member in members
        if not _is_left_out(field, member, briefly=guide is not None)
    }


def _is_left_out(field: Published, member: Any, *, briefly: bool) -> bool:
    if member is None:
        return field.omit
    return briefly and field.usual is not None and member == field.usual


def from_json(text: str) -> Any:
    """Returns the value of a JSON text, or the text itself if it is not JSON.

    Raises `Invalid` for JSON of which a part would be lost: a key that an object has twice, an
    integer with more digits than Python reads, or too many levels.
    """
    try:
        return loads(text, exact=True)
    except DataError as error:
        if not error.is_well_formed:
            return text
        hint = f"use each key once, at most {MAX_DEPTH} levels, and quotes for long numbers"
        raise Invalid(f"the JSON can't be stored exactly: {error}", hint=hint) from None
