"""The state of extensions is read and written as that of the core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.extensions.exchange import writing
from mimo.extensions.team import tokens
from mimo.features.importing.surroundings import LISTED
from tests.project import test_state
from tests.project.test_state import REFUSED, SPOILED, Kind


def write_tokens(root: Path) -> None:
    member = tokens.Member(
        name="ana", email="ana@example.org", scope=tokens.Scope.READ, digest=tokens.digest_of("x")
    )
    tokens.write(root / "home" / tokens.FILE, [member])


def write_listing(root: Path) -> None:
    (root / "vault").mkdir(exist_ok=True)
    (root / "vault" / LISTED).write_bytes(writing._listing(["a.md"]))


EVERY = {
    "tokens": Kind(
        write_tokens,
        lambda root: tokens.read(root / "home" / tokens.FILE),
        "home/tokens.toml",
        REFUSED,
    ),
    "files of an export": Kind(
        write_listing, lambda root: writing._listed(root / "vault"), f"vault/{LISTED}", REFUSED
    ),
}


@pytest.mark.attack("damaged state")
@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_damage_to_each_file_has_the_meaning_of_its_class(
    tmp_path: Path, kind: Kind, spoil: Callable[[bytes], bytes]
) -> None:
    test_state.test_damage_to_each_file_has_the_meaning_of_its_class(tmp_path, kind, spoil)
