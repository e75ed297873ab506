"""What clients may come back to by an id: the last few answers, in memory only and within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.options import MIB

Kept = TypeVar("Kept")

_N_MOST = 64
_MOST_BYTES = 64 * MIB


class Stored(Generic[Kept]):
    """The oldest go first. Lives on the server's event loop."""

    def __init__(self, *, n_most: int = _N_MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._n_most = n_most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()
        self._n_bytes = 0

    def keep(self, response_id: str, value: Kept, n_bytes: int) -> None:
        """`n_bytes`: what it takes about, of which earlier ones hold nothing. One that is too large is not kept."""
        self._kept[response_id] = value, n_bytes
        self._n_bytes += n_bytes
        while self._kept and (len(self._kept) > self._n_most or self._n_bytes > self._most_bytes):
            self.drop(next(iter(self._kept)))

    def find(self, response_id: str) -> Kept:
        """Raise ApiError when it is not there, or not any more."""
        found = self._kept.get(response_id)
        if found is None:
            raise ApiError(
                f"There is no stored response {response_id[:60]!r}.",
                status=404,
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return found[0]

    def drop(self, response_id: str) -> None:
        self._n_bytes -= self._kept.pop(response_id)[1]

    def values(self) -> list[Kept]:
        """The newest first."""
        return [value for value, _ in reversed(self._kept.values())]
