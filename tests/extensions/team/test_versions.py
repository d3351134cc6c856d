"""The tokens of a later version of mind are refused, and stay."""

from tests.project import test_versions
from tests.project.test_versions import Later, Store, replaced, store

__all__ = ["store"]


def test_tokens_of_a_later_version_are_refused_and_stay(store: Store) -> None:
    later = Later(
        replaced("home/.mind", "tokens.toml", "", "format = 2\n"),
        "tokens.toml` has",
        ("token rm ana", "token rotate ana", "token list"),
    )
    test_versions.test_a_file_of_a_later_version_is_refused_and_stays(store, later)
