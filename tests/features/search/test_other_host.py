"""An encoder on another machine gets the texts of the project, and no private ones."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from mimo.call import Call
from mimo.errors import Invalid
from mimo.features.notes.commands import add
from mimo.features.pitfalls.commands import edges
from mimo.features.search.commands import search
from mimo.features.upkeep.commands import config
from mimo.features.upkeep.indexing import index
from mimo.index.embedding import open_encoder
from mimo.operations import refresh

HOST = "gpu.example.org"


class Encoder(BaseHTTPRequestHandler):
    """Answers as OpenAI's API does: the numbers of a text are the counts of its letters."""

    texts: ClassVar[list[str]] = []
    redirect = ""

    def do_POST(self) -> None:
        """Keeps the texts, and answers with their vectors or with a redirect."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.texts.extend(request["input"])
        rows = [[text.count(chr(97 + n)) + 0.1 for n in range(26)] for text in request["input"]]
        data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
        self.send_response(307 if self.redirect else 200)
        if self.redirect:
            self.send_header("Location", self.redirect)
        self.end_headers()
        self.wfile.write(json.dumps({"data": data}).encode())

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def serving(name: str) -> tuple[type[Encoder], ThreadingHTTPServer]:
    kind = type(name, (Encoder,), {"texts": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever).start()
    return kind, server


@pytest.fixture
def remote(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Encoder]]:
    """A server on a host whose name another machine could have; the user's settings name it."""
    kind, server = serving("Remote")
    resolve = socket.getaddrinfo

    def resolved(host: Any, *args: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host == HOST else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    config(call, "embedding.encoder", f"http://{HOST}:{server.server_port}/v1")
    yield kind
    server.shutdown()
    server.server_close()


def test_a_host_that_the_user_has_not_allowed_gets_nothing(call, remote):
    add(call, "uploads fail behind the proxy")

    answer = search(Call(call.mind.reopened()), "large files break")

    assert f"`{HOST}` is another machine" in (answer.notice or "")
    assert "embedding.other_host" in (answer.notice or "")
    assert remote.texts == []


def test_the_projects_settings_allow_no_host(call, remote):
    with (call.mind.folder / "config.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[embedding]\nother_host = "{HOST}"\n')

    with pytest.raises(Invalid) as caught:
        open_encoder(call.mind.reopened().config)

    assert f"mind config embedding.other_host {HOST} --user" in caught.value.hint
    assert remote.texts == []


def test_an_allowed_host_gets_neither_private_memories_nor_the_users_own(call, remote):
    config(call, "embedding.other_host", HOST)
    add(call, "uploads fail behind the proxy")
    add(call, "the salary of Ann", private=True)
    add(call.user(make=True), "the user likes green tea")
    fresh = Call(call.mind.reopened())
    index(fresh)

    contents = [row.content for row in search(fresh, "salary tea uploads").results]
    edges(fresh, "deploy the salary")
    private = refresh.up_to_date(fresh).nearest("a prompt to an agent", 3)

    assert any("salary" in text for text in contents)
    assert any("green tea" in text for text in contents)
    assert private == []
    sent = " ".join(remote.texts)
    assert "uploads fail" in sent
    assert "salary tea uploads" in sent
    for text in ("salary of Ann", "green tea", "deploy", "prompt"):
        assert text not in sent


def test_the_users_own_memories_are_compared_by_the_packaged_encoder(call, remote):
    config(call, "embedding.other_host", HOST)
    add(call.user(make=True), "the user likes green tea")
    user = call.mind.reopened().user()

    assert user
    assert user.encoder
    assert user.encoder.model.startswith("all-MiniLM")


def test_no_redirect_is_followed(call, remote):
    config(call, "embedding.other_host", HOST)
    other, server = serving("Other")
    remote.redirect = f"http://127.0.0.1:{server.server_port}/v1/embeddings"
    add(call, "uploads fail behind the proxy")
    try:
        answer = search(Call(call.mind.reopened()), "large files break")
    finally:
        server.shutdown()
        server.server_close()

    assert "status 307" in (answer.notice or "")
    assert remote.texts
    assert other.texts == []
