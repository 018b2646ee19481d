"""Bounded memory of what a process wrote."""

from __future__ import annotations

import attrs

__all__ = ["Captured", "Tail"]


@attrs.frozen
class Captured:
    """What is known of one output stream after its process ended.

    Attributes:
        data: The last bytes that were written, exactly; all of them unless ``truncated``.
        total: How many bytes were written.
    """

    data: bytes
    total: int

    @property
    def truncated(self) -> bool:
        """Whether the beginning was dropped."""
        return self.total > len(self.data)

    @property
    def text(self) -> str:
        """``data`` as UTF-8; what is not UTF-8, or was cut in two by the limit, becomes U+FFFD."""
        return self.data.decode("utf-8", "replace")


class Tail:
    """Keeps the last ``limit`` bytes of a stream.

    Args:
        limit: In bytes, more than 0. At most twice as much plus one chunk is held at any moment.
    """

    __slots__ = ("_data", "_limit", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._total = 0

    @property
    def overflowed(self) -> bool:
        """Whether more than ``limit`` bytes were fed."""
        return self._total > self._limit

    def feed(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._total += len(chunk)
        self._data += chunk
        # Trimming only at twice the limit moves each byte once on average.
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def captured(self) -> Captured:
        """What is kept now."""
        return Captured(bytes(self._data[-self._limit :]), self._total)
