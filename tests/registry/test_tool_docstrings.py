"""Descriptions come from docstrings in three styles."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Annotated, Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce import tool
from quiesce.registry._docstrings import class_documentation, parse_docstring

GOOGLE = """Copy a file.

    Links are followed.

    Args:
        source: What to copy;
            it must exist.
        target (str): Where to.

    Returns:
        The number of bytes.

    Raises:
        OSError: It cannot be read.
    """
NUMPY = """Copy a file.

    Links are followed.

    Parameters
    ----------
    source : str
        What to copy;
        it must exist.
    target : str
        Where to.

    Returns
    -------
    int
        The number of bytes.
    """
SPHINX = """Copy a file.

    Links are followed.

    :param source: What to copy;
        it must exist.
    :param str target: Where to.
    :returns: The number of bytes.
    :raises OSError: It cannot be read.
    """


def described(definition: Any) -> dict[str, str]:
    """Parameter to description."""
    return {name: node.get("description") for name, node in definition.parameters["properties"].items()}


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_each_style_describes_the_tool_and_its_parameters(text: str) -> None:
    """Summary and long description describe the tool, the sections its parameters."""

    def copy(source: str, target: str) -> int:
        return len(source + target)

    copy.__doc__ = text
    definition = tool(copy)
    assert definition.description == "Copy a file.\n\nLinks are followed."
    assert described(definition) == {"source": "What to copy; it must exist.", "target": "Where to."}


@pytest.mark.parametrize(
    "text",
    [
        "Sum up.\n\nArgs:\n    values without a colon\n",
        "Sum up.\n\n:param values",
        "Sum up.\n\n:warning: it is slow",
        "Sum up.\n\n@all get a copy.",
        "Sum up.\n\nExample:\n    sum_up(1, 2)",
    ],
)
def test_a_docstring_that_no_parser_takes_is_the_description_as_a_whole(text: str) -> None:
    """Nothing that the author wrote is lost."""
    assert parse_docstring(text).description == text.strip()


def test_a_name_list_of_numpy_style_describes_each_of_its_names() -> None:
    """``x, y : float`` is two parameters."""
    text = "Move.\n\nParameters\n----------\nx, y : float\n    The place.\n"
    assert dict(parse_docstring(text).parameters) == {"x": "The place.", "y": "The place."}


def test_a_text_in_annotated_wins_over_the_docstring() -> None:
    """The description nearest to the parameter counts."""

    @tool
    def find(word: Annotated[str, "near"], place: str) -> None:
        """Find.

        Args:
            word: far
            place: far
        """

    assert described(find) == {"word": "near", "place": "far"}


def test_fields_of_classes_are_described_by_their_docstrings() -> None:
    """The attributes sections of a class and its bases describe its fields, its summary the object."""

    @attrs.frozen
    class Base:
        """A base.

        Attributes:
            name: Its name.
            size: Its size.
        """

        name: str
        size: int

    @attrs.frozen
    class Box(Base):
        """A box.

        Attributes:
            size: How much it holds.
        """

        size: int

    documentation = class_documentation(Box)
    assert documentation.description == "A box."
    assert dict(documentation.parameters) == {"name": "Its name.", "size": "How much it holds."}

    @tool
    def pack(box: Box) -> None: ...

    node: Any = pack.parameters["properties"]["box"]  # type: ignore[index,call-overload]
    assert node["description"] == "A box."
    assert node["properties"]["size"]["description"] == "How much it holds."


def test_the_signature_that_dataclasses_get_as_docstring_is_no_description() -> None:
    """``Point(x: int)`` tells a model nothing that the schema does not."""

    @dataclass
    class Point:
        x: int

    assert Point.__doc__ is not None
    assert class_documentation(Point).description == ""


@given(
    st.text(alphabet=":@ \n-azArgsReturnsParameters`*().,", max_size=200)
    | st.lists(
        st.sampled_from(["Args:", "  x: y", ":param x: y", "-----", "Parameters", "Returns:", "", " @x", ":"])
    ).map("\n".join)
)
def test_any_text_is_read(text: str) -> None:
    """A docstring can be anything: reading it never fails, and text never becomes nothing."""
    documentation = parse_docstring(text)
    read = documentation.description or documentation.parameters or "Returns" in text or "Raises" in text
    assert read or not text.strip() or ":" in text
    assert parse_docstring(textwrap.indent(text, "    ")).description is not None


def test_no_docstring_is_an_empty_description() -> None:
    """Nothing is made up."""

    @tool
    def silent() -> None: ...

    assert silent.description == ""
