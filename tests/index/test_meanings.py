"""The encoder's vectors find what words miss, and are made when there is time."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from threading import Barrier, current_thread

import pytest

from mimo.data.disk import Stamp
from mimo.errors import Invalid
from mimo.index.embedding import open_embedder
from mimo.index.embedding.encoder import packaged_encoder
from mimo.index.index import Index
from mimo.index.meanings import Meanings, count_missing
from mimo.index.rows import Change, Request
from mimo.index.vectors import SCHEMA, Vectors
from mimo.memory.model import Filter, Kind, Memory, Place, Record
from mimo.ranking import Ranker

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FACTS = {
    "sessions": "Customers get a cookie with a random session id, kept in Redis for 14 days",
    "tables": "Every table has created_at and updated_at columns with time zone",
    "deploys": "Releases go out on Tuesdays, never before a weekend",
    "mail": "Invoices are sent by Postmark; the templates are in the billing package",
    "images": "Photos are resized to 1600 pixels when they are uploaded",
}
QUESTIONS = {
    "how do people stay signed in?": "sessions",
    "when may we ship a new version?": "deploys",
    "which service delivers our e-mail?": "mail",
}


@pytest.fixture
def index(tmp_path):
    opened = Index.open(tmp_path / ".index", open_embedder())
    opened.encoder = packaged_encoder
    write(opened, FACTS)
    yield opened
    opened.close()


def write(index, facts, private=()):
    changes = [
        Change(
            path=f".mind/facts/{name}.md",
            stamp=Stamp(size=1, mtime_ns=1, ctime_ns=1, inode=1),
            records=(
                Record(
                    memory=Memory(id=name, type=Kind.FACT, content=content, created=NOW),
                    place=Place(
                        path=f".mind/facts/{name}.md", line=1, digest="", private=name in private
                    ),
                ),
            ),
        )
        for name, content in facts.items()
    ]
    index.apply(changes, now_ns=0)


def best(index, question, **filter):
    matches = index.search(Request(question, filter=Filter(**filter), limit=5, now=NOW))
    return [hit.record.memory.id for hit in matches.hits]


@pytest.mark.parametrize("question", ["how do people stay signed in?", "kept in Redis"])
def test_memories_with_vectors_are_ranked_once(index, monkeypatch, question):
    best(index, question)  # It makes the missing vectors.
    ranked = []
    rank = Ranker.rank

    def count(*given):
        ranked.append(given)
        return rank(*given)

    monkeypatch.setattr(Ranker, "rank", count)

    assert best(index, question)[0] == "sessions"
    assert len(ranked) == 1


@pytest.mark.parametrize(("question", "name"), QUESTIONS.items())
def test_a_question_in_other_words_finds_its_answer_first(index, question, name):
    assert best(index, question)[0] == name


def test_a_filter_also_holds_for_what_meaning_finds(index):
    assert best(index, "how do people stay signed in?", tags=frozenset({"none"})) == []


def test_the_first_search_of_a_short_store_makes_all_vectors(tmp_path):
    store = Index.open(tmp_path / "short", open_embedder())
    store.encoder = packaged_encoder
    write(store, FACTS | {f"n{n}": f"Port {n} is for worker {n}" for n in range(60)})

    answer = store.search(
        Request("how do people stay signed in?", filter=Filter(), limit=5, now=NOW)
    )

    assert answer.notice is None
    store.close()


def test_a_search_of_a_longer_store_states_how_many_vectors_exist(tmp_path):
    store = Index.open(tmp_path / "long", open_embedder())
    store.encoder = packaged_encoder
    write(store, FACTS | {f"n{n}": f"Port {n} is for worker {n}" for n in range(400)})

    answer = store.search(
        Request("how do people stay signed in?", filter=Filter(), limit=5, now=NOW)
    )

    assert answer.notice == (
        "305 of 405 texts are not yet read for their meaning; "
        "servers do it between calls, `mind index` at once"
    )
    assert unread(store) == 305
    store.close()


def test_a_search_of_a_longer_store_encodes_the_newest_and_the_best_units_by_words_first(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("mimo.index.meanings.MOST_CHARACTERS", 80)
    store = Index.open(tmp_path / "long", open_embedder())
    store.encoder = packaged_encoder
    page = "\n\n".join(f"Step {n}: {'pour the water ' * 20}" for n in range(9))
    notes = {f"n{n}": f"Port {n} is for worker {n}" for n in range(400)}
    write(store, {"page": f"{page}\n\nThe kettle is in the cellar", **notes})

    store.search(
        Request(
            "is a kettle near the printer, or upstairs?",
            filter=Filter(),
            limit=5,
            now=NOW,
        )
    )

    units = store.ask(
        lambda sql: sql.execute("SELECT vector, unpacked(tokens) FROM units").fetchall()
    )
    assert store.meanings
    made = store.meanings.vectors.known(name for name, _ in units)
    encoded = [tokens for name, tokens in units if name in made]
    assert sorted(encoded[-3:]) == [f"port {n} i for worker {n}" for n in (0, 1, 10)]
    assert encoded[:-3] == [tokens for _, tokens in units if "kettl" in tokens]
    store.close()


def test_vectors_are_made_once(index):
    index.make_meanings(lambda done, of: None)
    assert index.make_meanings(lambda done, of: None) == 0

    write(index, {"tests": "The suite runs in two minutes"})
    assert index.make_meanings(lambda done, of: None) == 1


def unread(index, *, with_private=True):
    """Returns the number of unread memories, which needs no encoder."""
    _, vectors = index.files()
    return index.ask(count_missing, vectors, with_private=with_private)


def test_unread_memories_are_counted_without_the_encoder(index):
    write(index, {"plan": "A plan of our own"}, private=["plan"])
    assert (unread(index), unread(index, with_private=False)) == (6, 5)

    index.make_meanings(lambda done, of: None)
    assert unread(index) == 0
    write(index, {"tests": "The suite runs in two minutes"})
    assert unread(index) == 1


def test_it_is_noted_that_all_vectors_are_made(index, tmp_path, monkeypatch):
    index.make_meanings(lambda done, of: None)
    monkeypatch.setattr("mimo.index.meanings._NOTED", 3)
    write(index, {"tests": "The suite runs in two minutes"})
    with closing(Index.open(tmp_path / ".index", open_embedder())) as again:
        again.encoder = packaged_encoder
        again.make_meanings(lambda done, of: None)

    revision = index.totals().revision
    assert index.meanings.vectors.state().complete == f"{index.file} {revision}"


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_threads_make_the_same_vectors(count):
    texts = [
        *FACTS.values(),
        "wo liegen die Schlüssel?",
        "데이터베이스 연결 제한",
        "数据库连接",
        "!!!",
    ]
    texts = [f"{text} {number}" * (1 + number % 5) for number in range(4) for text in texts][:count]
    encoder = packaged_encoder()
    with Meanings(None, encoder).in_threads(2) as encode:
        assert encode(texts) == encoder.encode_many(texts)


class Together:
    """An encoder that encodes only while another thread does, too."""

    model = "together"

    def __init__(self, refused=""):
        self.refused, self.barrier = refused, Barrier(2, timeout=60)

    def encode_many(self, texts):
        self.barrier.wait()
        if self.refused in texts:
            raise Invalid("no answer")
        return packaged_encoder().encode_many(texts)


def test_threads_encode_at_the_same_time_and_one_stores(index, monkeypatch):
    storing, put = set(), Vectors.put

    def noted(*arguments, **named):
        storing.add(current_thread())
        return put(*arguments, **named)

    monkeypatch.setattr(Vectors, "put", noted)
    index.encoder = Together
    assert index.make_meanings(lambda done, of: None, threads=2) == len(FACTS)

    assert unread(index) == 0
    assert storing == {current_thread()}


def test_an_error_in_one_thread_ends_the_reading(index):
    index.encoder = lambda: Together(refused=min(FACTS.values(), key=len))
    with pytest.raises(Invalid, match="no answer"):
        index.make_meanings(lambda done, of: None, threads=2)

    assert unread(index) == len(FACTS)


@pytest.mark.parametrize("threads", [1, 2])
def test_making_vectors_can_be_stopped_and_goes_on_later(index, monkeypatch, threads):
    monkeypatch.setattr("mimo.index.index._MEANINGS_BATCH", 1)
    reported = []

    def stop(done, of):
        reported.append((done, of))
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.make_meanings(stop, threads=threads)

    total = reported[0][1]
    assert reported == [(0, total), (threads, total)]
    assert index.make_meanings(lambda done, of: None) == total - threads


KILLED = """
import os, sys
from pathlib import Path
import mimo.index.index as module
from mimo.index.embedding.encoder import packaged_encoder

module._MEANINGS_BATCH = 2
index = module.Index.open(Path(sys.argv[1]), None)
index.encoder = packaged_encoder
index.make_meanings(lambda done, of: done < 4 or os.kill(os.getpid(), 9))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_process_that_is_killed_leaves_the_vectors_that_it_made(index, tmp_path):
    folder = tmp_path / ".index"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert unread(index) == 1
    assert index.make_meanings(lambda done, of: None) == 1


def test_vectors_survive_the_process(index, tmp_path):
    index.make_meanings(lambda done, of: None)
    again = Index.open(tmp_path / ".index", open_embedder())
    again.encoder = packaged_encoder

    assert again.make_meanings(lambda done, of: None) == 0
    again.close()


def test_without_an_encoder_words_answer(tmp_path):
    plain = Index.open(tmp_path / ".index", open_embedder())
    write(plain, FACTS)

    assert best(plain, "session cookie")[0] == "sessions"
    assert plain.make_meanings(lambda done, of: None) == 0
    assert static(plain) == len(FACTS)
    plain.close()


def test_vectors_of_earlier_texts_are_removed_if_they_are_many(index, monkeypatch):
    monkeypatch.setattr("mimo.index.index._MOST_UNUSED", 3)
    names = set()
    for number in range(9):
        write(index, {name: f"{text}, {number}" for name, text in FACTS.items()})
        index.make_meanings(lambda *_: None)
        names.add(index.meanings.vectors.count())

    assert max(names) <= 3 + 2 * len(FACTS)


def test_a_broken_encoder_leaves_words_and_a_notice(tmp_path, index):
    class Broken:
        model = "broken"

        def encode(self, text):
            raise ValueError("no weights")

        def encode_many(self, texts):
            raise ValueError("no weights")

    plain = Index.open(tmp_path / "other", open_embedder())
    plain.encoder = Broken
    write(plain, FACTS)

    answer = plain.search(Request("which photos get smaller?", filter=Filter(), limit=5, now=NOW))

    assert answer.hits[0].record.memory.id == "images"
    assert answer.notice == "searched without the encoder: no weights"
    plain.close()


def test_texts_of_all_languages_have_vectors_of_one_length_but_those_in_unknown_scripts(index):
    japanese, german, runes, korean, english = index.meanings.of(
        [
            "顧客はクッキーでログイン状態を保つ",
            "Der Kunde bleibt mit einem Cookie angemeldet",
            "ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾᛁ",
            "고객은 쿠키로 로그인 상태를 유지한다",
            "Customers stay signed in by a cookie",
        ]
    )

    assert runes == b""
    assert {*map(len, (japanese, german, korean, english))} == {384}


def test_a_search_does_not_wait_for_a_process_that_stores_vectors(index, tmp_path):
    index.make_meanings(lambda done, of: None)
    write(index, FACTS | {"tests": "The suite runs in two minutes"})
    other = sqlite3.connect(SCHEMA.path(tmp_path / ".index"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    answer = index.search(
        Request("how do people stay signed in?", filter=Filter(), limit=5, now=NOW)
    )

    assert answer.hits[0].record.memory.id == "sessions"
    assert answer.notice == (
        "1 of 6 texts is not yet read for their meaning; "
        "servers do it between calls, `mind index` at once"
    )
    other.close()


def test_the_encoder_is_not_asked_about_a_store_that_it_cannot_read(tmp_path):
    runes = {f"note{number}": "ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾᛁ " * (number + 1) for number in range(12)}
    foreign = Index.open(tmp_path / "foreign", open_embedder())
    foreign.encoder = packaged_encoder
    write(foreign, runes | {"mail": FACTS["mail"]})
    foreign.make_meanings(lambda done, of: None)

    meanings = foreign.meanings
    assert meanings is not None
    with foreign.reading() as sql:
        assert meanings.compared(sql, "Postmark service", Filter()) is None
    foreign.close()


FOREIGN = {"ja": "本番サーバーのログは90日間保存する", "zh": "生产服务器的日志保留九十天"}
ENGLISH = FACTS | {
    "logs": "Structured JSON logs, shipped to Loki",
    "safari": "Safari drops third-party cookies, so login in the embedded widget fails",
}


@pytest.mark.parametrize("added", FOREIGN)
def test_a_memory_in_another_script_hides_no_other(tmp_path, added):
    answers = []
    for name, facts in (("without", ENGLISH), ("with", ENGLISH | {added: FOREIGN[added]})):
        store = Index.open(tmp_path / name, open_embedder())
        store.encoder = packaged_encoder
        write(store, facts)
        store.make_meanings(lambda done, of: None)
        asked = ["user login", "log in with google", "where do logs go", *QUESTIONS]
        answered = {
            question: store.search(Request(question, filter=Filter(), limit=9, now=NOW)).hits
            for question in asked
        }
        answers.append(
            {
                question: next(
                    hit.record.memory.id for hit in hits if hit.record.memory.id != added
                )
                for question, hits in answered.items()
            }
        )
        store.close()
        assert all(hits[0].record.memory.id != added for hits in answered.values())

    assert answers[0] == answers[1]


@pytest.mark.parametrize("added", FOREIGN)
def test_a_question_finds_a_memory_in_another_script(tmp_path, added):
    store = Index.open(tmp_path / "store", open_embedder())
    store.encoder = packaged_encoder
    write(store, FACTS | {added: FOREIGN[added]})
    store.make_meanings(lambda done, of: None)

    answer = store.search(
        Request("how long are server logs kept?", filter=Filter(), limit=5, now=NOW)
    )

    assert added in [hit.record.memory.id for hit in answer.hits]
    store.close()


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Wie werden Backups aufbewahrt?", "backups"),
        ("Wo ist das mit den Backups?", "backups"),
        ("Comment sont faits les backups ?", "backups"),
        ("¿Dónde se guardan los backups?", "backups"),
    ],
)
def test_a_question_in_another_language_is_ranked_by_its_subject(tmp_path, question, first):
    store = Index.open(tmp_path / "store", open_embedder())
    store.encoder = packaged_encoder
    others = {
        "backups": "Backups run nightly at 02:00 UTC and are kept for 35 days",
        "rechnung": "Wie die Rechnungen erzeugt werden, ist noch nicht entschieden; das ist mit zu",
        "facture": "Les factures sont envoyées par courrier, et les retours sont gratuits",
        "pedido": "Los pedidos se envían los lunes, y los de las islas no se envían",
    }
    write(store, FACTS | others)
    store.make_meanings(lambda done, of: None)

    answer = store.search(Request(question, filter=Filter(), limit=5, now=NOW))

    assert answer.hits[0].record.memory.id == first
    store.close()


def test_equally_near_memories_are_in_the_same_order_in_whatever_order_they_were_indexed(tmp_path):
    facts = {f"m{n:02}": FACTS["sessions"] for n in range(30)}
    orders = []
    for name, written in (("one", facts), ("other", dict(reversed(facts.items())))):
        some = Index.open(tmp_path / name, open_embedder())
        some.encoder = packaged_encoder
        write(some, written)
        some.make_meanings(lambda done, of: None)
        assert some.meanings is not None
        with some.reading() as sql:
            compared = some.meanings.compared(sql, "how do people stay signed in?", Filter())
            assert compared is not None
            keys = [key for key, _ in compared.nearest]
            ids = dict(sql.execute("SELECT key, id FROM memories").fetchall())
        orders.append([ids[key] for key in keys])
        some.close()

    assert orders[0] == orders[1] == sorted(facts)[:20]


def scored(index, question):
    """Returns the ids and scores of the matches."""
    matches = index.search(Request(question, filter=Filter(), limit=20, now=NOW))
    return [(hit.record.memory.id, hit.score) for hit in matches.hits]


def reading(folder, notes):
    """Returns an index of notes, without any vectors."""
    store = Index.open(folder, open_embedder())
    store.encoder = packaged_encoder
    write(store, notes)
    return store


def static(index):
    """Returns the number of static vectors."""
    return index.stats().vectors


@pytest.mark.parametrize("question", ["do workers keep people signed in?", "worker of a port"])
def test_static_vectors_are_made_for_a_search_that_the_encoder_is_not_ready_for(
    tmp_path, question, monkeypatch
):
    monkeypatch.setattr("mimo.index.meanings.MOST_CHARACTERS", 10)
    notes = {f"n{n}": f"Port {n} is for worker {n}" for n in range(100)} | FACTS
    before, store = (reading(tmp_path / name, notes) for name in ("before", "later"))
    before.ask(before.make_static)
    assert (static(before), static(store)) == (105, 0)

    assert scored(store, question) == scored(before, question)

    assert static(store)
    store.make_meanings(lambda *_: None)
    assert static(store) == 0
    assert scored(store, question)
    assert static(store) == 0
    before.close()
    store.close()


def test_equal_stores_give_equal_answers_when_all_vectors_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr("mimo.index.meanings.MOST_CHARACTERS", 200)
    notes = FACTS | {f"n{n}": f"Port {n} is for worker {n}, signed in {n % 7}" for n in range(60)}
    once = reading(tmp_path / "once", notes)
    stepwise = reading(tmp_path / "stepwise", {"gone": "A cookie of a session for the e-mail"})
    for name in sorted(notes, reverse=True):
        write(stepwise, {name: "An earlier text about sessions"})
        write(stepwise, {name: notes[name]})
        if name.endswith("7"):
            scored(stepwise, "how do people stay signed in?")
    stepwise.apply([Change(path=".mind/facts/gone.md", stamp=None)], now_ns=0)
    questions = [*QUESTIONS, "worker port", "signed in 3"]

    answers = []
    for store in (once, stepwise):
        store.make_meanings(lambda *_: None)
        answers.append([scored(store, question) for question in questions])
    stepwise.discard()
    write(stepwise, notes)
    answers.append([scored(stepwise, question) for question in questions])

    assert answers[0] == answers[1] == answers[2]
    once.close()
    stepwise.close()


class Elsewhere:
    """An encoder on another machine, which gets no private text."""

    is_elsewhere = True

    def __getattr__(self, name):
        return getattr(packaged_encoder(), name)


def test_static_vectors_stand_in_for_those_of_private_texts(tmp_path):
    answers = []
    for is_before in (False, True):
        store = Index.open(tmp_path / str(is_before), open_embedder())
        store.encoder = Elsewhere
        write(store, FACTS, private=("sessions", "mail"))
        store.make_meanings(lambda *_: None)
        if is_before:
            store.ask(store.make_static)
        answers.append([scored(store, question) for question in (*QUESTIONS, "cookie in a photo?")])
        store.close()

    assert answers[0] == answers[1]


class Broken:
    """An encoder whose machine can't be reached."""

    model = packaged_encoder().model

    def encode(self, _):
        raise OSError("no network")

    encode_many = encode


def test_without_the_encoder_all_static_vectors_are_made_again(tmp_path):
    notes = FACTS | {f"n{n}": f"Port {n} is for worker {n}" for n in range(60)}
    first = Index.open(tmp_path / "index", open_embedder())
    write(first, notes)
    first.encoder = packaged_encoder
    first.make_meanings(lambda *_: None)
    first.encoder = Broken
    del first.meanings
    scored(first, "port 58 worker 57 56")
    some = static(first)
    first.close()
    store = Index.open(tmp_path / "index", open_embedder())

    scored(store, "how do people stay signed in?")

    assert (some, static(store)) == (60, 65)
    store.close()


def test_a_question_in_other_words_reaches_texts_that_are_mostly_unread(tmp_path, monkeypatch):
    monkeypatch.setattr("mimo.index.meanings.MOST_CHARACTERS", 10)
    notes = {f"a{n}": f"Port {n} is for worker {n}" for n in range(100)} | FACTS
    store = reading(tmp_path / "unread", notes)

    assert "sessions" in best(store, "how do people stay signed in?")
    store.close()
