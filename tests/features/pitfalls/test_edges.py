"""The edges that apply in a project."""

import pytest

from mimo.data import files
from mimo.data.locks import is_held
from mimo.features.decisions.commands import decision, outcome, supersede
from mimo.features.pitfalls import sources, storage
from mimo.features.pitfalls.checking import whole
from mimo.features.pitfalls.edge import Detection
from mimo.features.upkeep import checks
from mimo.features.upkeep.status import status
from mimo.index.embedding.encoder import Encoder
from mimo.mind import Mind
from mimo.operations import saving
from tests.features.pitfalls.examples import edge


def log(call, text):
    (call.mind.project.root / ".mind" / "MEMORY.md").write_text(text, encoding="utf-8")


def add(call, title="Edge has no crypto", **fields):
    fields = {"detection": Detection(intent=("token",))} | fields
    return sources.add(call, edge(title=title, **fields))


def titles(call, intent, **options):
    matches = sources.warnings(call, sources.all_edges(call), intent, **options)
    return [match.edge.title for match in matches]


@pytest.mark.req("003-13")
def test_global_project_and_stack_edges_are_combined(call):
    tasks = Detection(tasks=("generate a token",))
    add(call, "Numbers are not random", detection=tasks)
    add(call, "Tables are open", detection=tasks, tags=("supabase",))
    add(call, "Rules are open", detection=tasks, tags=("firebase",))
    add(call, "Keys end at noon", detection=tasks, of_project=True)
    log(
        call,
        "## Project State\n- Stack: Supabase\n\n## Gotchas\n- Generating a token blocks → wait\n",
    )

    matches = sources.warnings(call, sources.all_edges(call), "generating a token")

    assert {(match.edge.title, match.edge.of_project, match.of_stack) for match in matches} == {
        ("Generating a token blocks", True, False),
        ("Keys end at noon", True, False),
        ("Numbers are not random", False, False),
        ("Tables are open", False, True),
    }


def test_no_process_adds_an_edge_between_the_comparison_and_the_writing(call, monkeypatch):
    place, held = files.local(call.mind.project.root, "adding"), []

    def store(*given, real=saving.store, **named):
        held.append(is_held(place))
        return real(*given, **named)

    monkeypatch.setattr(saving, "store", store)
    add(call, of_project=True)

    assert held == [True]
    assert not is_held(place)


@pytest.mark.req("003-23", "003-37")
def test_the_stack_comes_from_the_files_and_the_log(call):
    (call.mind.project.root / "package.json").write_text('{"dependencies": {"next": "1"}}')
    log(call, "## Project State\n- Stack: Fly.io, nextjs\n")

    assert sources.technologies(call) == ("node", "nextjs", "Fly.io")
    current = status(call).current_project
    assert current is not None
    assert current.stack == ("node", "nextjs", "Fly.io")


def test_edges_of_the_stack_follow_on_request(call):
    add(call, "Meant", tags=("go",))
    add(call, "Other", detection=Detection(), tags=("go",))
    add(call, "Foreign", tags=("ruby",))

    assert titles(call, "a token", techs=("go",)) == ["Meant"]
    assert titles(call, "a token", techs=("go",), stack_alone=True) == ["Meant", "Other"]


def test_an_edge_is_found_by_what_is_about_to_be_done(call):
    tasks = Detection(tasks=("keep users logged in",))
    add(call, "Safari deletes data of scripts after 7 days", detection=tasks)

    assert titles(call, "remember the login of a visitor for a month") == [
        "Safari deletes data of scripts after 7 days"
    ]
    assert titles(call, "make the footer blue") == []


def test_without_the_encoder_words_decide(call, monkeypatch):
    add(call)
    monkeypatch.setattr(Mind, "encoder", None)

    assert titles(call, "a token") == ["Edge has no crypto"]
    assert titles(call, "a secret for the session") == []


def test_an_encoder_that_fails_leaves_the_words(call, monkeypatch):
    add(call)

    def fail(*_):
        raise ValueError("damaged")

    monkeypatch.setattr("mimo.index.embedding.encoder.Encoder.encode_many", fail)

    assert titles(call, "a token") == ["Edge has no crypto"]


def test_phrases_are_encoded_once(call, monkeypatch):
    add(call)
    titles(call, "a token")
    encoded: list[str] = []
    encode = Encoder.encode_many

    def counted(own, texts):
        encoded.extend(texts)
        return encode(own, texts)

    monkeypatch.setattr(Encoder, "encode_many", counted)

    titles(call, "another token")

    assert encoded == []


def test_korean_tasks_are_compared_by_meaning(call):
    template = "알림톡 템플릿은 글자 하나만 달라도 반려"
    add(call, template, detection=Detection(tasks=("알림톡 내용 수정",)))
    add(call, "새 테이블에 utf8mb4 안 쓰면 insert 실패", detection=Detection())

    assert titles(call, "예약 확정 알림톡의 내용을 바꾼다") == [template]


def test_a_task_that_repeats_a_failed_decision_is_warned(call):
    saved = decision(call, "payments", "Use PayPal for card payments", reasoning="cheap")
    outcome(call, id=saved.id, outcome="FAILED", reason="refunds took weeks")
    supersede(call, saved.id, "Use Stripe for card payments", reasoning="refunds take a day")

    (match,) = sources.warnings(call, sources.all_edges(call), "add paypal to the checkout")

    assert match.edge.id == saved.id
    assert match.edge.workaround == (
        "FAILED, do not repeat it: refunds took weeks; superseded by Use Stripe for card payments"
    )
    assert titles(call, "add stripe to the checkout") == []


def test_an_edit_of_the_log_is_seen_at_once(call):
    log(call, "## Gotchas\n- Token mails are slow → wait\n")
    assert titles(call, "mailing a token") == ["Token mails are slow"]
    log(call, "## Gotchas\n- Token mails are lost → send two\n")
    assert titles(call, "mailing a token") == ["Token mails are lost"]


@pytest.mark.req("003-16")
def test_the_doctor_reports_an_invalid_pattern(call):
    add(call, detection=Detection(code=("(",)))

    findings = [finding for finding in checks.examine(call) if finding.name == "pitfalls"]

    assert [finding.verdict for finding in findings] == ["warning"]
    assert "`(`" in findings[0].message


def run_into(call, code):
    hits = sources.run_into(call, [whole("a.py", code)])
    return [(hit.edge.type, hit.line) for hit in hits]


def test_a_failed_decision_applies_by_its_words(call):
    saved = decision(call, "cache", "Use Redis for sessions", reasoning="fast")
    assert run_into(call, "sessions = redis()") == []
    outcome(call, id=saved.id, outcome="FAILED", reason="keys were lost")

    assert run_into(call, "x\nsessions = redis()") == [("decision", 2)]


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["redis>=5", "psycopg[binary]~=3"]',
         {"redis", "psycopg"}),
        ("pyproject.toml", '[tool.poetry.dependencies]\nredis = "^5"\n', {"redis"}),
        ("requirements.txt", "redis==5\nstripe\n", {"redis", "stripe"}),
        ("package.json", '{"dependencies": {"ioredis": "1", "@stripe/stripe-js": "1"}}',
         {"ioredis", "stripe", "stripejs"}),
        ("Cargo.toml", '[dependencies]\nlittlefs2 = "0.4"\n', {"littlefs2"}),
        ("go.mod", "require (\n\tgithub.com/redis/go-redis/v9 v9.0\n)", {"redis", "goredis"}),
        ("Gemfile", 'gem "sidekiq", "~> 7"', {"sidekiq"}),
        ("composer.json", '{"require": {"predis/predis": "^2"}}', {"predis"}),
        ("pom.xml", "<artifactId>hibernate-core</artifactId>", {"hibernatecore"}),
        ("build.gradle", "implementation 'com.squareup.okhttp3:okhttp:4.12.0'", {"okhttp"}),
        ("build.gradle.kts", 'implementation("io.ktor:ktor-core:2.3")', {"ktorcore"}),
        ("App.csproj", '<PackageReference Include="Dapper" Version="2.1" />', {"dapper"}),
        ("src/App/App.csproj", '<PackageReference Include="Dapper" Version="2.1" />', {"dapper"}),
        ("platformio.ini", "lib_deps =\n  bblanchon/ArduinoJson@^7\n", {"arduinojson"}),
        ("pubspec.yaml", "dependencies:\n  riverpod: ^2\n", {"riverpod"}),
        ("mix.exs", '[{:ecto_sql, "~> 3"}]', {"ectosql"}),
        ("requirements/base.txt", "celery[redis]==5.3\n", {"celery"}),
    ],
)  # fmt: skip
def test_dependencies_are_read_from_the_manifests(tmp_path, name, text, names):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

    assert names <= set(storage.dependencies(tmp_path))


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
