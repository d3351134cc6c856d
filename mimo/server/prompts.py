"""MCP prompts, which the user picks in a client: resume work, and record a decision."""

from collections.abc import Mapping
from typing import Annotated

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from mimo.call import Call
from mimo.call.spec import Arg, Needs
from mimo.errors import NotFound
from mimo.features import context, decisions
from mimo.features.context.files import notes_for_agents
from mimo.features.hooks.events import fenced
from mimo.guard.policy import Operation
from mimo.index.catalog import Catalog
from mimo.server.requests import answer_to, request
from mimo.text.calendar import age

RESUME = Prompt(
    name="resume_work",
    title="Resume work",
    description="Go on where work on this project stopped",
)
DECIDE = Prompt(
    name="record_decision",
    title="Record a decision",
    description="Put a decision into the project's memory, with its reasons",
    arguments=[
        PromptArgument(name="decision", description="What was decided", required=False),
        PromptArgument(name="topic", description="Topic of the decision", required=False),
        PromptArgument(name="tags", description="Tags, separated by commas", required=False),
    ],
)
PROMPTS = (RESUME, DECIDE)

_GO_ON = (
    "Go on with the work on this project from where it stopped. Say in two sentences where that "
    "is, then do the next step. Check what the notes say against the files before you rely on it."
)
_NOWHERE = (
    "There is no record of where work on this project stopped. Read the newest memories with "
    "search_recent and the last commits, and summarize where we are before you do anything."
)
_RECORD = (
    "Record {what} in this project's memory. Search it first (search_by_topic, mind_search) for "
    "what was decided on the same thing before, and use the same topic. Then call save_decision "
    "with the decision in one sentence, and as reasoning what spoke for it, what else was "
    "considered and why that was not chosen. Ask me for reasons that you don't know; make none up."
)
_LONGEST = 2_000


def prompt(call: Call, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Returns the text of a prompt.

    Raises `NotFound` for another name, and what `invoke` raises.
    """
    if name == RESUME.name:
        return _message(RESUME, answer_to(resume_work, str, call))
    if name == DECIDE.name:
        return _message(DECIDE, answer_to(record_decision, str, call, arguments))
    names = " and ".join(item.name for item in PROMPTS)
    raise NotFound(f"there is no prompt `{name}`", hint=f"prompts are {names}")


@request(
    "prompts/get",
    operation=RESUME.name,
    needs=Needs(Operation.READ, like="load/checkpoint"),
)
def resume_work(call: Call) -> str:
    """Return the prompt that resumes work"""
    resumed = decisions.latest_checkpoint(call)
    if resumed is None or not call.mind.trust.trusted(resumed.record.place.approval):
        permitted = call.mind.guard.permits("mind_context")
        notes = notes_for_agents(call) if permitted else None
        if notes and notes.notes:
            return f"{_NOWHERE}\n\n{fenced(notes.text, call.mind.source)}"
        return _NOWHERE
    id = resumed.record.memory.id
    checkpoints = call.index.ask(lambda sql: Catalog(sql, year=call.mind.now().year).by_id(id))
    age_text = age(resumed.record.memory.created, call.mind.now())
    lines = [f"Where work stopped, {age_text}, on {resumed.whose.value}:"]
    lines += [line.text for note in checkpoints for line in context.checkpoint(note)]
    return f"{_GO_ON}\n\n{fenced(chr(10).join(lines), call.mind.source)}"


@request(
    "prompts/get",
    operation=DECIDE.name,
    needs=Needs(Operation.READ),
    needs_project=False,
)
def record_decision(
    call: Call,
    *,
    decision: Annotated[str, Arg("Decision that was made")] = "",
    topic: Annotated[str, Arg("Topic of the decision")] = "",
    tags: Annotated[str, Arg("Tags, separated by commas")] = "",
) -> str:
    """Return the prompt that records a decision"""
    decision, topic, tags = (text.strip()[:_LONGEST] for text in (decision, topic, tags))
    what = f"this decision: {decision}" if decision else "the decision that we just made"
    named = {"topic": topic, "tags": tags}
    details = "; ".join(f"{name}: {text}" for name, text in named.items() if text)
    return _RECORD.format(what=f"{what} ({details})" if details else what)


def _message(prompt: Prompt, text: str) -> GetPromptResult:
    message = PromptMessage(role="user", content=TextContent(text=text))
    return GetPromptResult(description=prompt.description, messages=[message])
