"""The edges that apply in a project."""

import pytest

from mimo.features import upkeep
from mimo.features.decisions.commands import decision, outcome
from mimo.features.edges import sources, storage
from mimo.features.edges.checking import whole
from mimo.features.edges.edge import Detection
from mimo.features.upkeep.commands import status
from tests.features.edges.examples import edge


def log(mind, text):
    (mind.project.root / ".mind" / "MEMORY.md").write_text(text, encoding="utf-8")


def add(mind, title="Edge has no crypto", **fields):
    fields = {"detection": Detection(intent=("token",))} | fields
    return sources.add(mind, edge(title=title, **fields))


def titles(mind, intent, **options):
    matches = sources.warnings(mind, sources.everything(mind), intent, **options)
    return [match.edge.title for match in matches]


@pytest.mark.req("003-13")
def test_global_project_and_stack_edges_are_combined(mind):
    add(mind, "Tokens are not random")
    add(mind, "Supabase tables are open", detection=Detection(), tags=("supabase",))
    add(mind, "Tokens end at noon", of_project=True)
    log(mind, "## Project State\n- Stack: Supabase\n\n## Gotchas\n- Token mails are slow → wait\n")

    matches = sources.warnings(mind, sources.everything(mind), "generating a token")

    assert {(match.edge.title, match.edge.of_project, match.of_stack) for match in matches} == {
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
        add(mind, f"Number {number}", detection=Detection(), tags=("go",))
    add(mind, "Meant", detection=Detection(intent=("token",)), tags=("go",))

    assert titles(mind, "a token", techs=("go",)) == ["Meant", "Number 0", "Number 1", "Number 2"]


def test_an_edit_of_the_log_is_seen_at_once(mind):
    log(mind, "## Gotchas\n- Token mails are slow → wait\n")
    assert titles(mind, "a token") == ["Token mails are slow"]
    log(mind, "## Gotchas\n- Token mails are lost → send two\n")
    assert titles(mind, "a token") == ["Token mails are lost"]


@pytest.mark.req("003-16")
def test_the_doctor_reports_an_invalid_pattern(mind):
    add(mind, detection=Detection(code=("(",)))

    findings = [finding for finding in upkeep.examine(mind) if finding.name == "edges"]

    assert [finding.verdict for finding in findings] == ["warning"]
    assert "`(`" in findings[0].message


def run_into(mind, code):
    hits = sources.run_into(mind, [whole("a.py", code)])
    return [(hit.edge.type, hit.line) for hit in hits]


def test_a_failed_decision_applies_by_its_words(mind):
    saved = decision(mind, "cache", "Use Redis for sessions", reasoning="fast")
    assert run_into(mind, "sessions = redis()") == []
    outcome(mind, id=saved.id, outcome="FAILED", reason="keys were lost")

    assert run_into(mind, "x\nsessions = redis()") == [("decision", 2)]


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

    assert storage.stack_of(tmp_path) == names
