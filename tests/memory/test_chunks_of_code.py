"""Source code is cut at blank lines; the head of a function stays with its body."""

import pytest

from mimo.memory.chunking import Chunking, Strategy, chunks


def heads(text, name, **asked):
    result = chunks(text, Chunking(strategy=Strategy.PARAGRAPHS, **asked), name)
    return [chunk.text.splitlines()[0] for chunk in result]


PYTHON = '''\
"""A module.

With two paragraphs.
"""

import os.path


def first():

    """Do it."""
    value = 1

    text = """
    not

def a function
    """

    return value


class Thing:
    """A thing."""

    name = "thing"

    @property
    def long(self):
        one = 1

        return one

    async def other(self):
        pass

if os.name:
    print("so")

else:
    print("otherwise")
'''


def test_python_is_cut_between_functions_and_methods():
    assert heads(PYTHON, "a.py") == [
        '"""A module.',
        "import os.path",
        "def first():",
        "class Thing:",
        '    name = "thing"',
        "    @property",
        "    async def other(self):",
        "if os.name:",
    ]


C = """\
#include <stdio.h>

static int twice(int value)
{
    int result = value;

    return 2 * result;

}

int main(void) {

    puts("hello");

    return 0;
}
"""

JAVA = """\
public final class Store
{
    private int size;

    public int size()
    {
        check();

        return size;
    }

    void clear() {
        size = 0;

        touch();
    }

}
"""

ELIXIR = '''\
defmodule Shop.Cart do
  @moduledoc """
  A cart.

  Of things.
  """

  def add(cart, item) do
    check(item)

    [item | cart]
  end

  defp check(item), do: item

end
'''


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (C, "a.c", ["#include <stdio.h>", "static int twice(int value)", "int main(void) {"]),
        (
            JAVA,
            "Store.java",
            ["public final class Store", "    public int size()", "    void clear() {"],
        ),
        (
            ELIXIR,
            "cart.ex",
            [
                "defmodule Shop.Cart do",
                "  def add(cart, item) do",
                "  defp check(item), do: item",
            ],
        ),
    ],
)
@pytest.mark.req("000-83")
def test_other_languages_are_cut_by_indentation(text, name, expected):
    assert heads(text, name) == expected


def test_a_function_larger_than_the_size_keeps_its_head_with_its_first_lines():
    text = "def long():\n" + "".join(f"    step_{number}()\n\n" for number in range(30))
    result = chunks(text, Chunking(strategy=Strategy.PARAGRAPHS, chunk_size=100), "a.py")
    assert all(len(item.text) <= 100 for item in result)
    assert result[0].text.startswith("def long():\n    step_0()")
