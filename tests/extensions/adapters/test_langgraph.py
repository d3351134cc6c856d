"""The store with the real package `langgraph`: beside its own store, and in a graph."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from mimo.adapters.langgraph import MindStore
from mimo.errors import SecretDetected
from mimo.index.embedding.encoder import packaged_encoder
from mimo.mind import Mind
from mimo.project.init import init
from tests.conftest import NOW


@pytest.fixture
def store(project: Path) -> Iterator[MindStore]:
    opened = MindStore(project)
    yield opened
    opened.close()


def plain(result: Any) -> Any:
    """Returns a result without times and scores; lists of items by their names."""
    if isinstance(result, list):
        return sorted(map(repr, map(plain, result)))
    if hasattr(result, "key"):
        return tuple(result.namespace), result.key, result.value
    return result


NAMESPACES = [("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("b", "c"), ("ab",)]
CONDITIONS = [
    None,
    (MatchCondition("prefix", ("a",)),),
    (MatchCondition("suffix", ("c",)),),
    (MatchCondition("prefix", ("*", "b")),),
    (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("*", "c"))),
]
FILTERS = [
    None,
    {"n": 1},
    {"inner": {"x": [1, "é"]}},
    {"inner": {"x": (1, "é")}},
    {"n": {"$ne": 1}},
]


def operation(chance: random.Random) -> Any:
    namespace, key = chance.choice(NAMESPACES), chance.choice("xyz")
    kind = chance.randrange(6)
    if kind == 0:
        return GetOp(namespace, key)
    if kind == 1:
        return SearchOp(namespace[:1], filter=chance.choice(FILTERS), limit=100)
    if kind == 2:
        return ListNamespacesOp(chance.choice(CONDITIONS), chance.choice([None, 1, 2]), 100)
    if kind == 3:
        return PutOp(namespace, key, None)
    value = {"n": chance.randrange(4), "inner": {"x": [1, "é"]}, "text": "tea\n## Reasoning\n"}
    return PutOp(namespace, key, chance.choice([value, {"content": f"tea {key}"}]))


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_operations_gives_what_the_packages_own_store_gives(
    store: MindStore, seed: int
) -> None:
    chance, oracle = random.Random(seed), InMemoryStore()
    for _ in range(25):
        ops = [operation(chance) for _ in range(chance.randrange(1, 4))]
        own, expected = store.batch(ops), oracle.batch(ops)
        for op, ours, theirs in zip(ops, own, expected, strict=True):
            if isinstance(op, ListNamespacesOp):
                # Their store keeps the namespaces whose last item was deleted.
                assert set(ours) <= set(theirs), op
            else:
                assert plain(ours) == plain(theirs), op


def embed(texts: list[str]) -> list[list[float]]:
    """Returns the vectors of our encoder, so that only the ranking differs."""
    return [list(map(float, row)) for row in packaged_encoder().english(texts)]


SAMPLES = {
    ("users", "ann"): [
        "Ann drinks coffee in the morning",
        "Espresso at breakfast is what she likes best",
        "Her bicycle is red",
        "The database runs PostgreSQL 16",
        "Yesterday the build server was down",
    ],
    ("users", "bob"): [f"Bob likes green tea, cup number {number}" for number in range(120)],
    ("users", "eve"): ["Eve drinks coffee in the morning", "Eve owns a blue car"],
}
QUERIES = [
    "coffee morning",
    "Who rides a bike?",
    "green tea",
    "what was broken yesterday?",
    "latest",
    "which database do we use?",
    "?!",
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MindStore, InMemoryStore]]:
    """Our store and that of the package, which embeds texts, with the same items."""
    root, home = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIND_HOME", str(home))
        init(root, home, now=NOW)
        own = MindStore(root)
        peer = InMemoryStore(index={"dims": 384, "embed": embed, "fields": ["content"]})
        puts = [
            PutOp(namespace, str(number), {"content": text, "n": number})
            for namespace, texts in SAMPLES.items()
            for number, text in enumerate(texts)
        ]
        for store in (own, peer):
            store.batch(puts)
        own.search((), query="tea")
        with closing(Mind.open(None, project=root)) as mind:  # A search makes some of the vectors.
            mind.index.make_meanings(lambda *_: None)
        yield own, peer
        own.close()


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("namespace", [(), ("users",), *SAMPLES])
@pytest.mark.parametrize("condition", [None, {"n": {"$lt": 2}}])
def test_a_query_ranks_only_the_items_of_the_namespace_that_meet_the_filter(
    filled: tuple[MindStore, InMemoryStore], query: str, namespace: Any, condition: Any
) -> None:
    own, peer = (
        store.search(namespace, query=query, filter=condition, limit=200) for store in filled
    )
    scores = [item.score for item in own]

    assert {(item.namespace, item.key) for item in own} == {
        (item.namespace, item.key) for item in peer
    }
    assert all(score is not None and 0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    pages = [
        filled[0].search(namespace, query=query, filter=condition, limit=3, offset=start)
        for start in (0, 3)
    ]
    assert [item.key for page in pages for item in page] == [item.key for item in own[:6]]


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("ann", "coffee morning"),
        ("ann", "Who rides a bike?"),
        ("ann", "what was broken yesterday?"),
        ("ann", "which database do we use?"),
        ("eve", "coffee morning"),
        ("eve", "Who drives a car?"),
    ],
)
def test_the_best_item_is_that_of_a_store_with_embeddings(
    filled: tuple[MindStore, InMemoryStore], name: str, query: str
) -> None:
    own, peer = (store.search(("users", name), query=query, limit=1) for store in filled)
    assert own[0].key == peer[0].key


def test_the_order_is_that_of_a_store_with_embeddings(
    filled: tuple[MindStore, InMemoryStore],
) -> None:
    own, peer = (store.search(("users", "ann"), query="coffee morning") for store in filled)
    assert [item.key for item in own][:2] == [item.key for item in peer][:2] == ["0", "1"]


def test_a_batch_with_an_item_that_is_refused_changes_nothing(store: MindStore) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    store.put(("a",), "old", {"n": 1})

    with pytest.raises(SecretDetected):
        store.batch(
            [
                PutOp(("a",), "new", {"n": 1}),
                PutOp(("a",), "old", None),
                PutOp(("a",), "late", {"x": key}),
            ]
        )
    assert [item.key for item in store.search(("a",))] == ["old"]


def test_tuples_count_as_lists(store: MindStore) -> None:
    store.put(("a",), "k", {"tags": ("x", "y")})
    for condition in ({"tags": ("x", "y")}, {"tags": ["x", "y"]}, {"tags": {"$eq": ("x", "y")}}):
        (item,) = store.search(("a",), filter=condition)
        assert item.value == {"tags": ["x", "y"]}


def test_the_usual_methods(store: MindStore) -> None:
    store.put(("users", "ann"), "likes", {"content": "Ann likes green tea"})
    store.put(("users", "bob"), "likes", {"content": "Bob owns a red bicycle"})
    item = store.get(("users", "ann"), "likes")

    assert item is not None
    assert (item.value, item.namespace) == ({"content": "Ann likes green tea"}, ("users", "ann"))
    assert item.created_at == item.updated_at
    best = store.search(("users",), query="Who rides a bike?")[0]
    assert best.namespace == ("users", "bob")
    assert best.score is not None
    assert store.list_namespaces(prefix=("users",)) == [("users", "ann"), ("users", "bob")]
    assert store.list_namespaces(max_depth=1) == [("users",)]
    store.delete(("users", "bob"), "likes")
    assert store.get(("users", "bob"), "likes") is None


def test_the_asynchronous_methods(store: MindStore) -> None:
    async def use() -> None:
        await asyncio.gather(*(store.aput(("n",), str(n), {"n": n}) for n in range(5)))
        assert len(await store.asearch(("n",))) == 5
        item = await store.aget(("n",), "3")
        assert item is not None
        assert item.value == {"n": 3}
        await store.adelete(("n",), "3")
        assert await store.aget(("n",), "3") is None
        assert await store.alist_namespaces() == [("n",)]

    asyncio.run(use())


def test_what_is_not_supported_is_refused(store: MindStore) -> None:
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"n": 1}, ttl=5)
    with pytest.raises(NotImplementedError):
        store.batch([PutOp(("a",), "k", {"n": 1}, ttl=5)])
    with pytest.raises(InvalidNamespaceError):
        store.put((), "k", {"n": 1})
    with pytest.raises(ValueError, match="operation"):
        store.batch(["get"])  # type: ignore[list-item, unused-ignore]
    assert store.search(()) == []


def test_items_are_private_unless_the_program_shares_them(project: Path, store: MindStore) -> None:
    shared = MindStore(project, private=False)
    store.put(("a",), "k", {"n": 1})
    shared.put(("a",), "other", {"n": 2})
    shared.close()

    assert len(list((project / ".mind/private/items").glob("*.md"))) == 1
    assert len(list((project / ".mind/items").glob("*.md"))) == 1
    assert len(store.search(("a",))) == 2


class State(TypedDict):
    text: str


def test_a_graph_remembers_from_one_run_to_the_next(project: Path) -> None:
    def remember(state: State, *, store: BaseStore) -> State:
        earlier = store.search(("users", "ann"), query=state["text"])
        store.put(("users", "ann"), str(len(earlier)), {"content": state["text"]})
        return {"text": earlier[0].value["content"] if earlier else "nothing"}

    def run(text: str) -> str:
        opened = MindStore(project)
        builder = StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", END)
        answer = builder.compile(store=opened).invoke({"text": text})
        opened.close()
        return str(answer["text"])

    assert run("Ann likes green tea") == "nothing"
    assert run("Which tea does Ann like?") == "Ann likes green tea"


def test_the_example_on_the_page_runs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[3] / "docs" / "adapters.md"
    text = page.read_text("utf-8").partition("## The store of LangGraph")[2]
    names: dict[str, Any] = {}
    monkeypatch.chdir(project)

    exec(text.split("```python\n")[1].split("```")[0], names)  # noqa: S102 - our own page
    names["store"].close()

    assert [item.value for item in names["best"]] == [{"content": "Ann drinks green tea"}]
