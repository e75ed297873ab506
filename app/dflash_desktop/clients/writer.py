"""Writes settings files and takes it back: backup first, one rename per file, and a byte-identical undo."""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dflash_desktop.base.errors import AppError
from dflash_desktop.clients.edits import BadSettings, Edit

log = logging.getLogger(__name__)

_N_KEPT = 5  # backups per client
_MANIFEST = "manifest.json"
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file of another program, and what changes in it. `is_private`: it holds a key, so only its owner reads it."""

    path: Path
    edit: Edit
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What writing would do to one file: a unified diff, empty when nothing changes."""

    path: Path
    exists: bool
    diff: str


class SettingsWriter:
    """`backups` is a folder of this app; each write gets a folder `<client>/<time>` in it."""

    def __init__(self, backups: Path) -> None:
        self._backups = backups

    def preview(self, edits: Sequence[FileEdit]) -> list[Preview]:
        """Raise BadSettings when a file cannot be read."""
        previews = []
        for each in edits:
            before = _read(each.path)
            after = _applied(each, before)
            name = each.path.name
            lines = difflib.unified_diff(
                (before or "").splitlines(keepends=True), after.splitlines(keepends=True), name, name, n=2
            )
            previews.append(Preview(each.path, before is not None, "".join(lines)))
        return previews

    def write(self, client: str, edits: Sequence[FileEdit]) -> Path:
        """Change all files or none; return the backup folder. Raise AppError, with every file as it was."""
        planned = [(each, _read_bytes(each.path)) for each in edits]
        prepared = []
        for each, raw in planned:
            before = _decoded(each.path, raw)
            captured = each.edit.capture(_body(before))
            prepared.append((each, raw, _encoded(_applied(each, before)), captured))
        folder = self._new_folder(client)
        entries: list[dict[str, Any]] = []
        for number, (each, raw, after, captured) in enumerate(prepared):
            entry: dict[str, Any] = {
                "path": str(each.path),
                "written_sha256": hashlib.sha256(after).hexdigest(),
                "captured": captured,
                "is_private": each.is_private,
            }
            if raw is not None:
                entry["backup"] = f"{number}-{each.path.name}"
                _write_atomically(folder / entry["backup"], raw, mode=0o600)
                entry["mode"] = stat.S_IMODE(each.path.stat().st_mode)
            entries.append(entry)
        manifest = json.dumps({"version": 1, "client": client, "files": entries}, ensure_ascii=False, indent=1)
        _write_atomically(folder / _MANIFEST, manifest.encode(), mode=0o600)
        done: list[tuple[Path, bytes | None]] = []
        try:
            for each, raw, after, _ in prepared:
                each.path.parent.mkdir(parents=True, exist_ok=True)
                _write_atomically(each.path, after, mode=0o600 if each.is_private else _mode_of(each.path))
                done.append((each.path, raw))
        except OSError as error:
            for path, raw in reversed(done):
                _put_back(path, raw)
            _remove_folder(folder)
            raise AppError(f"{each.path.name} could not be written: {error.strerror or error}.") from error
        self._prune(client)
        return folder

    def can_undo(self, client: str) -> bool:
        return self._last(client) is not None

    def undo(self, client: str, edits: Sequence[FileEdit]) -> None:
        """Take the last write back. A file that was changed since keeps that change; only our keys go."""
        folder = self._last(client)
        if folder is None:
            raise AppError("There is nothing to undo.")
        manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
        by_path = {str(each.path): each for each in edits}
        for entry in manifest["files"]:
            path = Path(entry["path"])
            raw = _read_bytes(path)
            backup = folder / entry["backup"] if "backup" in entry else None
            if raw is None or hashlib.sha256(raw).hexdigest() == entry["written_sha256"]:
                _put_back(path, backup.read_bytes() if backup is not None else None, mode=entry.get("mode"))
                continue
            edit = by_path.get(entry["path"])
            if edit is None:
                raise AppError(f"{path.name} was changed since. The copy from before is kept in {folder}.")
            before = _decoded(path, raw)
            reverted = edit.edit.revert(_body(before) or "", entry["captured"])
            if backup is None and not reverted.strip().strip("{}[]").strip():
                _put_back(path, None)
            else:
                _write_atomically(path, _encoded(_with_bom(before, reverted)), mode=_mode_of(path))
        (folder / _MANIFEST).rename(folder / "undone.json")

    def _last(self, client: str) -> Path | None:
        folders = sorted((self._backups / client).glob(f"*/{_MANIFEST}"))
        return folders[-1].parent if folders else None

    def _new_folder(self, client: str) -> Path:
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        for number in range(1000):
            folder = self._backups / client / f"{stamp}_{number:03}"
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise AppError(f"No backup can be made in {self._backups}: {error.strerror or error}.") from error
            return folder
        raise AppError(f"No backup can be made in {self._backups}.")

    def _prune(self, client: str) -> None:
        folders = sorted(path for path in (self._backups / client).iterdir() if path.is_dir())
        for folder in folders[:-_N_KEPT]:
            _remove_folder(folder)


def _applied(each: FileEdit, before: str | None) -> str:
    try:
        return _with_bom(before, each.edit.apply(_body(before)))
    except BadSettings as error:
        words = f"{each.path} was left alone: {error} Correct it, or copy the settings by hand."
        raise BadSettings(words) from error


def _body(text: str | None) -> str | None:
    return text.removeprefix(_BOM) if text is not None else None


def _with_bom(before: str | None, text: str) -> str:
    return _BOM + text if before is not None and before.startswith(_BOM) else text


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadSettings(f"{path.name} cannot be read: {error.strerror or error}.") from error


def _decoded(path: Path, raw: bytes | None) -> str | None:
    try:
        return raw.decode("utf-8") if raw is not None else None
    except UnicodeDecodeError as error:
        raise BadSettings(f"{path.name} is no UTF-8 text.") from error


def _read(path: Path) -> str | None:
    return _decoded(path, _read_bytes(path))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0o644


def _put_back(path: Path, raw: bytes | None, *, mode: int | None = None) -> None:
    if raw is None:
        path.unlink(missing_ok=True)
    else:
        _write_atomically(path, raw, mode=mode if mode is not None else _mode_of(path))


def _write_atomically(path: Path, raw: bytes, *, mode: int) -> None:
    """Through a file beside it and one rename; a link keeps pointing to its file."""
    target = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _remove_folder(folder: Path) -> None:
    try:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    except OSError as error:
        log.warning("an old backup stays: %s", error)
