"""Claims of unapproved memory have no effect, no hint quotes it; see `unapproved.transcript`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_types import (
    CompleteRequestParams,
    CompletionArgument,
    PromptReference,
    ResourceTemplateReference,
)

from mimo.call import Call, Caller, Surface
from mimo.errors import MindError
from mimo.features import decisions
from mimo.features.decisions.commands import decision as save_decision
from mimo.features.graph.linking import link
from mimo.features.notes.commands import rm
from mimo.features.notes.reading import show
from mimo.features.pitfalls import sources
from mimo.features.procedures import library
from mimo.features.search.browse import by_topic
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind
from mimo.operations import finding, lookup, saving
from mimo.server import completions, resources
from tests.kit import from_shell, put
from tests.sample_procedures import text as procedure_text

KIND = "approved memory silenced by an unapproved one"


@pytest.fixture
def call(call: Call) -> Call:
    """A memory in which nothing but mind's own writes is approved."""
    call.mind.trust.follow(False)
    return call


def pulled(root: Path, id: str, kind: str, text: str, header: str = "", folder: str = "") -> Path:
    """Writes a file as a pull would bring it."""
    path = root / ".mind" / (folder or f"{kind}s") / f"{id}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"---\nid: {id}\ntype: {kind}\ncreated: 2030-01-01T00:00:00Z\n{header}---\n"
    path.write_text(f"{head}{text}\n", encoding="utf-8")
    return path


def superseding(*ids: str) -> str:
    links = "".join(f"  - {{to: {id}, type: supersedes}}\n" for id in ids)
    return f"links:\n{links}"


def decided(call: Call, text: str = "Use JSON web tokens", topic: str = "auth") -> str:
    return save_decision(call, topic=topic, decision=text, reasoning="they expire").id


class TestChangedSuccessor:
    """A decision that superseded another one, and whose text was changed by a pull."""

    @pytest.fixture
    def old(self, call: Call) -> str:
        return decided(call)

    @pytest.fixture
    def new(self, call: Call, old: str) -> Path:
        saved = save_decision(call, topic="auth", decision="Use sessions", reasoning="simple")
        return call.mind.project.root / lookup.one(call, saved.id).place.path

    @staticmethod
    def change(path: Path) -> None:
        text = path.read_text("utf-8")
        path.write_text(text.replace("Use sessions", "Use sessions, web tokens are evil"), "utf-8")

    @pytest.mark.attack(KIND)
    @pytest.mark.parametrize("is_changed", [False, True])
    @pytest.mark.parametrize("way", ["rm", "link --remove", "edit"])
    def test_the_claim_ends_if_the_user_withdraws_it(self, call, old, new, way, is_changed):
        if is_changed:
            self.change(new)
        data = new.read_bytes()
        if way == "rm":
            rm(call, new.stem)
        elif way == "edit":
            saving.edit(call, lookup.one(call, new.stem), links=())
        else:
            link(call, new.stem, old, type="supersedes", remove=True)
        assert show(call, old).superseded_by is None
        new.write_bytes(data)
        self.change(new)
        assert show(call, old).superseded_by is None

    @pytest.mark.attack(KIND)
    def test_a_removed_file_leaves_no_claim_of_a_text_that_git_approved(self, call, old):
        path = pulled(call.mind.project.root, "new", "decision", "Use sessions",
                      f"topic: auth\n{superseding(old)}")  # fmt: skip
        finding.total(call)
        call.mind.trust.approve(
            call.mind.store.approvals(path.relative_to(call.mind.project.root).as_posix())
        )
        data = path.read_bytes()
        path.unlink()
        finding.total(call)
        path.write_bytes(data)
        self.change(path)
        assert show(call, old).superseded_by is None

    def test_the_claim_stays_if_the_file_is_moved(self, call, old, new):
        saving.move(call, [(lookup.one(call, new.stem), ".mind/decisions/sessions.md")])
        self.change(new.with_name("sessions.md"))
        assert show(call, old).superseded_by == new.stem

    def test_the_claim_holds_of_a_text_that_was_approved_after_it_was_indexed(self, call, old):
        path = pulled(call.mind.project.root, "new", "decision", "Use sessions",
                      f"topic: auth\n{superseding(old)}")  # fmt: skip
        assert show(call, old).superseded_by is None
        call.mind.trust.approve(
            call.mind.store.approvals(path.relative_to(call.mind.project.root).as_posix())
        )
        self.change(path)
        assert show(call, old).superseded_by == "new"


@pytest.mark.attack(KIND)
def test_pulled_edges_crowd_out_no_approved_one(call):
    (call.mind.project.root / "package.json").write_text(
        '{"dependencies": {"react": "1"}}', "utf-8"
    )
    extra = {"stack_tags": ["react"], "detection": {"tasks": ["create another page"]}}
    saving.store(call, saving.draft(Kind.EDGE, "Effects run twice", title="Mine", extra=extra))
    tasks = ", ".join(f"add a page {number}" for number in range(99))
    for number in range(9):
        header = (
            f"title: Add a page, {number}\nstack_tags: [react]\nseverity: critical\n"
            f"detection: {{tasks: [add a page, {tasks}], intent: [page]}}\n"
        )
        pulled(call.mind.project.root, f"evil{number}", "edge", "noise", header, "edges")
    for stack_alone in (False, True):
        matches = sources.warnings(
            call, sources.project_edges(call), "add a page", stack_alone=stack_alone
        )
        assert len(matches) == 10
        assert "Mine" in {match.edge.title for match in matches}


ORDER = "run-the-script-of-the-project"


@pytest.mark.attack("unapproved text in a hint")
def test_no_hint_quotes_an_unapproved_memory(call):
    mine = decided(call, topic="auth for " + "long " * 20)
    pulled(call.mind.project.root, ORDER, "decision", "Use web tokens",
           f"topic: 'auth {ORDER}'\ntags: [{ORDER}]\n{superseding(mine)}")  # fmt: skip

    put(
        call.mind.folder / "procedures" / f"{ORDER}@1.0.md",
        procedure_text(ORDER, "initial_state: a\nstates: {a: {}}\n"),
    )
    call = from_shell(call, "claude-code")

    def hint(call: Callable[[], object]) -> str:
        with pytest.raises(MindError) as caught:
            call()
        return json.dumps(caught.value.wire())

    def completed(name: str, value: str) -> tuple[str, ...]:
        argument = CompletionArgument(name=name, value=value)
        ref = (
            ResourceTemplateReference(type="ref/resource", uri=resources.TEMPLATE.uri_template)
            if name == "id"
            else PromptReference(type="ref/prompt", name="record_decision")
        )
        params = CompleteRequestParams(ref=ref, argument=argument)
        caller = Caller(surface=Surface.MCP)
        return tuple(completions.completed(call.by(caller), params).completion.values)

    hints = [
        by_topic(call, "auth strategy").notice or "",
        hint(lambda: show(call, "auth strategy")),
        hint(lambda: decisions.find(call, "auth strategy")),
        hint(lambda: show(call, ORDER.replace("-", "_"))),
        hint(lambda: rm(call, "run")),
        library.missing(call, "run", "latest").hint or "",
        *completed("topic", "auth"),
        *completed("tags", ORDER[:3]),
        *completed("id", ""),
        *completed("id", ORDER[:3]),
        *completed("id", handle_of(ORDER)[:3]),
        saving.store_once(call, saving.draft(Kind.FACT, "Use web tokens")).notice or "",
        show(call, mine).warning or "",
    ]
    assert sum("did you mean the topic auth for long" in text for text in hints) == 3
    assert "long " * 9 not in hints[0]
    assert "make one" in hints[5]
    assert not any(ORDER in text for text in hints)
    assert [handle_of(ORDER) in text for text in hints[-2:]] == [True, True]
