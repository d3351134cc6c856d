"""Calls, the policies that permit them, and `.mind/policy.yaml`, which a policy is read from.

A rule states what one tool may do, a limit how often. Several policies may apply at once, and each
of them must permit a call: an unapproved file is applied together with its last approved text, or
without one with the default policy, so it can only restrict further. A file that is missing without
approval leaves the last approved text active.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from mimo.data import disk, files
from mimo.errors import Command, Denied, Hint, MindError
from mimo.frozen import NamedTuple, frozen, replace
from mimo.guard import Operation as Operation
from mimo.guard import PiiAction as PiiAction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from mimo.memory.codec.front_matter import Fault, Located, Place

    T = TypeVar("T")
    E = TypeVar("E", bound=StrEnum)
    Check = Callable[[Place, Any], T | None]
    _Read = tuple["Policy | None", tuple[Fault, ...], str]

FILE = files.POLICY
MAX_BYTES = 64 * 1024
"""Maximum size of the file."""

EVERY = "*"
"""The name of the rule for every tool that no other rule names."""

MEMORIES = "memories"
"""The name of the rule for every tool of memories, in place of that for every tool."""

_MAX_RATE = 1_000_000
_LONGEST_TTL = 10 * 365 * 24 * 3600

FAMILIES = ("save_*", "load_*", "search_*", "evolve_*")
"""Folded names of rules for each tool of a family, such as `save/*`."""

LEADERS: Mapping[str, str] = {
    member: leader
    for leader, members in {
        "putmemory": ("deletememory",),
        "listmemory": ("getmemory",),
        "memory": (
            *("mind_add", "mind_show", "mind_list", "mind_edit", "mind_rm", "mind_keep"),
            *("mind_fading", "mind_restore", "mind_undo", "mind_redo"),
            *("mind_tags", "mind_tags_rename"),
        ),
        "mind_search": ("search_by_topic", "search_by_context", "search_recent", "recall_memory"),
        "mind_edges": ("mind_edges_list", "mind_edges_check"),
        "mind_add_global_edge": ("mind_edges_add", "mind_edges_starter"),
        "ingest": ("mind_import", "mind_import_mama"),
        "mind_review": ("mind_review_settle", "mind_review_keep"),
        "mind_context": ("mind_context_write",),
        "mind_sessions": ("mind_sessions_list", "mind_sessions_search", "mind_sessions_show"),
        "run_procedure": ("resume_procedure", "send_event", "cancel_procedure"),
        "list_procedures": ("recall_procedure", "procedure_status", "check_procedure"),
        "register_procedure": ("new_procedure",),
    }.items()
    for member in members
}
"""Folded names of tools that give the same access as another tool, whose rules bind them too."""

_ADDING = tuple(
    """
    mind_add save/decision save/checkpoint save/insight memory store_fact ingest
    mind_add_global_edge mind_edges_add mind_edges_starter items memory_files hook/summary
    """.split()
)
"""Tools of memories that may write without showing a stored one: each other one also reads."""

_OTHERS = tuple(
    """
    mind_init mind_config mind_install mind_uninstall mind_status mind_doctor mind_demo
    mind_completion mind_scan policy_show policy_check policy_explain mind_audit
    mind_audit_verify mind_audit_export mind_metrics mind_token_add mind_token_list
    mind_token_rotate mind_token_rm listMemory getMemory putMemory deleteMemory getContext
    run_procedure procedure_status procedure_runs cancel_procedure send_event resume_procedure
    list_procedures recall_procedure register_procedure new_procedure check_procedure
    mind_projects mind_projects_forget mind_index daemon_start daemon_stop daemon_restart
    daemon_status daemon_logs daemon_run mind_module_install mind_module_list conversations
    prompts/get
    """.split()
)
"""Tools that neither show memories nor change them."""

TOOLS = (
    *_ADDING,
    *_OTHERS,
    *"""
    mind_edit mind_tags mind_tags_rename mind_rm evolve/outcome evolve/supersede mind_link
    mind_fading mind_keep mind_undo mind_redo mind_import mind_import_mama mind_search
    mind_search_org search/by_topic search/by_context search/recent
    recall_memory load/checkpoint load/context recall_decision suggest_decision
    list_decisions update_outcome mind_show mind_list
    mind_browse mind_graph mind_web mind_report mind_edges mind_edges_list mind_edges_check
    mind_log mind_blame mind_restore mind_diff mind_sync mind_export mind_review
    mind_review_settle mind_review_keep mind_trust mind_untrust mind_events mind_context
    mind_context_write search_vibes ask_mimo knowledge resources/list resources/read
    resources/subscribe completion/complete hook/start hook/prompt hook/edit hook/stop
    mind_sessions mind_sessions_list mind_sessions_search mind_sessions_show mind_sessions_resume
    mind_sessions_index mind_sessions_forget mind_sessions_propose mind_sessions_accept
    mind_sessions_reject
    """.split(),
)
"""The names that a rule or a limit may have, beside `*`, `memories` and those of families.

A name of an earlier version stays here: a policy that names it must not become invalid.
"""

ALL = "all"
"""The context type that stands for every allowed one."""

WINDOW_SECONDS = 60
"""The period over which a sustained rate is counted."""


class Context(StrEnum):
    """A type of context that a tool may ask for."""

    SESSION = "session"
    AGENT = "agent"
    TASK = "task"


class Limit(NamedTuple):
    """The number of calls that are permitted."""

    sustained: float
    """Calls per second, averaged over a minute."""
    burst: int
    """Calls at once."""


@frozen
class Request:
    """One call of a tool, as the policies judge it."""

    tool: str
    """The canonical name."""
    like: str | None = None
    """Another tool whose rules and limits apply too, for example to a deprecated name."""
    operation: Operation
    governed: bool = True
    """True if policies apply and the call is recorded; False for a user's own administration."""
    diagnosis: bool = False
    """True if the call reports problems: it is permitted while the policy is invalid."""
    agent: str | None = None
    """The program that calls; None for a person."""
    user: str | None = None
    """The user of a team's server whose token the request had."""
    at: datetime
    namespace: str | None = None
    key: str | None = None
    context: str | None = None
    """The requested type of context."""
    ttl_seconds: int | None = None

    @property
    def shows(self) -> bool:
        """Returns whether a call that writes also shows stored memories."""
        is_write = self.operation is Operation.WRITE and self.tool != "hook/summary"
        return is_write and not {folded(self.tool), folded(self.like or self.tool)} <= _SILENT


@frozen
class Rule:
    """The permissions of one tool; None restricts nothing."""

    operations: tuple[Operation, ...] = tuple(Operation)
    namespaces: tuple[str, ...] | None = None
    contexts: tuple[str, ...] | None = None
    max_ttl_seconds: int | None = None
    line: int | None = None
    """The line of the rule in the file."""
    is_general: bool = False
    """True if it is the rule of many tools: `memories` or `*`."""


@frozen
class Policy:
    """The content of one policy file, or the default policy."""

    rules: Mapping[str, Rule]
    """By the folded names of the tools."""
    named: frozenset[str] = frozenset()
    """Those of the names that the file itself contains, `*` included."""
    tool_limits: Mapping[str, Limit]
    """By folded name; each is the strictest of the limits for that tool."""
    namespace_limits: Mapping[str, Limit]
    """By pattern, in order: the first pattern that matches a namespace decides."""
    on_write: PiiAction = PiiAction.REFUSE
    source: str
    """The file, or `default`."""

    def rules_of(self, tool: str) -> list[Rule]:
        """Returns the rules for a tool, each of which must permit a call."""
        names = _names_for(folded(tool), self.named)
        return [self.rules[name] for name in names if name in self.rules]

    def limits_on(self, request: Request) -> Iterator[tuple[str, str, Limit]]:
        """Yields each limit on a call: `tool` or `namespace`, its name, and the limit."""
        for tool in dict.fromkeys((request.tool, request.like or request.tool)):
            names = _names_for(folded(tool), self.tool_limits)
            if limit := next(filter(None, map(self.tool_limits.get, names)), None):
                yield "tool", tool, limit
        if request.namespace is None:
            return
        from mimo.memory.ids import covers

        for pattern, limit in self.namespace_limits.items():
            if covers(pattern, request.namespace):
                yield "namespace", request.namespace, limit
                return


class Verdict(NamedTuple):
    """The answer to whether a call is permitted."""

    permitted: bool
    reason: str = ""
    """One word for the metrics, such as `namespace`; empty if the call is permitted."""
    message: str = ""
    """The part of the rule that forbids the call."""
    waits: bool = False
    """True if the call is permitted once the current state of the file is approved."""


PERMITTED = Verdict(permitted=True)


def judge(rule: Rule, request: Request) -> Verdict:
    """Returns whether a rule permits a call."""
    if request.operation not in rule.operations:
        allowed = ", ".join(rule.operations) or "none"
        return Verdict(False, "operation", f"its operations are {allowed}")
    if rule.is_general and Operation.READ not in rule.operations and request.shows:
        return Verdict(False, "operation", "it also shows memories, and may only write")
    if request.namespace is not None:
        from mimo.memory.ids import covers

        patterns = ("*",) if rule.namespaces is None else rule.namespaces
        if not any(covers(p, request.namespace) for p in patterns):
            allowed = ", ".join(patterns) or "none"
            return Verdict(False, "namespace", f"its namespaces are {allowed}")
    contexts = None if request.context in (None, ALL) else rule.contexts
    if contexts is not None and request.context not in contexts:
        return Verdict(False, "context_type", f"its contexts are {', '.join(contexts) or 'none'}")
    limit = rule.max_ttl_seconds
    if request.ttl_seconds is not None and limit is not None and request.ttl_seconds > limit:
        return Verdict(False, "ttl", f"its values live {limit:,} seconds at most")
    return PERMITTED


_FOLDED = str.maketrans("/.-", "___")


def folded(tool: str) -> str:
    """Returns a tool's name in the form that all its spellings share."""
    return tool.translate(_FOLDED).lower()


APART = frozenset(map(folded, _OTHERS))
"""Folded names of the tools to which the rule `memories` does not apply."""
_SILENT = APART.union(map(folded, _ADDING))


def _names_for(name: str, named: Collection[str]) -> list[str]:
    """Returns the names of the rules and limits for a tool, by its folded name.

    A tool that the file names (`named`) has only its own. Any other tool has its default one, that
    of its family, the file's for its leader, and that for every tool; of the latter, a tool of
    memories has that for these, if the file has one.
    """
    if name in named:
        return [name]
    names = [name, f"{name.partition('_')[0]}_*"]
    leader = LEADERS.get(name)
    if leader and leader in named:
        names.append(leader)
    return [*names, MEMORIES if MEMORIES in named and name not in APART else EVERY]


def named_tools() -> dict[str, str]:
    """Returns the names that a rule or a limit may have, by their folded forms."""
    families = (family.replace("_", "/") for family in FAMILIES)
    return {folded(name): name for name in (*TOOLS, EVERY, MEMORIES, *families)}


_SPACES = ("session.*", "agent.*")
_READ = Rule(operations=(Operation.READ,), namespaces=(*_SPACES, "public.*"))
_WRITE = Rule(operations=(Operation.WRITE,), namespaces=_SPACES)

LIMIT = Limit(sustained=10, burst=50)

VALUE_TOOLS = ("listmemory", "getmemory", "putmemory", "deletememory", "getcontext")
"""The tools that the default policy restricts and limits."""

DEFAULT = Policy(
    rules={
        "listmemory": _READ,
        "getmemory": _READ,
        "getcontext": Rule(operations=(Operation.READ,), contexts=tuple(Context)),
        "putmemory": Rule(operations=(Operation.WRITE,), namespaces=_SPACES, max_ttl_seconds=3600),
        "deletememory": _WRITE,
    },
    tool_limits=dict.fromkeys(VALUE_TOOLS, LIMIT),
    namespace_limits={EVERY: LIMIT},
    source="default",
)
"""The policy of a project without a `policy.yaml`."""


class InvalidPolicy(Exception):
    """A text that is not a valid policy; `faults` are all its errors, in the order of lines."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Takes at least one fault."""
        self.faults = tuple(sorted(faults))
        super().__init__(self.faults[0].reason)


def parse(data: bytes, source: str) -> Policy:
    """Returns the policy in a file; what the file leaves out keeps its default.

    Raises `InvalidPolicy`, also for unknown keys and tools: a mistyped one would protect nothing.
    """
    from mimo.memory.codec.document import Unreadable, decode
    from mimo.memory.codec.front_matter import Fault, Located

    try:
        text, _ = decode(data, MAX_BYTES)
        reader = _Reader(Located(text))
    except Unreadable as error:
        raise InvalidPolicy([Fault(error.line or 1, error.reason)]) from None
    policy = reader.policy(source)
    if reader.faults:
        raise InvalidPolicy(Fault(*fault) for fault in reader.faults)
    return policy


class _Reader:
    """Reads the parts of a file and collects their errors.

    A check of a single value returns the value, or adds an error and returns None.
    """

    def __init__(self, located: Located) -> None:
        self.faults: list[tuple[int, str]] = []
        self._located = located
        self._names = named_tools()

    def policy(self, source: str) -> Policy:
        parts = self._mapping((), self._located.data, ("tool_permissions", "rate_limits", "pii"))
        permissions = parts.get("tool_permissions", {})
        rules = {
            tool: self._rule(place, content, DEFAULT.rules.get(tool, Rule()))
            for tool, place, content in self._named(("tool_permissions",), permissions, self._tool)
        }
        limits = self._mapping(
            ("rate_limits",), parts.get("rate_limits", {}), ("tools", "namespaces")
        )
        tools = self._limits(("rate_limits", "tools"), limits, self._tool)
        tool_limits = {**DEFAULT.tool_limits, **tools}
        inherited = {}
        for tool in map(folded, TOOLS):
            names = [name for name in _names_for(tool, tools) if name in tool_limits]
            if names and names != [EVERY]:  # That for every tool needs no copy.
                rates, bursts = zip(*[tool_limits[name] for name in names], strict=True)
                inherited[tool] = Limit(min(rates), min(bursts))
        namespaces = self._limits(("rate_limits", "namespaces"), limits, self._pattern)
        pii = self._mapping(("pii",), parts.get("pii", {}), ("on_write",))
        word = self._word(PiiAction)(("pii", "on_write"), pii.get("on_write", DEFAULT.on_write))
        return Policy(
            rules={**DEFAULT.rules, **rules},
            named=frozenset(rules),
            tool_limits=tool_limits | inherited,
            namespace_limits={**namespaces, **DEFAULT.namespace_limits, **namespaces},
            on_write=word or PiiAction.REFUSE,
            source=source,
        )

    def _rule(self, place: Place, content: Any, default: Rule) -> Rule:
        lists: dict[str, tuple[str, Check[Any]]] = {
            "operations": ("operations", self._word(Operation)),
            "allowed_namespaces": ("namespaces", self._pattern),
            "allowed_context_types": ("contexts", self._word(Context)),
        }
        fields = self._mapping(place, content, (*lists, "max_ttl_seconds"))
        changes: dict[str, Any] = {
            field: self._each((*place, key), fields[key], check)
            for key, (field, check) in lists.items()
            if key in fields
        }
        if "max_ttl_seconds" in fields:
            here = (*place, "max_ttl_seconds")
            changes["max_ttl_seconds"] = self._number(
                here, fields["max_ttl_seconds"], 0, _LONGEST_TTL
            )
        is_general = place[-1] in (EVERY, MEMORIES)
        return replace(default, line=self._located.line(place), is_general=is_general, **changes)

    def _limits(
        self, place: Place, parts: Mapping[str, Any], check: Check[str]
    ) -> dict[str, Limit]:
        """Returns the limits in the part of the rate limits that `place` names."""
        limits = {}
        for name, here, content in self._named(place, parts.get(str(place[-1]), {}), check):
            fields = {**LIMIT._asdict(), **self._mapping(here, content, LIMIT._fields)}
            rate = self._number((*here, "sustained"), fields["sustained"], 0.001, _MAX_RATE)
            burst = self._number((*here, "burst"), fields["burst"], 1, _MAX_RATE)
            limits[name] = Limit(rate or LIMIT.sustained, int(burst or LIMIT.burst))
        return limits

    def _named(
        self, place: Place, value: Any, check: Check[str]
    ) -> Iterator[tuple[str, Place, Any]]:
        """Yields each checked name with its place and content; a duplicate name is an error."""
        names: set[str] = set()
        for key, content in self._mapping(place, value).items():
            here = (*place, key)
            name = check(here, key)
            if name in names:
                self._fault(here, f"`{key}` appears twice")
            if name is not None:
                names.add(name)
                yield name, here, content

    def _mapping(
        self, place: Place, value: Any, keys: tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._fault(place, f"{_key_of(place)} must be a mapping")
            return {}
        for key in value:
            if keys is not None and key not in keys:
                self._fault((*place, key), f"unknown key `{key}`; the keys are {', '.join(keys)}")
        return value

    def _each(self, place: Place, value: Any, check: Check[T]) -> tuple[T, ...]:
        if not isinstance(value, list):
            self._fault(place, f"{_key_of(place)} must be a list")
            return ()
        items = (check((*place, number), item) for number, item in enumerate(value))
        return tuple(item for item in items if item is not None)

    def _word(self, words: type[E]) -> Check[E]:
        """Returns the check for a word of an enumeration."""

        def check(place: Place, value: Any) -> E | None:
            if value in list(words):
                return words(value)
            self._fault(place, f"{_quoted(value)} must be one of {', '.join(words)}")
            return None

        return check

    def _pattern(self, place: Place, value: Any) -> str | None:
        from mimo.memory.ids import is_pattern

        if isinstance(value, str) and is_pattern(value):
            return value
        self._fault(place, f"{_quoted(value)} is not a pattern of namespaces, such as `session.*`")
        return None

    def _tool(self, place: Place, value: Any) -> str | None:
        """Returns a tool's folded name; an unknown one is a fault, as it would protect nothing."""
        name, names = folded(value), self._names
        if name in names:
            return name
        from difflib import get_close_matches

        from mimo.call.table import all_commands
        from mimo.text.tool_names import underscored

        names = names | all_commands().added_tools()
        if name in names:
            return name
        near = get_close_matches(name, names, n=1)
        hint = (
            f"; did you mean `{underscored(names[near[0]])}`?"
            if near
            else " in this version of mind"
        )
        self._fault(place, f"there is no tool {_quoted(value)}{hint}")
        return None

    def _number(self, place: Place, value: Any, low: float, high: int) -> Any:
        """Returns a number within the limits; it must be whole if the lower limit is."""
        is_integer = isinstance(low, int)
        if type(value) in ((int,) if is_integer else (int, float)) and low <= value <= high:
            return value
        kind = "a whole number" if is_integer else "a number"
        self._fault(place, f"{_key_of(place)} must be {kind} from {low:g} to {high:,}")
        return None

    def _fault(self, place: Place, reason: str) -> None:
        self.faults.append((self._located.line(place), reason))


def _key_of(place: Place) -> str:
    return f"`{place[-1]}`" if place else "the policy"


def _quoted(value: Any) -> str:
    return f"`{str(value)[:60]}`"


@frozen
class ActivePolicies:
    """The policies that apply now."""

    policies: tuple[Policy, ...]
    """Each must permit a call. Empty if the file is invalid, which permits nothing."""
    faults: tuple[Fault, ...] = ()
    digest: str = ""
    """The digest by which the file is approved; empty without a file."""
    trusted: bool = True
    """True if the user approved the file; an unapproved file can only restrict further."""
    proposed: Policy | None = None
    """The policy that becomes active if the user approves the file, or that it is missing."""

    def waiting(self) -> tuple[str, Hint] | None:
        """Returns the effect of an unapproved file and the way to approve it; None without one."""
        if self.trusted:
            return None
        way = Command("trust", FILE)
        if self.proposed is DEFAULT:
            message = "the policy was removed, which is not approved here, so it is still active"
            return message, Hint("approve its removal with ", way)
        message = "the policy is not approved here, so it can only narrow permissions"
        return message, Hint("approve it with ", way, ", or commit it")

    def refusal(self, agent: str | None) -> Denied:
        """Returns the error for every call while the file is invalid.

        To an agent it quotes the file only if that is approved.
        """
        quotes = self.trusted or agent is None
        line, reason = self.faults[0]
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        location = f"{FILE}:{line}: {reason}" if quotes else f"{FILE}:{line}"
        error = Denied(
            f"the policy is invalid, so no tool may be used: {location}{more}",
            hint=Hint("correct the file; ", Command("policy check"), " lists all errors"),
            details={"file": FILE, "line": line, **({"fault": reason} if quotes else {})},
        )
        error.reason = "policy"
        return error

    def judge(self, request: Request) -> Verdict:
        """Returns the first refusal of any policy; `PERMITTED` if all policies permit a call."""
        for policy in self.policies:
            has_own = request.tool == "memory" and request.tool in policy.named
            for tool in (request.tool, request.like or request.tool):
                for rule in policy.rules_of(tool):
                    if has_own and rule.is_general:
                        continue  # The rule of the tool itself counts, not that of `mind_search`.
                    verdict = judge(rule, request)
                    if not verdict.permitted:
                        place = f"{policy.source}:{rule.line}" if rule.line else policy.source
                        message = f"{verdict.message} ({place})"
                        waits = self.proposed and ActivePolicies(policies=(self.proposed,))
                        is_next = bool(waits and waits.judge(request).permitted)
                        return verdict._replace(message=message, waits=is_next)
        return PERMITTED


class PolicyFile:
    """Reads a project's policy again whenever the file or its approval changes."""

    def __init__(
        self,
        root: Path | None,
        trusted: Callable[[str], bool],
        latest: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        """Takes a project's root, and two functions of its approvals.

        `trusted` returns whether a digest is approved, and `latest` the last approved text of the
        file, None without one. It is asked while the file is missing or not approved.
        """
        self._root, self._file = root, files.reread(root / FILE, _read) if root else None
        self._trusted, self._latest = trusted, latest

    def active(self) -> ActivePolicies:
        """Returns the policies that apply now."""
        if self._file is None:
            return ActivePolicies(policies=(DEFAULT,))
        policy, faults, digest = self._file() or (DEFAULT, (), "")
        trusted = policy is not DEFAULT and self._trusted(digest)
        if policy is None:
            return ActivePolicies(policies=(), faults=faults, digest=digest, trusted=trusted)
        latest = None if trusted else self._latest()
        base = DEFAULT if latest is None else _approved(latest)
        if trusted or policy is base:
            return ActivePolicies(policies=(policy,), digest=digest)
        policies = (base,) if policy is DEFAULT else (base, policy)
        return ActivePolicies(policies=policies, digest=digest, trusted=False, proposed=policy)

    def text(self) -> bytes | None:
        """Returns the last approved text of the file, without one the file's; None without both."""
        latest = None if self.active().trusted else self._latest()
        return files.content(self._root / FILE) if self._root and latest is None else latest


@lru_cache(8)
def _approved(data: bytes) -> Policy:
    """Returns the policy in an approved text; one that permits nothing if it can't be read."""
    try:
        return parse(data, f"approved {FILE}")
    except (InvalidPolicy, MindError):
        return Policy(
            rules={EVERY: Rule(operations=())},
            tool_limits={},
            namespace_limits={},
            source=f"approved {FILE}, which is invalid",
        )


def _read(path: Path) -> _Read:
    """Returns the policy in a file or the faults of the file, and the digest of its approval."""
    from mimo.memory.approval import approval_of
    from mimo.memory.codec.front_matter import Fault

    digest = ""
    try:
        data, _ = disk.look(path, limit=MAX_BYTES)
        digest = approval_of(FILE, data)
        return parse(data, FILE), (), digest
    except InvalidPolicy as error:
        return None, error.faults, digest
    except (OSError, MindError) as error:
        return None, (Fault(1, f"it can't be read: {error}"),), digest
