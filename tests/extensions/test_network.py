"""Commands of extensions that work on files use no network."""

import shlex

from tests.test_network import Offline, offline, way, ways

__all__ = ["offline", "way"]


@ways
def test_exports_and_reports_use_no_network_and_import_no_module_for_it(offline: Offline) -> None:
    for line in ("init", "add 'Tea is at four'", "export", "report", "token list"):
        offline.run(*shlex.split(line))

    assert {words: names for words, names in offline.imported().items() if names} == {}
    assert offline.forbidden() == ""
