"""Files: the PDF and other documents that formats carry, each in its own shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from ..registry import JsonValue
from ._images import read_data_url, sniffed, web_url

__all__ = ["FileContent", "foreign_file", "sendable_file"]

_PDF: Final = "application/pdf"


@attrs.frozen
class FileContent:
    """A file, by value or by reference.

    Attributes:
        name: Its title or file name; empty if it has none.
        media_type: Such as ``application/pdf``; empty if unknown.
        data: The base64 text, or ``None`` if ``url`` is given.
        url: Where it is, or ``None`` if ``data`` is given.
    """

    name: str
    media_type: str = ""
    data: str | None = None
    url: str | None = None


def foreign_file(block: Mapping[str, JsonValue]) -> FileContent | None:
    """The file that a block of another format holds, or ``None``.

    Args:
        block: Anthropic's ``document`` with a base64 or URL source, Responses' ``input_file`` or Chat's ``file`` by
            value or URL, or a binary resource of MCP. Files named by an API's own id stay with that API.
    """
    match block:
        case {"type": "document", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            return FileContent(_name(block, "title"), media_type, data)
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            return FileContent(_name(block, "title"), url=url)
        case {"type": "input_file", "file_data": str(data)}:
            return _from_file_data(_name(block, "filename"), data)
        case {"type": "input_file", "file_url": str(url)}:
            return FileContent(_name(block, "filename"), url=url)
        case {"type": "file", "file": {"file_data": str(data)}}:
            return _from_file_data(_name(block["file"], "filename"), data)
        case {"type": "resource", "resource": {"blob": str(data)}}:
            resource = block["resource"]
            return FileContent(_name(resource, "uri"), _name(resource, "mimeType"), data)
        case _:
            return None


def sendable_file(file: FileContent, schemes: tuple[str, ...] = ("http", "https")) -> FileContent | None:
    """The file as an API takes it, or ``None``: a PDF by value, or any file by URL.

    Args:
        file: Any file.
        schemes: The schemes of URLs that the API fetches; none if it fetches nothing.
    """
    if file.url is not None:
        return file if web_url(file.url, schemes) else None
    data = "".join((file.data or "").split())
    media_type = sniffed(data) or file.media_type
    return FileContent(file.name or "document.pdf", _PDF, data) if data and media_type == _PDF else None


def _from_file_data(name: str, data: str) -> FileContent:
    media_type, payload = read_data_url(data) or ("", data)
    return FileContent(name, media_type, payload)


def _name(block: JsonValue | Mapping[str, JsonValue], key: str) -> str:
    name = block.get(key) if isinstance(block, Mapping) else None
    return name if isinstance(name, str) else ""
