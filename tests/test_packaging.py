"""The files that packagers, registries and CI read agree with the package."""

import importlib.util
import json
import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from mimo import __version__
from tests.conftest import git

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release, mcpb, sbom = script("release"), script("mcpb"), script("sbom")


# Versions and names.


def test_every_file_has_the_version_of_the_package() -> None:
    assert set(release.versions().values()) == {__version__}


def test_every_file_has_the_same_name_of_the_server() -> None:
    assert len(set.union(*release.names().values())) == 1
    assert all(release.names().values())


def test_the_readme_proves_the_ownership_of_the_package() -> None:
    """The registry wants the name, followed by white space or the end of the comment."""
    name = json.loads((ROOT / "server.json").read_text("utf-8"))["name"]
    assert re.search(rf"mcp-name: {re.escape(name)}\s", (ROOT / "README.md").read_text("utf-8"))


def test_the_server_of_the_registry_is_started_by_a_program_of_the_packages_name() -> None:
    """Clients run `uvx`, the name of the package, and the arguments."""
    server = json.loads((ROOT / "server.json").read_text("utf-8"))
    (package,) = server["packages"]
    assert package["identifier"] == PROJECT["project"]["name"]
    assert PROJECT["project"]["scripts"][package["identifier"]] == "mimo.__main__:main"
    assert [argument["value"] for argument in package["packageArguments"]] == ["mcp"]
    assert len(server["description"]) <= 100
    assert server["repository"]["url"].startswith("https://github.com/")
    assert all((ROOT / icon["src"].partition("/main/")[2]).exists() for icon in server["icons"])


def test_a_release_needs_the_account_a_section_of_changes_and_the_tag(tmp_path: Path) -> None:
    for name in (*release.ACCOUNT, *release.PLUGINS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased (1.1.0)\n", "utf-8")
    git(tmp_path, "init", "-q")
    assert list(release.findings("9.0.0", "v1.0.0", tmp_path)) == [
        f"server.json: version {__version__}, not 9.0.0",
        f"server.json, packages: version {__version__}, not 9.0.0",
        *(f"{name}: version {__version__}, not 9.0.0" for name in release.PLUGINS),
        *(f"{name}: put the account in the place of OWNER" for name in release.ACCOUNT),
        "CHANGELOG.md: no section `## 9.0.0`",
        "the tag is v1.0.0, not v9.0.0",
        "there are changes that are not committed",
    ]

    for name in release.ACCOUNT:
        path = tmp_path / name
        path.write_text(path.read_text("utf-8").replace("OWNER", "ann"), "utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {__version__} (2026-12-01)\n", "utf-8"
    )
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "release")
    assert list(release.findings(__version__, f"v{__version__}", tmp_path)) == []
    assert list(release.findings(__version__, None, tmp_path)) == []
    git(tmp_path, "tag", f"v{__version__}")
    assert list(release.findings(__version__, None, tmp_path)) == [f"the tag v{__version__} exists"]


# The lock, the bill of materials and the bundle.


def pinned() -> dict[str, set[str]]:
    """The locked versions of each package; several if they depend on the interpreter."""
    text = (ROOT / "requirements-dev.txt").read_text("utf-8")
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", text, re.MULTILINE):
        versions.setdefault(name.lower(), set()).add(version)
    return versions


def test_the_lock_has_every_package_with_hashes_and_names_no_index() -> None:
    """Run `make lock` if it does not."""
    groups = [PROJECT["project"]["dependencies"], PROJECT["dependency-groups"]["test"]]
    # `make test-adapters` installs the newest versions of other frameworks.
    frameworks = ("anthropic", "langgraph", "openai-agents")
    extras = PROJECT["project"]["optional-dependencies"].items()
    groups += [packages for extra, packages in extras if extra not in frameworks]
    locked = pinned()
    for line in [line for group in groups for line in group]:
        requirement = Requirement(line)
        versions = locked.get(requirement.name.lower())
        assert versions, f"{line} is not locked"
        assert all(map(requirement.specifier.contains, versions)), line

    text = (ROOT / "requirements-dev.txt").read_text("utf-8")
    blocks = re.findall(
        r"^[\w.-]+(?:\[.*\])?==.*\\\n(?:    --hash=sha256:[0-9a-f]{64}.*\n)+", text, re.M
    )
    assert len(blocks) == sum(map(len, locked.values()))
    assert "://" not in text


def test_the_bill_of_materials_has_the_version_and_the_models(tmp_path: Path) -> None:
    (tmp_path / "words.bin").write_bytes(b"x")
    (tmp_path / "NOTICE").write_bytes(b"x")
    bom = {
        "metadata": {"component": {"bom-ref": "root", "name": "mimo"}},
        "components": [{"name": "click", "bom-ref": "click"}],
        "dependencies": [{"ref": "root", "dependsOn": ["click"]}, {"ref": "click"}],
    }
    complete = sbom.completed(bom, "1.2.3", tmp_path)

    assert complete["metadata"]["component"]["purl"] == "pkg:pypi/mimo@1.2.3"
    models = complete["components"][1]
    assert [Path(file["name"]).name for file in models["components"]] == ["words.bin"]
    assert complete["dependencies"][0] == {"ref": "root", "dependsOn": ["click", "model"]}


def test_the_bundle_of_a_client_starts_the_server(tmp_path: Path) -> None:
    """Everything except the installation by uv, which `make mcpb` tries too."""
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / f"mimo-{__version__}-py3-none-any.whl").write_bytes(b"wheel")
    bundle = mcpb.build(tmp_path / "a")
    assert bundle.read_bytes() == mcpb.build(tmp_path / "b").read_bytes()

    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "out")
    project = tomllib.loads((tmp_path / "out" / "pyproject.toml").read_text("utf-8"))
    assert (tmp_path / "out" / project["tool"]["uv"]["sources"]["mimo"]["path"]).is_file()
    pins = [Requirement(pin) for pin in project["tool"]["uv"]["constraint-dependencies"]]
    assert {pin.name for pin in pins} >= {"mcp", "numpy", "click"}

    uv = tmp_path / "uv"
    uv.write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "run --quiet --directory" ] || exit 1\n'
        f'cd "$4" && shift 4 && PYTHONPATH={ROOT} exec {sys.executable} "$@"\n'
    )
    uv.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    assert {"save_insight", "mind_search"} <= set(mcpb.attempt(bundle, environ))


# The container.


def test_the_container_runs_the_server_as_a_user_without_rights() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = [
        word for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M) for word in line.split()
    ]

    assert re.findall(r"^(?:USER|ENTRYPOINT|CMD) .*$", text, re.M) == [
        "USER 1000",
        'ENTRYPOINT ["mind"]',
        'CMD ["mcp"]',
    ]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {f"!{name}" for name in copied} == set(ignored[1:-1])


# Workflows.


def steps(path: Path) -> list[dict[str, Any]]:
    """The steps of all jobs."""
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.attack("text of another author in a workflow")
def test_no_script_of_a_workflow_contains_an_expression() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    scripts = [step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step]
    scripts += [step["run"] for step in action]

    assert len(scripts) > len(action)
    assert [text for text in scripts if "${{" in text] == []
    assert [step for step in action if "uses" in step] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_have_few_rights(path: Path) -> None:
    data = yaml.safe_load(path.read_text("utf-8"))
    uses = [step["uses"] for step in steps(path) if "uses" in step]
    rights = [data["permissions"], *(job.get("permissions", {}) for job in data["jobs"].values())]

    assert uses
    assert [name for name in uses if not re.fullmatch(r"\./|[\w/-]+@[0-9a-f]{40}", name)] == []
    written = {name for right in rights for name, value in right.items() if value == "write"}
    assert written <= ({"contents", "id-token"} if path.stem == "release" else set())
    assert "pull_request_target" not in data[True]  # `on` is a boolean in YAML
    checkouts = [step for step in steps(path) if "actions/checkout@" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_dependabot_looks_at_every_file_that_names_an_image_or_an_action() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    places = {(each["package-ecosystem"], each["directory"]) for each in updates}
    files = git(ROOT, "ls-files", "*Dockerfile*", "*compose*.yaml").split()
    kinds = {name: "docker" if "Dockerfile" in name else "docker-compose" for name in files}

    assert len(files) == 2
    named = {(kind, f"/{Path(name).parent}".rstrip(".")) for name, kind in kinds.items()}
    assert places == named | {("github-actions", "/")}


def test_a_workflow_tests_the_viewer_in_a_browser() -> None:
    assert "make test-browser" in [step.get("run") for path in WORKFLOWS for step in steps(path)]


def test_every_target_of_the_makefile_is_in_the_menu() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert phony
    names = set(phony[1].replace("\\", " ").split())
    shown = set(re.findall(r"^([a-z-]+): .*##", text, re.MULTILINE))
    assert names - shown == {"shells"}
    assert shown <= names
