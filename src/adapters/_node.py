"""A cursor on a document: a part of it, and where that part sits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, cast

import attrs

from ._errors import MessageFormatError

__all__ = ["Node"]

_SHOWN_KEYS = 6
_SHOWN_CHARACTERS = 60
_SHOWN_BITS = 128


def _unwrapped(value: object) -> object:
    """The value; an SDK object as the plain data it dumps to."""
    if value is None or isinstance(value, str | int | float | Mapping | list | tuple | type):
        return cast("object", value)
    # to_dict of the OpenAI and Anthropic SDKs leaves out what was not sent; pydantic's model_dump fills it in.
    for method in ("to_dict", "model_dump"):
        dump = getattr(value, method, None)
        if callable(dump):
            return dump()
    return value


@attrs.frozen
class Node:
    """A part of a document.

    Attributes:
        value: The part, an SDK object already as plain data; ``None`` if it is absent.
        path: Where it sits.
    """

    value: object = attrs.field(converter=_unwrapped)
    path: str

    @property
    def fields(self) -> Mapping[str, object]:
        """Its members if it is an object, else none."""
        value = self.value
        return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}

    @property
    def elements(self) -> list[Node]:
        """Its elements if it is a list, else none."""
        value = self.value
        elements = cast("list[object]", value) if isinstance(value, list | tuple) else []
        return [Node(element, f"{self.path}[{index}]") for index, element in enumerate(elements)]

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.value, list | tuple)

    @property
    def kind(self) -> str:
        """Its ``type`` if it states one, else the empty text."""
        kind = self.fields.get("type")
        return kind if isinstance(kind, str) else ""

    @property
    def role(self) -> str:
        """Its ``role`` if it states one, else the empty text."""
        role = self.fields.get("role")
        return role if isinstance(role, str) else ""

    def get(self, key: str) -> Node:
        """Its member ``key``, with the value ``None`` if there is none."""
        return Node(self.fields.get(key), f"{self.path}.{key}")

    def objects(self, remedy: str) -> list[Node]:
        """Its elements, which must be objects.

        Raises:
            MessageFormatError: It is not a list, or an element is not an object.
        """
        if not self.is_list:
            self.refuse(remedy)
        elements = self.elements
        for element in elements:
            element.check_object("expected an object")
        return elements

    def check_object(self, remedy: str) -> None:
        """Raise ``MessageFormatError`` unless it is an object."""
        if not isinstance(self.value, Mapping):
            self.refuse(remedy)

    def text(self, remedy: str) -> str:
        """Its text.

        Raises:
            MessageFormatError: It is not text.
        """
        if not isinstance(self.value, str):
            self.refuse(remedy)
        return self.value

    def refuse(self, remedy: str) -> NoReturn:
        """Raise the ``MessageFormatError`` that says what is here and what should be."""
        raise MessageFormatError(self.path, _described(self.value), remedy)


def _described(value: object) -> str:
    # Never repr of a container or of any integer: the one may be too deep, the other too long.
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        keys = [repr(key)[:_SHOWN_CHARACTERS] for key in cast("Mapping[object, object]", value) if isinstance(key, str)]
        shown = ", ".join(keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")
        return f"an object with the keys {shown}" if keys else "an object without keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(cast('list[object]', value))}"
    if isinstance(value, str):
        shown = repr(value[:_SHOWN_CHARACTERS])
        return f"the text {shown}" + ("…" if len(value) > _SHOWN_CHARACTERS else "")
    if isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() <= _SHOWN_BITS):
        return repr(value)
    return f"a value of type {type(value).__name__}"
