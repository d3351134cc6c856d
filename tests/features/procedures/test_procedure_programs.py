"""Programs and requests of procedures: approval, environment, allowed hosts and timeouts."""

import json
import os
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from ssl import SSLCertVerificationError
from threading import Thread
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import Conflict, Untrusted
from mimo.features.procedures import actions, executing, library
from mimo.features.procedures.machine import Status
from mimo.features.procedures.model import Refused
from mimo.features.review import trusting
from mimo.frozen import replace
from mimo.surroundings import Question, Timer
from tests.calls import acting_as, with_console
from tests.sample_procedures import GREET, Time, begun, put, ran, text


def program(*argv: str, more: str = "") -> str:
    words = ", ".join(f'"{word}"' for word in (sys.executable, *argv))
    return (
        "initial_state: work\nstates:\n  work:\n"
        f"    action: {{module: shell, function: run, args: [{words}]{more}}}\n"
        "    transitions: [{event: success, target: done}]\n  done: {}\n"
    )


def agree(call: Call) -> list[str]:
    """Answers every question on the terminal with yes; returns the questions."""
    asked: list[str] = []

    def ask(question: Question, seconds: float) -> str:
        asked.append(question.text)
        return "yes"

    call.console = replace(call.console, ask=ask)
    return asked


def test_a_program_runs_in_the_project_with_a_scrubbed_environment(call: Call) -> None:
    call.mind.environ = {
        "PATH": f"bin:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "API_TOKEN": "hidden",
        "MIND_EXECUTION_LOCK": "7",
    }
    code = "import os; print(os.getcwd()); print(sorted(os.environ)); print(os.environ['PATH'])"
    put(call, "work", program("-c", code))
    agree(call)
    done = ran(call, "work")

    assert done.status is Status.COMPLETED, done.run.error
    folder, names, path = done.run.context["shell"]["stdout"].splitlines()
    assert Path(folder) == call.mind.project.root.resolve()
    assert "TOKEN" not in names
    assert "MIND" not in names
    assert path == os.environ["PATH"]


def test_a_program_learns_of_the_agent_that_a_run_acts_for(call: Call) -> None:
    code = "import os; print(os.environ.get('AI_AGENT'))"
    put(call, "work", program("-c", code))
    agree(call)
    for agent in (None, "claude-code"):
        done = ran(acting_as(call, agent), "work")

        assert done.run.context["shell"]["stdout"] == f"{agent}\n"


def test_relative_folders_are_removed_from_path() -> None:
    assert actions.scrubbed({"PATH": "bin:."}, [])["PATH"] == os.defpath


def test_the_words_of_a_program_are_not_interpreted(call: Call) -> None:
    code = "import sys; print(sys.argv[1:])"
    put(call, "work", program("-c", code, "{{branch}}", "$HOME; ls", "{{n}}"))
    agree(call)
    done = ran(call, "work", branch="main && rm -rf /", n=3)

    assert done.run.context["shell"]["stdout"] == "['main && rm -rf /', '$HOME; ls', '3']\n"


def test_the_error_of_a_program_is_its_last_line(call: Call) -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('disk full')"
    put(call, "work", program("-c", code), max_retries=0)
    agree(call)
    done = ran(call, "work")

    assert done.status is Status.FAILED
    assert done.run.error == f"`{sys.executable}` exited with 1: disk full"


def test_a_missing_program_is_a_failure(call: Call) -> None:
    put(call, "work", program().replace(sys.executable, "no-such-program"))
    agree(call)

    assert str(ran(call, "work").run.error).startswith("`no-such-program` can't be run")


def test_long_output_is_truncated(call: Call) -> None:
    put(call, "work", program("-c", "print('x' * 1_000_000)"))
    agree(call)

    assert len(ran(call, "work").run.context["shell"]["stdout"]) == actions.MOST_OUTPUT


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


CHILD = (
    "import os,sys,time; pid = os.fork(); "
    "time.sleep(60) if pid == 0 else (open('child','w').write(str(pid)), {then})"
)


@pytest.mark.parametrize(
    ("then", "more", "status"),
    [
        ("time.sleep(60)", ", timeout: 300", Status.FAILED),
        ("os._exit(0)", "", Status.COMPLETED),
    ],
)
@pytest.mark.req("000-28")
def test_child_processes_of_a_program_are_killed_with_its_step(
    call: Call, then: str, more: str, status: Status
) -> None:
    child = call.mind.project.root / "child"

    def seconds() -> float:
        return 10 if child.exists() and child.stat().st_size else 0

    call.mind.timer = Timer(monotonic=seconds, sleep=lambda _: None)
    put(call, "work", program("-c", CHILD.format(then=then), more=more), max_retries=0)
    agree(call)
    done = ran(call, "work")

    assert done.status is status, done.run.error
    while not is_gone(
        int(child.read_text(encoding="utf-8"))
    ):  # killed, but perhaps not yet taken off the table
        time.sleep(0.01)


WRITER = """\
import os
if os.fork():
    while not (os.path.exists("child") and os.path.getsize("child")):
        pass
    os._exit(0)
if {leaves}:
    os.setsid()
with open("child", "w") as file:
    file.write(str(os.getpid()))
while True:
    print("tick", flush=True)
"""


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.req("000-28")
def test_a_step_ends_with_its_program_although_a_child_goes_on_writing(
    call: Call, leaves: bool
) -> None:
    """A child that leaves the process group is not killed; its pipe is closed."""
    argv = [sys.executable, "-c", WRITER.format(leaves=leaves)]
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        assert calls < 10_000, "the step waits for the child"

    status, _, _ = actions.run_program(
        argv, folder=call.mind.project.root, environ=os.environ, check=check
    )

    assert status == 0
    child = call.mind.project.root / "child"
    while not is_gone(int(child.read_text(encoding="utf-8"))):
        time.sleep(0.01)


def test_all_output_before_the_end_of_a_program_is_kept(call: Call) -> None:
    """The pipes are full when it ends."""
    code = "import os; [os.write(n, b'x' * 60_000) for n in (1, 2)]"
    put(call, "work", program("-c", code))
    agree(call)
    shell = ran(call, "work").run.context["shell"]

    assert (len(shell["stdout"]), len(shell["stderr"])) == (60_000, 60_000)


def test_stopping_a_run_kills_its_program(call: Call) -> None:
    put(call, "work", program("-c", CHILD.format(then="time.sleep(60)")))
    agree(call)
    execution = begun(call, "work")
    call = with_console(call, halted=(call.mind.project.root / "child").exists)
    done = executing.carry_out(call, execution)

    assert (done.status, done.run.error) == (Status.INTERRUPTED, "the caller cancelled the call")
    while not (written := (call.mind.project.root / "child").read_text(encoding="utf-8")):
        time.sleep(0.01)
    while not is_gone(int(written)):
        time.sleep(0.01)


def test_programs_run_only_after_the_user_agreed_on_a_terminal(call: Call) -> None:
    put(call, "work", program("-c", "print(1)"))
    with pytest.raises(Untrusted, match="which runs programs"):
        begun(call, "work")
    trusting.approve_all(call, follow=True)
    with pytest.raises(Untrusted):
        begun(call, "work")

    asked = agree(call)
    assert ran(call, "work").status is Status.COMPLETED
    call = with_console(call, ask=None)
    assert ran(call, "work").status is Status.COMPLETED
    assert len(asked) == 1
    assert f"$ {sys.executable} -c 'print(1)'" in asked[0]


def test_a_program_in_an_added_procedure_is_not_approved(call: Call) -> None:
    file, result = library.added(call, text("work", program("-c", "print(1)")).encode())

    assert result.procedure
    assert not library.is_approved(call, file.data, result.procedure)
    with pytest.raises(Untrusted):
        begun(call, "work")


def test_a_procedure_that_could_not_be_added_is_not_approved(call: Call) -> None:
    first = text("greet", GREET).encode()
    other = first.replace(b"Hello", b"Bye")
    file, _ = library.added(call, first)
    with pytest.raises(Conflict):
        library.added(call, other)

    (call.mind.project.root / file.path).write_bytes(other)  # As a pull brings it.

    with pytest.raises(Untrusted):
        begun(call, "greet")
    assert library.added(call, other)[0].path == file.path
    with pytest.raises(Untrusted):
        begun(call, "greet")


REQUEST = """\
initial_state: get
states:
  get:
    action:
      module: step
      function: http_request
      args:
        - {url: "{{url}}", method: POST, body: {name: "{{name}}"}, headers: {X-Test: "{{name}}"}}
    transitions: [{event: success, target: done}]
  done: {}
"""


class Handler(BaseHTTPRequestHandler):
    """Returns the request as its response; `/away` redirects."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "/")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/gone" else 200)
        self.end_headers()
        if self.path == "/as-sent":
            self.wfile.write(json.loads(body)["name"].encode())
            return
        self.wfile.write(b'{"got": %s, "test": "%s"}' % (body, self.headers["X-Test"].encode()))

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    made = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def allow(call: Call, *hosts: str, env: tuple[str, ...] = ()) -> None:
    call.mind.home.mkdir(exist_ok=True)
    (call.mind.home / "config.toml").write_text(
        f"[procedures]\nhttp_hosts = {json.dumps(hosts)}\nenv = {json.dumps(env)}\n",
        encoding="utf-8",
    )


def test_a_request_is_sent_to_a_host_that_the_user_allowed(call: Call, server: str) -> None:
    allow(call, "127.0.0.1")
    put(call, "get", REQUEST, max_retries=0)
    done = ran(call, "get", url=f"{server}/", name="Ada")

    assert done.status is Status.COMPLETED, done.run.error
    assert done.run.context["http_status"] == 200
    assert done.run.context["http_response"] == {"got": {"name": "Ada"}, "test": "Ada"}


FORWARD = """\
initial_state: get
states:
  get:
    action:
      module: step
      function: http_request
      args: [{url: "{{url}}", method: POST, body: {name: "{{answer}}"}, result_key: config}]
    transitions: [{event: success, target: keep}]
  keep:
    action: {module: step, function: set_context, args: [{values: {settings: "{{config}}"}}]}
    transitions: [{event: success, target: send}]
  send:
    action:
      module: step
      function: http_request
      args: [{url: "{{url}}", method: POST, body: {name: '{"sent": {{settings}}}'}}]
    transitions: [{event: success, target: done}]
  done: {}
"""


@pytest.mark.attack("data that is executed")
def test_an_answer_can_not_read_the_environment(call: Call, server: str) -> None:
    allow(call, "127.0.0.1", env=("SECRET_X",))
    call.mind.environ = {"SECRET_X": "s3cret-value"}
    put(call, "forward", FORWARD, max_retries=0)
    done = ran(call, "forward", url=f"{server}/as-sent", answer='{"env": "SECRET_X"}')

    assert done.status is Status.COMPLETED, done.run.error
    assert done.run.context["settings"] == {"env": "SECRET_X"}
    assert done.run.context["http_response"] == {"sent": {"env": "SECRET_X"}}
    files = (call.mind.folder / ".local" / "executions").rglob("*")
    assert not [path for path in files if path.is_file() and b"s3cret" in path.read_bytes()]


@pytest.mark.attack("a journal that can't be read again")
@pytest.mark.parametrize("answer", ['{"a": 1e999}', "[" * 100 + "]" * 100])
def test_an_answer_that_a_journal_can_not_hold_fails_the_action(
    call: Call, server: str, answer: str
) -> None:
    allow(call, "127.0.0.1")
    put(call, "get", REQUEST, max_retries=0)
    done = ran(call, "get", url=f"{server}/as-sent", name=answer)

    assert done.status is Status.FAILED
    assert "the context would" in str(done.run.error)
    assert "http_response" not in done.run.context


@pytest.mark.parametrize(("path", "reason"), [("/gone", "404 Not Found"), ("/away", "302 Found")])
def test_redirects_are_not_followed(call: Call, server: str, path: str, reason: str) -> None:
    allow(call, "127.0.0.1")
    put(call, "get", REQUEST, max_retries=0)
    done = ran(call, "get", url=f"{server}{path}", name="Ada")

    assert (done.status, done.run.error) == (Status.FAILED, f"POST {server}{path}: {reason}")


def test_a_request_to_a_host_that_is_not_allowed_is_not_sent(call: Call, server: str) -> None:
    put(call, "get", REQUEST)
    done = ran(call, "get", url=f"{server}/", name="Ada")

    assert done.status is Status.FAILED
    assert str(done.run.error).startswith("requests to `127.0.0.1` are not allowed")


def test_project_settings_cannot_allow_hosts(call: Call, server: str) -> None:
    with (call.mind.folder / "config.toml").open("a", encoding="utf-8") as file:
        file.write('\n[procedures]\nhttp_hosts = ["127.0.0.1"]\n')
    put(call, "get", REQUEST)

    assert ran(call, "get", url=f"{server}/", name="Ada").status is Status.FAILED


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://api.example.com/",
        "http://",
        "http://[::1",
        "http://api.example.com:99999/",
        "http://user:pass@api.example.com/",
        "http://api.example.com.evil.test/",
        "http://evil.test/?api.example.com",
        "http://evil.test\\@api.example.com/",
        "gopher://api.example.com",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(Refused):
        actions.target(url, ["api.example.com"])


def test_a_port_can_be_allowed_alone() -> None:
    assert (
        actions.target("http://api.example.com:8080/a?b=1", ["api.example.com:8080"]).path
        == "/a?b=1"
    )
    with pytest.raises(Refused):
        actions.target("http://api.example.com/", ["api.example.com:8080"])


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.5", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104
        ("224.0.0.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::808:808", True),
        ("::10.0.0.5", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
    ],
)
def test_private_addresses_are_not_public(address: str, public: bool) -> None:
    assert actions.is_public(address) is public


def test_a_name_that_resolves_to_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = [(2, 1, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: addresses)

    with pytest.raises(Refused, match="not a public address"):
        actions.address_of("api.example.com", 80)
    assert actions.address_of("localhost", 80) == "127.0.0.1"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\r\n X-Evil: 1", "a\0", "가"])
def test_a_header_value_cannot_add_another_header(call: Call, server: str, value: str) -> None:
    call.mind.timer = Time().timer()
    allow(call, "127.0.0.1")
    put(call, "get", REQUEST)
    done = ran(call, "get", url=f"{server}/", name=value)

    assert (done.status, done.run.attempts) == (Status.FAILED, 0)
    assert done.run.error == "the header `X-Test` must be one line of Latin-1 text"


@pytest.mark.parametrize("path", ["/a b", "/é", "/?q=é", "/a\x7f"])
def test_a_path_that_can_not_be_sent_is_not_retried(call: Call, server: str, path: str) -> None:
    call.mind.timer = Time().timer()
    allow(call, "127.0.0.1")
    put(call, "get", REQUEST)
    done = ran(call, "get", url=f"{server}{path}", name="Ada")

    assert (done.status, done.run.attempts) == (Status.FAILED, 0)
    assert "percent-encode it" in str(done.run.error)


@pytest.mark.parametrize("name", ["", "X Y", "X:Y", "X\r\nY", "é"])
def test_an_invalid_name_of_a_header_is_refused(name: str) -> None:
    args = {"url": "http://127.0.0.1/", "headers": {name: "1"}}

    with pytest.raises(Refused, match="not a name of a header"):
        actions.Request(args, ["127.0.0.1"], 1)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (UnicodeError("label empty or too long"), False),
        (ValueError("embedded null byte"), False),
        (ConnectionRefusedError("refused"), True),
        (SSLCertVerificationError("expired"), True),
    ],
)
def test_only_errors_of_a_connection_are_retried(
    monkeypatch: pytest.MonkeyPatch, error: Exception, again: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(actions, "address_of", fail)
    outcome = actions.Request({"url": "http://a.test/"}, ["a.test"], 1).send()

    assert (outcome.event, outcome.again) == ("error", again)
