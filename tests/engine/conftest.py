"""A lane over a scripted session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from support.patience import NEVER_S
from support.scripted_session import PIECES, ScriptedLoader, ScriptedSession, load

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession(PIECES)


@pytest.fixture
def loader(session: ScriptedSession) -> ScriptedLoader:
    return ScriptedLoader(session)


@pytest.fixture
def engine(loader: ScriptedLoader) -> Iterator[Engine]:
    engine = Engine(loader)
    engine.start()
    yield engine
    engine.close()


@pytest.fixture
def loaded(engine: Engine) -> Engine:
    assert isinstance(load(engine), PairLoaded)
    return engine


@pytest.fixture
def unhurried_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe at load makes all the steps it wants, however long each takes on a busy machine."""
    monkeypatch.setattr("dflash_desktop.engine.draft_probe.LIMIT_S", NEVER_S)
