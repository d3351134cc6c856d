"""Edges in terms of an opened memory."""

import pytest

from mimo.features import upkeep
from mimo.features.decisions.commands import decision, outcome
from mimo.features.edges import diffs, sources, stack
from mimo.features.edges.edge import Detection
from mimo.features.upkeep.commands import status
from mimo.memory.model import Kind


def log(mind, text):
    (mind.project.root / ".mind" / "MEMORY.md").write_text(text, encoding="utf-8")


def add(mind, title="Edge has no crypto", **changes):
    told = {"description": "There is none", "workaround": "Use another"}
    return sources.add(
        mind, title, **(told | {"detection": Detection(intent=("token",))} | changes)
    )


def titles(mind, intent, *, code="", techs=None):
    met = sources.warnings(mind, sources.everything(mind), intent, code=code, techs=techs)
    return [one.edge.title for one, _ in met]


@pytest.mark.req("003-13")
def test_global_project_and_stack_edges_are_combined(mind):
    add(mind, "Tokens are not random")
    add(mind, "Supabase tables are open", detection=Detection(), stack_tags=("supabase",))
    sources.add_here(
        mind, "Tokens end at noon", description="x", workaround="y",
        detection=Detection(intent=("token",)),
    )  # fmt: skip
    log(mind, "## Project State\n- Stack: Supabase\n\n## Gotchas\n- Token mails are slow → wait\n")

    found = sources.everything(mind)
    met = sources.warnings(mind, found, "generating a token", code="", techs=None)

    assert {(one.edge.title, one.of_project, match.of_stack) for one, match in met} == {
        ("Token mails are slow", True, False),
        ("Tokens end at noon", True, False),
        ("Tokens are not random", False, False),
        ("Supabase tables are open", False, True),
    }


@pytest.mark.req("003-23", "003-37")
def test_the_stack_comes_from_the_files_and_the_log(mind):
    (mind.project.root / "package.json").write_text('{"dependencies": {"next": "1"}}')
    log(mind, "## Project State\n- Stack: Fly.io, nextjs\n")

    assert sources.technologies(mind) == ("node", "nextjs", "Fly.io")
    current = status(mind).current_project
    assert current is not None
    assert current.stack == ("node", "nextjs", "Fly.io")


def test_few_edges_match_by_the_stack_only(mind):
    for number in range(9):
        add(mind, f"Number {number}", detection=Detection(), stack_tags=("go",))
    add(mind, "Meant", detection=Detection(intent=("token",)), stack_tags=("go",))

    assert titles(mind, "a token", techs=("go",)) == ["Meant", "Number 0", "Number 1", "Number 2"]


def test_an_edit_of_the_log_is_seen_at_once(mind):
    log(mind, "## Gotchas\n- Token mails are slow → wait\n")
    assert titles(mind, "a token") == ["Token mails are slow"]
    log(mind, "## Gotchas\n- Token mails are lost → send two\n")
    assert titles(mind, "a token") == ["Token mails are lost"]


@pytest.mark.req("003-16")
def test_the_doctor_reports_an_invalid_pattern(mind):
    add(mind, detection=Detection(code=("(",)))

    found = [one for one in upkeep.examine(mind) if one.name == "edges"]

    assert [one.verdict for one in found] == ["warning"]
    assert "`(`" in found[0].message


def run_into(mind, code):
    found = sources.run_into(mind, [diffs.whole("a.py", code)])
    return [(hit.known.record.memory.type, hit.place.line) for hit in found]


def test_a_failed_decision_applies_by_its_words(mind):
    saved = decision(mind, "cache", "Use Redis for sessions", reasoning="fast")
    assert run_into(mind, "sessions = redis()") == []
    outcome(mind, id=saved.id, outcome="FAILED", reason="keys were lost")

    assert run_into(mind, "x\nsessions = redis()") == [(Kind.DECISION, 2)]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"package.json": '{"devDependencies": {"@sveltejs/kit": "1", "svelte": "1"}}'},
         ("node", "sveltekit", "svelte")),
        ({"package.json": '{"dependencies": {"next": "1", "react": "1"}}'}, ("node", "nextjs")),
        ({"package.json": '{"dependencies": {"react": "1", "typescript": "5"}}'},
         ("node", "react", "typescript")),
        ({"package.json": '{"dependencies": {"vue": "1", "tailwindcss": "5"}}'},
         ("node", "vue", "tailwind")),
        ({"package.json": "{"}, ("node",)),
        ({"package.json": '["next"]'}, ("node",)),
        ({"pyproject.toml": 'dependencies = ["FastAPI>=1", "flask"]'},
         ("python", "fastapi", "flask")),
        ({"requirements.txt": "django==5"}, ("python", "django")),
        ({"Cargo.toml": "", "go.mod": "", "vercel.json": ""}, ("rust", "go", "vercel")),
        ({"supabase/config.toml": "", "docker-compose.yaml": ""}, ("docker", "supabase")),
        ({}, ()),
    ],
)  # fmt: skip
@pytest.mark.req("003-37")
def test_the_usual_files_determine_the_stack(tmp_path, files, names):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert stack.detect(tmp_path) == names
