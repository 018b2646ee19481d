"""Descriptions from docstrings, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import attrs
import docstring_parser

__all__ = ["Docs", "docs_of"]


@attrs.frozen
class Docs:
    """What a docstring says.

    Attributes:
        description: Everything before the sections, as one text; empty if there is no docstring.
        parameters: Parameter or attribute name to its description.
    """

    description: str = ""
    parameters: Mapping[str, str] = attrs.field(factory=dict[str, str])


def docs_of(documented: object) -> Docs:
    """Read the docstring of a function or class; one that the parser rejects still gives its text."""
    text = inspect.getdoc(documented)
    if not text:
        return Docs()
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Docs(text.strip())
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    parameters = {param.arg_name: _one_line(param.description) for param in parsed.params if param.description}
    return Docs("\n\n".join(parts), parameters)


def _one_line(text: str) -> str:
    return " ".join(text.split())
