"""Extensions: a foreign package adds to mind, and mind works without those that it has itself."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mimo

HOME = Path(mimo.__file__).parent
OWN = sorted(
    path.name for path in (HOME / "extensions").iterdir() if (path / "__init__.py").exists()
)

TRANSCRIPTS = "tests/test_transcripts.py"

MANIFEST = """
from mimo.api import Extension

EXTENSION = Extension(
    commands={"Find": {"standup": "standup.commands", "search": "standup.commands"}},
    importers={"standup": "standup.notes:read"},
    recogniser="standup.notes:formats",
    synonyms={"yesterday": ("standup",)},
    scopes={"wiki": "standup.commands:search_wiki"},
)
"""

NOTES = """
from mimo.api import Draft


def read(source):
    for line in source.text(source.path.name).splitlines()[1:]:
        yield Draft(key=line, group="lines", content=line)


def formats(source):
    is_ours = source.is_file and source.text(source.path.name).startswith("standup")
    return ["standup"] if is_ours else []
"""

COMMANDS = '''
from typing import Annotated

from mimo.api import Arg, Call, Effect, Out, Screen, all_commands, command, frozen, invoke, render
from mimo.api import rows_of, searching


@frozen
class Standup:
    """The titles of memories."""

    titles: Annotated[tuple[str, ...], Out("Titles")]


@command("standup", cli="standup", effect=Effect.READ, toolset="extra", examples=("mind standup",))
def standup(call: Call, about: Annotated[str, Arg("A word in the titles")] = "") -> Standup:
    """Say what the memories are about

    For the meeting in the morning.
    """
    rows = invoke(all_commands().at("list"), call, {}).memories
    return Standup(titles=tuple(row.title for row in rows if about in row.title))


def search_wiki(call, query, options, types):
    matches = searching.search(call, query, options, with_user=True).matches
    return rows_of(matches, types)[:1], "from the wiki"


@render.register
def _(result: Standup, screen: Screen) -> None:
    for title in result.titles:
        screen.line(f"yesterday: {title}")
'''


def install(folder: Path, value: str = "standup", manifest: str = MANIFEST) -> Path:
    """Makes a folder of installed packages with one that adds a command."""
    package = folder / "standup"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(manifest)
    (package / "commands.py").write_text(COMMANDS)
    (package / "notes.py").write_text(NOTES)
    metadata = folder / "standup-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: standup\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[mimo.extensions]\nstandup = {value}\n")
    return folder


def mind(*words: str, path: Path, cwd: Path, input: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a command with packages of a folder, in a new process as what is installed is kept."""
    environ = os.environ | {"PYTHONPATH": str(path)}
    line = [sys.executable, "-m", "mimo", *words]
    return subprocess.run(
        line, env=environ, cwd=cwd, input=input, capture_output=True, text=True, check=False
    )


@pytest.fixture
def with_memory(project: Path) -> Path:
    assert mind("add", "Use JWT for the API", path=project, cwd=project).returncode == 0
    return project


def test_a_foreign_package_adds_a_command(with_memory: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")

    done = mind("standup", "JWT", path=packages, cwd=with_memory)
    assert (done.stdout, done.stderr, done.returncode) == (
        "yesterday: Use JWT for the API\n",
        "",
        0,
    )
    listed = mind("help", "--all", path=packages, cwd=with_memory).stdout
    assert "standup          Say what the memories are about" in listed
    unknown = mind("yesterday", path=packages, cwd=with_memory)
    assert "did you mean `mind standup`?" in unknown.stderr


def test_a_foreign_package_replaces_no_command(with_memory: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")

    assert "Use JWT" in mind("search", "JWT", path=packages, cwd=with_memory).stdout
    assert "yesterday" not in mind("search", "JWT", path=packages, cwd=with_memory).stdout


def test_a_foreign_package_adds_an_importer(project: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")
    (project / "friday.txt").write_text("standup\nUse PKCE in the login\n", "utf-8")

    plain = mind("import", "friday.txt", path=tmp_path, cwd=project).stderr
    assert "the format of" in plain
    done = mind("import", "friday.txt", path=packages, cwd=project)
    assert done.returncode == 0
    assert "1 memory imported" in done.stdout
    wrong = mind("import", "friday.txt", "--from", "sticky", path=packages, cwd=project).stderr
    for listing in (mind("import", "--help", path=packages, cwd=project).stdout, wrong):
        assert "standup" in listing
        assert "obsidian" in listing


def test_a_foreign_package_adds_a_search_scope(with_memory: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")

    done = mind("search", "--scope", "wiki", "JWT", path=packages, cwd=with_memory)
    assert "Use JWT for the API" in done.stdout
    assert (done.stderr, done.returncode) == ("note: from the wiki\n", 0)

    unknown = mind("search", "--scope", "wikis", "JWT", path=packages, cwd=with_memory)
    assert "must be one of project, all, org, wiki, not `wikis`" in unknown.stderr
    help = mind("help", "search", path=packages, cwd=with_memory).stdout
    assert "project|all" in help
    alone = mind("search", "--scope", "wiki", "JWT", path=tmp_path, cwd=with_memory)
    assert alone.returncode == 2


MAKE = "from mimo.api import Extension\nEXTENSION = Extension({})"

BROKEN = {
    "missing": ("import missing_package", "`missing_package` is not installed"),
    "raising": ("1 / 0", "ZeroDivisionError: division by zero"),
    "ending": ("raise SystemExit(3)", "SystemExit: 3"),
    "number": ("EXTENSION = 5", "`number` is not an extension"),
    "printing": ("print('intrusion'); EXTENSION = 5", "`printing` is not an extension"),
    "text": (MAKE.format("commands='text.commands'"), "its `commands` is not of the type Mapping"),
    "empty": (MAKE.format("commands={'Find': {' ': 'x'}}"), "its `commands` is not of the type"),
    "none": (MAKE.format("groups=None"), "its `groups` is not of the type Mapping[str, str]"),
    "letters": (MAKE.format("tools='letters'"), "its `tools` is not of the type tuple[str, ...]"),
    "absent": (MAKE.format("tools=('gone',)"), "`gone` is not installed"),
    "scope": (
        MAKE.format("scopes={'org': 5}"),
        "its `scopes` is not of the type Mapping[str, str]",
    ),
    "server": (MAKE.format("serve=5"), "its `serve` is not of the type str"),
}
"""Manifests that are not valid, each with the reason."""

LONG = "s" * 65

REFUSED = {
    "untyped": ('about: Annotated[str, Arg("A word in the titles")]', "about", "KeyError: 'about'"),
    "unhelpful": (
        'Annotated[str, Arg("A word in the titles")]',
        "str",
        "parameter `about` of standup has no help",
    ),
    "endless": (") -> Standup", ") -> set", "a command can't answer with <class 'set'>"),
    "replacing": ('"replacing"', '"mind_search"', "mind itself has a tool `mind_search`"),
    "doubled": ('"doubled"', '"standup"', "another extension has a tool `standup`"),
    "shouting": ('"shouting"', '"stand up!"', "`stand up!` or its toolset `extra` is not a valid"),
    "sharp": ('"sharp"', '"standüp"', "`standüp` or its toolset `extra` is not a valid name"),
    "endlessly": ('"endlessly"', f'"{LONG}"', f"`{LONG}` or its toolset `extra` is not a"),
    "unlisted": ('"extra"', '"mine"', "`unlisted` or its toolset `mine` is not a valid name"),
}
"""Changes of commands that no surface can offer then, each with the reason."""

REQUESTS = """\
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",\
 "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
"""


def test_broken_packages_are_named_by_doctor_alone(with_memory: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")
    entries = ["standup = standup", "nothing = standup:nothing", "formless = stand up"]
    for name, (manifest, _) in BROKEN.items():
        (packages / f"{name}.py").write_text(manifest)
        entries.append(f"{name} = {name}")
    for name, (old, new, _) in REFUSED.items():
        commands = COMMANDS.replace('("standup"', f'("{name}"')
        (packages / f"{name}.py").write_text(commands.replace(old, new))
        tools = MAKE.format(f"tools=('{name}',)")
        (packages / f"of_{name}.py").write_text(tools)
        entries.append(f"of_{name} = of_{name}")
    metadata = packages / "standup-1.0.dist-info" / "entry_points.txt"
    metadata.write_text("\n".join(["[mimo.extensions]", *entries]))

    for line in ("help --all", "search JWT", "standup", "mcp --toolsets all"):
        done = mind(*line.split(), path=packages, cwd=with_memory, input=REQUESTS)
        assert (done.returncode, "intrusion" in done.stdout) == (0, False), line
        if line.startswith("mcp"):
            assert {"mind_search", "standup"} <= set(re.findall(r'"name":"(\w+)"', done.stdout))
    printed = " ".join(mind("doctor", path=packages, cwd=with_memory).stdout.split())
    reasons = {name: reason for name, (*_, reason) in (BROKEN | REFUSED).items()}
    reasons["nothing"] = "AttributeError: module 'standup' has no attribute 'nothing'"
    reasons["formless"] = "AttributeError: 'NoneType' object has no attribute 'group'"
    for name, reason in reasons.items():
        of_it = rf"extension `({name}|gone|standup)` can't be used: (\w+: )?{re.escape(reason)}"
        assert re.search(of_it, printed), name


@pytest.mark.parametrize(
    ("line", "old", "message"),
    [
        ("standup", "    rows = invoke", "unexpected error in the extension `standup 1.0` (Zero"),
        ("search --scope wiki JWT", "    matches =", "in the extension `standup 1.0` (Zero"),
        ("import friday.txt", "    for line", "in the extension `standup 1.0` (Zero"),
        ("import friday.txt", "    is_ours =", "in the extension `standup 1.0` (Zero"),
        (
            "import friday.txt --from standup",
            "def read(",
            "`standup.notes:read` of an extension can't be used: ZeroDivisionError: division by",
        ),
    ],
)
def test_an_error_in_a_foreign_package_names_it(
    with_memory: Path, tmp_path: Path, line: str, old: str, message: str
) -> None:
    packages = install(tmp_path / "packages")
    (with_memory / "friday.txt").write_text("standup\nUse PKCE in the login\n", "utf-8")
    for module in (packages / "standup").iterdir():
        indent = " " * (len(old) - len(old.lstrip()))
        module.write_text(module.read_text().replace(old, f"{indent}1 / 0\n{old}"))

    done = mind(*line.split(), path=packages, cwd=with_memory)
    assert (done.stdout, done.returncode) == ("", 1)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_damaged_entry_points_and_a_tool_that_exits_end_nothing(
    with_memory: Path, tmp_path: Path
) -> None:
    packages = install(tmp_path / "packages")
    commands = packages / "standup" / "commands.py"
    commands.write_text(COMMANDS.replace("    rows =", "    raise SystemExit(3)\n    rows ="))
    entries = packages / "standup-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[mimo.extensions]\nformless = stand up\nstandup = standup\n")

    called = '{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "standup"}}\n'
    done = mind("mcp", "--toolsets", "all", path=packages, cwd=with_memory, input=REQUESTS + called)
    assert done.returncode == 0
    assert "unexpected error in the extension `standup 1.0` (SystemExit)" in done.stdout

    entries.write_bytes(b"[mimo.extensions]\n\xff = standup\n")
    assert mind("help", "--all", path=packages, cwd=with_memory).returncode == 0
    printed = " ".join(mind("doctor", path=packages, cwd=with_memory).stdout.split())
    assert "extension `(all)` can't be used: UnicodeDecodeError" in printed


def test_a_recogniser_that_answers_with_other_words_recognises_nothing(
    project: Path, tmp_path: Path
) -> None:
    packages = install(tmp_path / "packages")
    (project / "friday.txt").write_text("standup\nUse PKCE in the login\n", "utf-8")
    for answer, expected in (
        ('"standup"', "the format of"),
        ("None", "the format of"),
        ('["mama"]', "the format of"),
        ('["standup", "standup"]', "1 memory would be imported"),
    ):
        notes = NOTES.replace('["standup"] if is_ours else []', answer)
        (packages / "standup" / "notes.py").write_text(notes)
        done = mind("import", "friday.txt", "--dry-run", path=packages, cwd=project)
        assert expected in done.stdout + done.stderr, answer


def test_a_policy_may_name_a_tool_of_a_foreign_package(with_memory: Path, tmp_path: Path) -> None:
    packages = install(tmp_path / "packages")
    policy = with_memory / ".mind" / "policy.yaml"

    policy.write_text("tool_permissions:\n  standup:\n    operations: []\n")
    assert mind("policy", "check", path=packages, cwd=with_memory).returncode == 0
    denied = mind("standup", path=packages, cwd=with_memory)
    assert (denied.stdout, denied.returncode) == ("", 5)
    assert "its operations are none (.mind/policy.yaml:2)" in denied.stderr
    policy.write_text("tool_permissions:\n  standup:\n    operations: [read]\n")
    assert mind("standup", path=packages, cwd=with_memory).returncode == 0

    without = mind("policy", "check", path=tmp_path, cwd=with_memory)
    assert "there is no tool `standup` in this version of mind" in without.stdout
    assert mind("search", "JWT", path=tmp_path, cwd=with_memory).returncode == 5
    policy.write_text("tool_permissions:\n  standupp:\n    operations: []\n")
    misspelled = mind("policy", "check", path=packages, cwd=with_memory)
    assert "there is no tool `standupp`; did you mean `standup`?" in misspelled.stdout
    assert misspelled.returncode == 1


def test_a_command_whose_module_is_missing_names_its_extension(
    project: Path, tmp_path: Path
) -> None:
    packages = install(tmp_path / "packages")
    (packages / "standup" / "commands.py").unlink()

    done = mind("standup", path=packages, cwd=project)
    assert (done.stdout, done.returncode) == ("", 1)
    assert "`standup.commands` does not declare it" in done.stderr


REPLACING = """
from mimo.api import Extension

EXTENSION = Extension(
    commands={"Find": {"export": "standup.commands"}}, scopes={"org": "standup.commands:search"}
)
"""

LOOKUP = """
from mimo.call.extensions import extensions, scopes
from mimo.call.table import all_commands

print(*extensions(), scopes()["org"], all_commands().modules["export"])
"""


def test_a_foreign_package_replaces_no_extension_of_mind(tmp_path: Path) -> None:
    packages = install(tmp_path / "packages", manifest=REPLACING)
    entries = packages / "standup-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[mimo.extensions]\nafter = standup\nexchange = a:b\n")

    done = subprocess.run(
        [sys.executable, "-P", "-c", LOOKUP],
        env=os.environ | {"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [
        *("browse", "exchange", "sessions", "team", "web"),
        "after",
        "mimo.extensions.team.organisation:search_organisation",
        "mimo.extensions.exchange.commands",
    ]


def test_no_test_of_the_core_imports_an_extension() -> None:
    tests = Path(__file__).parents[1]
    used = re.compile(
        r"\b(mimo|tests)\.(extensions\.|adapters|memory_tool)|from fuzz import outputs"
    )
    core = [path for path in tests.rglob("*.py") if tests / "extensions" not in path.parents]

    assert len(core) > 200
    assert [path.name for path in core if used.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("name", OWN)
def test_mind_works_without_an_extension(name: str, project: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    shutil.copytree(HOME, packages / "mimo", ignore=shutil.ignore_patterns("__pycache__", name))
    (packages / "mimo" / "extensions" / name / "__pycache__").mkdir(parents=True)

    assert mind("add", "Use JWT", path=packages, cwd=project).returncode == 0
    for line in (
        "search JWT", "list", "status", "doctor", "review", "index", "help --all", "import --help",
    ):  # fmt: skip
        done = mind(*line.split(), path=packages, cwd=project)
        assert (done.returncode, done.stderr) == (0, ""), line
        assert "can't be used" not in done.stdout
    shutil.rmtree(packages / "mimo" / "extensions")
    assert "can't be used" not in mind("doctor", path=packages, cwd=project).stdout


def test_the_commands_of_the_core_print_the_same_without_any_extension(tmp_path: Path) -> None:
    skipped = shutil.ignore_patterns("__pycache__", *OWN)
    shutil.copytree(HOME, tmp_path / "mimo", ignore=skipped)
    environ = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{HOME.parent}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-P", *words]  # not the package in the working directory
        return subprocess.run(
            line, env=environ, cwd=HOME.parent, capture_output=True, text=True, check=False
        )

    assert "No module named 'mimo.extensions.web'" in run("-c", "import mimo.extensions.web").stderr
    chosen = ("-k", "decisions or graph or fading")
    done = run("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", TRANSCRIPTS, *chosen)
    assert done.returncode == 0, done.stdout[-5_000:]
