"""The GitHub Action: its scripts run in bash as on a runner, with files in the place of GitHub's.

Only the installation is replaced: the interpreter that it is given makes an environment whose `pip`
records its arguments, and whose `mind` is the one of this checkout.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from mimo.cli.main import main
from tests.conftest import git
from tests.kit import script

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))

PITFALL = "edges add --project --title Safari --description Deletes --workaround Cookie"
NAMES = ("$(touch x)", "`touch x`", "a;touch x", "--output=x", "x\n::warning::x", "'\"; touch x")
"""Names that another author may give a branch."""


class Runner:
    """Runs the steps of the action as GitHub does."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.checkout = checkout
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self.calls = folder / "calls"
        self.python = folder / "python"
        self.log = ""
        self._write_interpreter()

    def _write_interpreter(self) -> None:
        logged = f'echo mind \\"\\$@\\" >> {self.calls}'
        mind = (
            f'#!/bin/sh\\n{logged}\\nPYTHONPATH={ROOT} exec {sys.executable} -m mimo \\"\\$@\\"\\n'
        )
        pip = f'#!/bin/sh\\necho pip \\"\\$@\\" >> {self.calls}\\n'
        script(
            self.python,
            f'#!/bin/bash\necho python "$@" >> {self.calls}\n'
            f'[[ $2 == -c || $2 == *.py ]] && exec {sys.executable} "$@"\n'
            'mkdir -p "$4/bin"\n'
            f'printf "{pip}" > "$4/bin/pip"\nprintf "{mind}" > "$4/bin/mind"\n'
            'chmod +x "$4/bin/"*\n',
        )

    def run(self, base_ref: str = "", **inputs: str) -> tuple[int, dict[str, str]]:
        """Returns the exit status and the outputs; stops at the first step that fails."""
        given = {name: str(row["default"]) for name, row in ACTION["inputs"].items()}
        given |= {"python": str(self.python)} | {k.replace("_", "-"): v for k, v in inputs.items()}
        context = {f"inputs.{name}": value for name, value in given.items()}
        context |= {"github.base_ref": base_ref, "runner.temp": str(self.temp)}
        status = 0
        for step in ACTION["runs"]["steps"]:
            status, outputs = self._step(step, context)
            context |= {f"steps.{step.get('id')}.outputs.{k}": v for k, v in outputs.items()}
            if status:
                break
        return status, {
            name: filled(row["value"], context) for name, row in ACTION["outputs"].items()
        }

    def _step(self, step: dict[str, Any], context: dict[str, str]) -> tuple[int, dict[str, str]]:
        for path in self.files.values():
            path.touch()
        self.files["GITHUB_OUTPUT"].write_text("")
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
            **{name: str(path) for name, path in self.files.items()},
            **{name: filled(value, context) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.checkout,
            env=environ,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        self.log += done.stdout + done.stderr
        rows = self.files["GITHUB_OUTPUT"].read_text().splitlines()
        return done.returncode, dict(row.split("=", 1) for row in rows)


def filled(text: str, context: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: context.get(match[1], ""), text)


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", message)


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A checkout of a branch that adds a decision and code that a pitfall is about."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "-q", "-b", "main")
    monkeypatch.chdir(checkout)
    assert main(["init"]) == 0
    assert main([*PITFALL.split(), "--severity", "warning", "--code", "localStorage"]) == 0
    commit(checkout, "base")
    git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(checkout, "checkout", "-qb", "work")
    assert main(["add", "--type", "decision", "--topic", "db", "Use Postgres"]) == 0
    (checkout / "a.ts").write_text("localStorage.setItem('t', 1)\n")
    commit(checkout, "change")
    return Runner(tmp_path, checkout)


def test_a_finding_fails_is_an_annotation_and_is_in_the_sarif(runner: Runner) -> None:
    status, outputs = runner.run(base_ref="main")

    assert status == 1
    assert outputs["findings"] == "true"
    assert "::warning file=a.ts,line=1,title=Safari::" in runner.log
    sarif = json.loads(Path(outputs["sarif"]).read_text())
    assert [row["level"] for row in sarif["runs"][0]["results"]] == ["warning"]
    assert Path(outputs["sarif"]).is_relative_to(runner.temp)


def test_the_changes_of_the_memory_are_in_the_summary_of_the_run(runner: Runner) -> None:
    status, outputs = runner.run(base_ref="main", fail="false")

    assert (status, outputs["findings"]) == (0, "true")
    summary = runner.files["GITHUB_STEP_SUMMARY"].read_text()
    assert "decision: Use Postgres" in summary
    assert Path(outputs["summary"]).read_text() == summary


def test_mind_is_installed_from_the_action_in_an_environment_of_its_own(runner: Runner) -> None:
    """The interpreter is isolated, so that a `venv.py` of the checkout is not run."""
    (runner.checkout / "venv.py").write_text("raise SystemExit('run')")
    runner.run(base_ref="main")
    calls = runner.calls.read_text().splitlines()

    locked = runner.temp / "mind" / "locked.txt"
    assert calls[0].startswith("python -I -c ")
    assert calls[1:3] == [
        f"python -I -m venv {runner.temp}/mind",
        f"pip install --quiet --disable-pip-version-check --constraint {locked} {ROOT}",
    ]
    versions = [
        Requirement(line) for line in locked.read_text("utf-8").splitlines() if line[0] != "#"
    ]
    assert {"click", "mcp", "numpy"} <= {version.name for version in versions}
    assert all(str(version.specifier).startswith("==") for version in versions)


def test_a_change_is_checked_once(runner: Runner) -> None:
    runner.run(base_ref="main")
    calls = runner.calls.read_text().splitlines()

    assert [call.split()[1] for call in calls if call.startswith("mind ")] == ["diff", "pitfalls"]


@pytest.mark.attack("text of another author in a workflow")
def test_the_annotations_are_those_of_mind(
    runner: Runner, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "pitfalls add --project --description D --code evil --severity info".split()
    hostile = "x,line=9::y%0A\n::error::z"
    assert main([*words, "--title", "50%, of: it", "--workaround", hostile]) == 0
    (runner.checkout / "a,b: %.ts").write_text("evil\n")
    commit(runner.checkout, "hostile")
    capsys.readouterr()
    runner.run(base_ref="main")
    monkeypatch.setenv("MIND_HOME", str(runner.temp / "mind-home"))
    main(["pitfalls", "check", "--diff", "main...HEAD", "--format", "github"])

    own = [line for line in runner.log.splitlines() if line.startswith("::")]
    assert own == capsys.readouterr().out.splitlines()
    assert len(own) == 2


@pytest.mark.parametrize(
    ("inputs", "findings"),
    [
        ({"at_least": "critical"}, "false"),
        ({"base": "HEAD"}, "false"),
        ({"base": "main", "fail": "false"}, "true"),
        ({"base": "", "fail": "false"}, "true"),
    ],
)
def test_inputs_choose_the_findings(runner: Runner, inputs: dict[str, str], findings: str) -> None:
    status, outputs = runner.run(**inputs)

    assert (status, outputs["findings"]) == (0, findings)


@pytest.mark.attack("text of another author in a workflow")
def test_a_name_of_a_branch_or_an_input_runs_nothing(runner: Runner) -> None:
    for name in NAMES:
        for status, outputs in (runner.run(base_ref=name), runner.run(base=name)):
            assert (status, outputs["sarif"]) == (1, "")
    assert runner.run(base_ref="main", project=NAMES[0])[0] == 3
    status, outputs = runner.run(base_ref="main", at_least=NAMES[0], fail=NAMES[1])
    assert (status, outputs["sarif"]) == (2, "")

    assert not list(runner.checkout.rglob("x"))
    assert "::warning::x" not in runner.log.splitlines()


def test_a_checkout_without_history_is_explained(runner: Runner, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{runner.checkout}", str(shallow))
    runner.checkout = shallow

    assert runner.run(base_ref="main")[0] == 1
    assert "use actions/checkout with fetch-depth 0" in runner.log


def test_the_project_may_be_in_a_folder(runner: Runner) -> None:
    (runner.checkout / "pk").mkdir()
    git(runner.checkout, "mv", ".mind", "a.ts", "pk")
    commit(runner.checkout, "moved")
    assert runner.run(base="main", project="nowhere")[0] == 3

    status, outputs = runner.run(base="main", project="pk")

    assert (status, outputs["findings"]) == (1, "true")
    assert "::warning file=pk/a.ts,line=1,title=Safari::" in runner.log


def test_an_error_of_mind_is_not_a_finding(runner: Runner) -> None:
    git(runner.checkout, "rm", "-rq", ".mind")
    commit(runner.checkout, "without a memory")
    status, outputs = runner.run(base_ref="main")

    assert status == 3
    assert outputs["findings"] == ""
    assert "there is no project here" in runner.log
