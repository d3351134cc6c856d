"""Cosines in plain Python and with numpy are the same numbers."""

import subprocess
import sys
from unittest import mock

import numpy as np  # noqa: F401  loaded, so that `cosines` uses it
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.index import cosine as module
from mimo.index.cosine import cosines

vectors = st.binary(min_size=8, max_size=8)


@given(vectors, st.lists(st.one_of(vectors, st.just(b""))))
def test_plain_python_gives_the_same_as_numpy(query: bytes, others: list[bytes]) -> None:
    assert module.numpy_pays(len(others)), "numpy is loaded here, so `cosines` uses it"
    with_numpy = cosines(query, others)
    with mock.patch.object(module, "numpy_pays", return_value=False):
        assert cosines(query, others) == with_numpy


@given(vectors, vectors)
def test_a_cosine_is_symmetric_and_within_bounds(a: bytes, b: bytes) -> None:
    (one_way,), (back,) = cosines(a, [b]), cosines(b, [a])

    assert one_way == back
    assert -1 <= one_way <= 1


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (bytes([127, 0]), bytes([127, 0]), 1.0),
        (bytes([127, 0]), bytes([129, 0]), -1.0),
        (bytes([127, 0]), bytes([0, 127]), 0.0),
        (b"", bytes([127, 0]), 0.0),
        (bytes([127, 0]), b"", 0.0),
        (b"", b"", 0.0),
    ],
)
def test_only_directions_count(a: bytes, b: bytes, expected: float) -> None:
    assert cosines(a, [b]) == [expected]


def test_some_cosines_do_not_import_numpy() -> None:
    code = (
        "from mimo.index.cosine import cosines; import sys\n"
        "cosines(bytes(256), [bytes(256)] * 2000); print('numpy' in sys.modules)\n"
        "cosines(bytes(256), [bytes(256)] * 8000); print('numpy' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["False", "True"]
