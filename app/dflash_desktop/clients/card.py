"""A client's card: what to do by hand, what to copy, what we can write, and whether the client is here at all."""

from __future__ import annotations

from dataclasses import dataclass

from dflash_desktop.base.phrase import Phrase
from dflash_desktop.clients.writer import FileEdit


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy. `language` is for colouring: bash, fish, powershell, json, yaml, toml, text."""

    title: Phrase | str  # a name stays as it is in every language
    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class Card:
    """`client_id` is also the name under which the server's events know the client. Phrases: context `clients`."""

    client_id: str
    name: Phrase | str
    is_detected: bool
    steps: tuple[Phrase, ...]  # one sentence each
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[FileEdit, ...] = ()  # empty: nothing can be written for this client
    warning: Phrase | None = None
    next_step: Phrase | None = None  # what to do after writing, in one sentence
    command: tuple[str, ...] = ()  # starts the client in a terminal, with `environment`
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def can_write(self) -> bool:
        return bool(self.edits)
