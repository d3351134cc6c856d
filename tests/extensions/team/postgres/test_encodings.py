"""Databases and clients with other encodings, and errors of a push, which are not of the index."""

import psycopg
import pytest

from mimo.extensions.team.postgres import writing
from mimo.extensions.team.postgres.connection import SharedIndexFailed
from mimo.features.notes.commands import add
from mimo.features.search.commands import search
from mimo.features.upkeep.indexing import index
from tests.extensions.team.postgres.conftest import ORG, Open, Postgres

TEXT = "日本語のメモ about naïve Kafka"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_with_another_encoding_is_refused(
    opened: Open, postgres: Postgres, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    with psycopg.connect(postgres.url(), autocommit=True) as sql:
        sql.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        sql.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"
            " LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )
    shop = opened("ana", "shop", at=postgres.url(name))
    add(shop, TEXT)

    with pytest.raises(SharedIndexFailed, match=f"encoding {encoding}") as caught:
        index(shop, push=True)

    assert "--encoding UTF8" in (caught.value.hint or "")
    assert f"encoding {encoding}" in (search(shop, "kafka", scope=ORG).notice or "")


def test_the_encoding_of_the_environment_has_no_effect(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    shop, billing = opened("ana", "shop"), opened("ben", "billing")
    add(shop, TEXT)

    index(shop, push=True, readers=("everyone",))

    assert [row.title for row in search(billing, "日本語", scope=ORG).results] == [TEXT]


@pytest.mark.parametrize("error", [TypeError("a fault of mind"), OSError("a full disk")])
def test_an_error_of_a_push_leaves_the_local_index(
    opened: Open, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    shop = opened("ana", "shop")
    add(shop, TEXT)
    index(shop)
    before = sorted(shop.mind.index_folder.glob("index*.db"))

    def fails(*_: object, joins: bool) -> None:
        raise error

    monkeypatch.setattr(writing, "push", fails)
    with pytest.raises(type(error), match=str(error)):
        index(shop, push=True)

    assert sorted(shop.mind.index_folder.glob("index*.db")) == before
    assert len(search(shop, "kafka").results) == 1
