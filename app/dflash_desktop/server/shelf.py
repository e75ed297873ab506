"""Models on this computer that are not loaded, but could be: what clients may name and listings show."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.pairs import Pair, model_files
from dflash_desktop.server.naming import answer_names, bits_per_weight, folded, model_id, params_of, title_of

log = logging.getLogger(__name__)

SERVING_CONTEXT = 65536  # Hermes refuses less than 64000, and Claude Code wants as much
_FRESH_S = 10.0  # so long a look at the folders counts


@dataclass(frozen=True, slots=True)
class ShelfModel:
    """A target that can run here, with its draft. No path of it leaves the server."""

    model_id: str
    display_name: str
    architecture: str
    quantization: str
    size_bytes: int
    n_params: int
    params_text: str
    trained_context_tokens: int
    changed_at_s: int
    target: Path
    draft: Path | None
    names: frozenset[str]  # lower case

    @property
    def context_tokens(self) -> int:
        """What would be loaded, if it fits."""
        return min(SERVING_CONTEXT, self.trained_context_tokens) or SERVING_CONTEXT

    @property
    def bits_per_weight(self) -> float:
        return bits_per_weight(self.quantization, self.size_bytes, self.n_params)

    def answers_to(self, name: str) -> bool:
        return name in self.names or name.rpartition("/")[2] in self.names


class Shelf:
    """Looks through folders for models. Any thread; `models` never waits, `refresh` reads headers."""

    def __init__(
        self,
        folders: Sequence[Path],
        inspect: Callable[[Path], ModelFile],
        drafts_for: Callable[[Path], Iterable[ModelFile]],
        built_in: Sequence[Pair] = (),
    ) -> None:
        """`inspect` raises AppError for an unsound file; `drafts_for` gives the drafts made for a target."""
        self._folders = tuple(folders)
        self._inspect = inspect
        self._drafts_for = drafts_for
        self._built_in = tuple(built_in)
        self._found: tuple[ShelfModel, ...] = ()
        self._known: dict[tuple[str, int, int], ModelFile | None] = {}  # by path, size and time of change
        self._looked_s = 0.0  # never
        self._lock = threading.Lock()
        self._is_looking = threading.Event()

    def models(self) -> tuple[ShelfModel, ...]:
        """What the last look found; an old one is repeated in the background."""
        is_old = not self._looked_s or time.monotonic() - self._looked_s > _FRESH_S
        if is_old and not self._is_looking.is_set():
            self._is_looking.set()
            threading.Thread(target=self.refresh, name="model-shelf", daemon=True).start()
        return self._found

    def refresh(self) -> tuple[ShelfModel, ...]:
        """Look now."""
        with self._lock:
            try:
                self._found = _with_own_ids(self._look())
            except Exception:  # whatever lies in the folders, listings go on
                log.exception("the model folders could not be looked through")
            finally:
                self._looked_s = time.monotonic()
                self._is_looking.clear()
            return self._found

    def find(self, name: str) -> ShelfModel | None:
        """The model that a client means by `name`. The first call reads headers: not on the event loop."""
        asked = folded(name)
        models = self._found if self._looked_s > 0 else self.refresh()
        return next((model for model in models if asked and model.answers_to(asked)), None)

    def _look(self) -> list[ShelfModel]:
        found = [_shelf_model(file, pair.draft) for pair in self._built_in if (file := self._target(pair.target))]
        own = {pair.target.resolve() for pair in self._built_in}
        for path in model_files(self._folders):
            file = self._target(path)
            if file is not None and path.resolve() not in own:
                draft = next((each.path for each in self._drafts_for(path)), None)
                found.append(_shelf_model(file, draft))
        return found

    def _target(self, path: Path) -> ModelFile | None:
        try:
            state = path.stat()
        except OSError:
            return None
        key = (str(path), state.st_size, state.st_mtime_ns)
        if key not in self._known:
            try:
                file = self._inspect(path)
                self._known[key] = file if file.role == "target" and file.can_run else None
            except AppError:
                self._known[key] = None
        return self._known[key]


def _shelf_model(file: ModelFile, draft: Path | None) -> ShelfModel:
    title = title_of(file.name, file.path)
    own_id = model_id(title)
    n_params, params_text = params_of(file.name, file.path.stem)
    return ShelfModel(
        model_id=own_id,
        display_name=title,
        architecture=file.architecture,
        quantization=file.quantization,
        size_bytes=file.file_bytes,
        n_params=file.n_parameters or n_params,
        params_text=params_text,
        trained_context_tokens=file.context_tokens,
        changed_at_s=_changed_at_s(file.path),
        target=file.path,
        draft=draft,
        names=answer_names(own_id, file.name, file.path, file.quantization),
    )


def _changed_at_s(path: Path) -> int:
    try:
        return int(path.stat().st_mtime)
    except OSError:
        return 0


def _with_own_ids(found: Sequence[ShelfModel]) -> tuple[ShelfModel, ...]:
    """Where a name stands for several files, each is called by its quantisation too, and the last by a number."""
    ids = [model.model_id for model in found]
    given: set[str] = set()
    named = []
    for model in found:
        own_id = model.model_id
        if ids.count(own_id) > 1:
            own_id = f"{own_id}-{model.quantization.lower()}"
        number = 1
        while own_id in given:
            number += 1
            own_id = f"{own_id.removesuffix(f'-{number - 1}')}-{number}"
        given.add(own_id)
        named.append(replace(model, model_id=own_id, names=model.names | {own_id}))
    return tuple(named)
