"""What docstrings say: the description of a tool or class, and of each parameter or field."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import attrs
import docstring_parser
from docstring_parser import Docstring, DocstringStyle

__all__ = ["Documentation", "class_documentation", "parse_docstring"]

# Not the parser's own choice among styles: it also knows epydoc, to which any line that begins with "@" is a field.
_STYLES = (DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC, DocstringStyle.REST)


@attrs.frozen
class Documentation:
    """A docstring, read.

    Attributes:
        description: Summary and description without the sections; empty if there is none.
        parameters: Parameter, attribute or field name to its description in one line, where that is not empty.
    """

    description: str = ""
    parameters: Mapping[str, str] = attrs.field(factory=dict[str, str])


def parse_docstring(text: str | None) -> Documentation:
    """Read a docstring in Google, NumPy or Sphinx style.

    Args:
        text: The docstring, indented as in its source, or ``None``.

    Returns:
        What it says. A docstring in none of the styles, or broken in its own, is a description as a whole.
    """
    if text is None or not text.strip():
        return Documentation()
    clean = inspect.cleandoc(text)
    readings = [reading for style in _STYLES if (reading := _read(clean, style)) is not None]
    best = max(readings, key=_sections, default=None)
    if best is None or not any(_sections(best)):
        return Documentation(clean.strip())
    return Documentation((best.description or "").strip(), _parameters(best))


def class_documentation(cls: type) -> Documentation:
    """What the docstring of a class says; fields that it does not describe are looked up in its bases."""
    fields: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        fields |= parse_docstring(_own_docstring(base)).parameters
    return Documentation(parse_docstring(_own_docstring(cls)).description, fields)


def _read(text: str, style: DocstringStyle) -> Docstring | None:
    try:
        return docstring_parser.parse(text, style)
    except Exception:  # noqa: BLE001 - besides its ParseError the parser raises what its regular expressions ran into
        return None


def _sections(reading: Docstring) -> tuple[int, int]:
    return len(reading.params), len(reading.many_returns) + len(reading.raises)


def _parameters(reading: Docstring) -> dict[str, str]:
    found: dict[str, str] = {}
    for parameter in reading.params:
        description = " ".join((parameter.description or "").split())
        # NumPy style may describe several at once: "x, y : float".
        for name in parameter.arg_name.split(","):
            if description:
                found.setdefault(name.strip().lstrip("*"), description)
    return found


def _own_docstring(cls: type) -> str | None:
    text = cls.__dict__.get("__doc__")
    if not isinstance(text, str) or cls.__module__ == "builtins":
        return None
    # Dataclasses and named tuples without a docstring get their signature as one.
    generated = text.startswith(f"{cls.__name__}(") and text.endswith(")") and "\n" not in text
    return None if generated else text
