"""Our module, as a host calls it from Python."""

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from mimo.errors import Invalid, NotFound
from mimo.features.modules import MANIFEST, install
from mimo.features.notes.commands import add
from mimo.module import MemoryModule, invoke
from mimo.module.__main__ import main
from tests.kit import put


@pytest.fixture
def manifest(call: Any) -> Path:
    """The manifest in a project that remembers something."""
    add(call, "The API allows 50 requests a second")
    call.mind.close()
    return Path(install(call.mind.project.root).folder) / MANIFEST


@pytest.mark.req("001-10", "001-15")
def test_the_project_is_the_one_around_the_manifest(manifest):
    module = MemoryModule(manifest)

    answer = module.invoke("recall_memory", {"query": "API requests a second"})

    assert list(answer) == ["summary", "confidence", "source_refs"]
    assert "50 requests" in answer["summary"]
    assert json.loads(json.dumps(answer)) == answer
    assert module.manifest.id == "com.modelweave.memory"


def test_without_a_manifest_the_project_is_the_current_or_the_named_one(
    manifest, monkeypatch, tmp_path
):
    root = manifest.parents[3]
    monkeypatch.chdir(tmp_path)
    nowhere = invoke("recall_memory", {"query": "API requests"})
    named = MemoryModule(project=root).invoke("recall_memory", {"query": "API requests"})
    monkeypatch.chdir(root)
    here = invoke("recall_memory", {"query": "API requests"})

    assert "no project" in nowhere["summary"]
    assert nowhere["source_refs"] == []
    assert "50 requests" in named["summary"]
    assert named == here


@pytest.mark.req("001-14")
@pytest.mark.parametrize("name", ["recall", "forget_memory", "", "recall_memory ", "mind_rm"])
def test_any_other_command_is_an_error(manifest, name):
    with pytest.raises(NotFound) as refused:
        MemoryModule(manifest).invoke(name, {"query": "API"})

    assert str(refused.value) == f"Unsupported command: {name}"


@pytest.mark.req("001-15")
def test_the_manifest_is_that_of_the_file(manifest):
    data = json.loads(manifest.read_text("utf-8"))
    data["version"] = "9.9.9"
    data["commands"][0]["name"] = "remember"
    manifest.write_text(json.dumps(data), encoding="utf-8")

    module = MemoryModule(manifest)

    assert module.manifest.version == "9.9.9"
    with pytest.raises(NotFound):
        module.invoke("recall_memory", {"query": "API"})
    with pytest.raises(NotFound):
        module.invoke("remember", {"query": "API"})
    manifest.write_text("{}", encoding="utf-8")
    with pytest.raises(Invalid):
        MemoryModule(manifest)


@pytest.mark.req("001-08")
@pytest.mark.parametrize("arguments", [{}, {"query": 7}, {"query": "API", "limit": 3}])
def test_wrong_arguments_are_an_error(manifest, arguments):
    with pytest.raises(Invalid):
        MemoryModule(manifest).invoke("recall_memory", arguments)


@pytest.mark.req("001-23")
def test_an_internal_error_is_reported_in_the_summary(manifest, monkeypatch, caplog):
    def broken(*_: Any) -> None:
        raise RuntimeError("the text of a memory")

    monkeypatch.setattr("mimo.features.search.recall.summarise", broken)

    answer = MemoryModule(manifest).invoke("recall_memory", {"query": "API"})

    assert "unexpected error in mind" in answer["summary"]
    assert "text of a memory" not in answer["summary"]
    assert (answer["confidence"], answer["source_refs"]) == (None, [])
    assert "a call failed" in caplog.text


class SetAfter:
    """A token that is set when it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.req("001-16")
@pytest.mark.parametrize("looks", range(5))
def test_a_call_stops_at_each_check_of_the_token(manifest, call, looks):
    for number in range(3):
        put(call.mind.folder / "notes" / f"{number}.md", f"Note number {number}")
    token = SetAfter(looks)

    with pytest.raises(CancelledError):
        MemoryModule(manifest).invoke("recall_memory", {"query": "note"}, cancel=token)

    assert token.left < 0
    answer = MemoryModule(manifest).invoke("recall_memory", {"query": "note number"})
    assert len(answer["source_refs"]) == 3


@pytest.mark.req("001-16")
def test_a_token_that_is_not_set_changes_nothing(manifest):
    token = threading.Event()
    answer = invoke("recall_memory", {"query": "API requests"}, cancel=token, manifest=manifest)

    assert "50 requests" in answer["summary"]


@pytest.mark.req("001-16")
def test_a_cancelled_task_stops_its_work(manifest, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def endless(_: Any, __: Any) -> None:
        begun.set()
        assert stopped[0] is not None
        while not stopped[0].is_set():
            threading.Event().wait(0.001)
        ended.set()

    stopped: list[Any] = [None]
    call = MemoryModule.invoke

    def noted(self: MemoryModule, *words: Any, cancel: Any = None) -> Any:
        stopped[0] = cancel
        return call(self, *words, cancel=cancel)

    monkeypatch.setattr(MemoryModule, "invoke", noted)
    monkeypatch.setattr("mimo.features.search.recall.summarise", endless)

    async def host() -> None:
        module = MemoryModule(manifest)
        task = asyncio.create_task(module.invoke_async("recall_memory", {"query": "API"}))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(host())

    assert ended.wait(30)


@pytest.mark.req("001-10")
def test_it_can_be_awaited(manifest):
    answer = asyncio.run(MemoryModule(manifest).invoke_async("recall_memory", {"query": "API"}))

    assert set(answer) == {"summary", "confidence", "source_refs"}


def test_it_can_be_called_from_several_threads(manifest):
    module = MemoryModule(manifest)
    answers: list[Any] = []

    def ask() -> None:
        answers.append(module.invoke("recall_memory", {"query": "API requests"}))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.req("001-17", "001-18")
def test_the_sample_runs_by_the_entry_point_in_the_folder(manifest, tmp_path):
    done = subprocess.run(
        [sys.executable, manifest.with_name("memory_module.py"), "samples/test_invocation.json"],
        cwd=manifest.parent,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "50 requests" in json.loads(done.stdout)["summary"]


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_closed_stream_is_an_error(capsys, monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    assert main(["-"]) == 1
    monkeypatch.undo()
    assert json.loads(capsys.readouterr().err)["error"]["message"].endswith("is closed")


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ('{"name": "forget", "arguments": {}}', 1, "NOT_FOUND"),
        ('{"name": "recall_memory"}', 2, "VALIDATION_ERROR"),
        ('{"name": "recall_memory", "arguments": []}', 2, "VALIDATION_ERROR"),
        ('{"arguments": {}}', 2, "VALIDATION_ERROR"),
        ("[]", 2, "VALIDATION_ERROR"),
        ("{", 2, "VALIDATION_ERROR"),
        (None, 1, "STORAGE_ERROR"),
    ],
)
@pytest.mark.req("001-14")
def test_an_invalid_invocation_has_an_exit_status(tmp_path, capsys, text, status, code):
    path = tmp_path / "invocation.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    assert main([str(path)]) == status

    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["error"]["code"] == code
