"""Changes to a settings file as pure functions on its text: apply, remember what was there, take back.

`capture` returns plain data that can be stored; `revert` gives a text in which only our keys are as before.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from dflash_desktop.base.errors import AppError
from dflash_desktop.clients import jsonc


class BadSettings(AppError):
    """The file cannot be read by us, so it is left alone."""


class Edit(Protocol):
    """One kind of change. `text` is None where there is no file."""

    def apply(self, text: str | None) -> str: ...

    def capture(self, text: str | None) -> dict[str, Any]: ...

    def revert(self, text: str, captured: Mapping[str, Any]) -> str: ...


@dataclass(frozen=True, slots=True)
class JsonKeys:
    """Values at paths in a JSON file. `only_if_missing` paths are written where nothing stands yet."""

    values: Mapping[tuple[str, ...], object]
    only_if_missing: frozenset[tuple[str, ...]] = frozenset()

    def apply(self, text: str | None) -> str:
        changed = text or ""
        try:
            for path, value in self.values.items():
                if path in self.only_if_missing and changed.strip():
                    if jsonc.find(jsonc.parse(changed), path) is not None:
                        continue
                changed = jsonc.set_value(changed, path, value)
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error
        return changed

    def capture(self, text: str | None) -> dict[str, Any]:
        before: list[dict[str, Any]] = []
        try:
            root = jsonc.parse(text) if text is not None and text.strip() else None
            for path in self.values:
                found = jsonc.find(root, path) if root is not None else None
                depth = next(
                    (n for n in range(1, len(path) + 1) if root is None or jsonc.find(root, path[:n]) is None), None
                )
                entry: dict[str, Any] = {"path": list(path)}
                if found is not None and text is not None:
                    entry["value"] = jsonc.value_of(text, found)
                else:
                    entry["made"] = list(path[:depth])  # the topmost member that we make
                before.append(entry)
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error
        return {"keys": before}

    def revert(self, text: str, captured: Mapping[str, Any]) -> str:
        try:
            for entry in reversed(captured["keys"]):
                if "value" in entry:
                    text = jsonc.set_value(text, entry["path"], entry["value"])
                else:
                    text = jsonc.remove(text, entry["path"])
                    text = _without_empty_parents(text, entry["path"][:-1], len(entry["made"]))
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error
        return text


def _without_empty_parents(text: str, path: Sequence[str], n_kept: int) -> str:
    """Remove objects that we made and that are empty again."""
    while len(path) >= n_kept and path:
        node = jsonc.find(jsonc.parse(text), path)
        if node is None or node.kind != "object" or node.members:
            break
        text = jsonc.remove(text, path)
        path = path[:-1]
    return text


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """One entry of a list in a JSON file, known by the value of `mark`. Empty `path`: the file is the list."""

    path: tuple[str, ...]
    mark: str
    entry: Mapping[str, object]

    def apply(self, text: str | None) -> str:
        try:
            index, _ = self._found(text)
            if text is not None and index is not None:
                return jsonc.set_item(text, self.path, index, dict(self.entry))
            if not self.path and (text is None or not text.strip()):
                text = "[]\n"
            return jsonc.append_item(text or "", self.path, dict(self.entry))
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error

    def capture(self, text: str | None) -> dict[str, Any]:
        try:
            index, before = self._found(text)
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error
        return {"entry": before} if index is not None else {}

    def revert(self, text: str, captured: Mapping[str, Any]) -> str:
        try:
            index, _ = self._found(text)
            if index is None:
                return text
            if "entry" in captured:
                return jsonc.set_item(text, self.path, index, captured["entry"])
            return jsonc.remove_item(text, self.path, index)
        except jsonc.BadJson as error:
            raise BadSettings(f"The settings file is no JSON that we can read: {error}.") from error

    def _found(self, text: str | None) -> tuple[int | None, Any]:
        if text is None or not text.strip():
            return None, None
        root = jsonc.parse(text)
        node = jsonc.find(root, self.path) if self.path else root
        if node is None:
            return None, None
        if node.kind != "list":
            raise jsonc.BadJson(f"{'.'.join(self.path) or 'the file'} is no list")
        for index, item in enumerate(node.items):
            value = jsonc.value_of(text, item)
            if isinstance(value, dict) and value.get(self.mark) == self.entry[self.mark]:
                return index, value
        return None, None


@dataclass(frozen=True, slots=True)
class Several:
    """More than one change to one file, in order."""

    edits: tuple[Edit, ...]

    def apply(self, text: str | None) -> str:
        for edit in self.edits:
            text = edit.apply(text)
        return text or ""

    def capture(self, text: str | None) -> dict[str, Any]:
        captured = []
        for edit in self.edits:
            captured.append(edit.capture(text))
            text = edit.apply(text)
        return {"several": captured}

    def revert(self, text: str, captured: Mapping[str, Any]) -> str:
        for edit, before in zip(reversed(self.edits), reversed(captured["several"]), strict=True):
            text = edit.revert(text, before)
        return text


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is ours alone."""

    text: str

    def apply(self, text: str | None) -> str:
        del text
        return self.text

    def capture(self, text: str | None) -> dict[str, Any]:
        return {"text": text} if text is not None else {}

    def revert(self, text: str, captured: Mapping[str, Any]) -> str:
        del text  # ours alone: a change in it goes with it
        before = captured.get("text")
        return before if isinstance(before, str) else ""


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """One entry of a top-level list in a YAML file, known by the value of `mark`; comments elsewhere stay."""

    key: str
    mark: str
    entry: Mapping[str, object]
    skeleton: Mapping[str, object]  # of a file that does not exist yet

    def apply(self, text: str | None) -> str:
        root = self._read(text) if text is not None and text.strip() else dict(self.skeleton)
        listed = self._list(root)
        index = self._index(listed)
        if index is None:
            listed.append(dict(self.entry))
        else:
            listed[index] = dict(self.entry)
        root[self.key] = listed
        return self._write(root)

    def capture(self, text: str | None) -> dict[str, Any]:
        if text is None or not text.strip():
            return {}
        listed = self._list(self._read(text))
        index = self._index(listed)
        return {"entry": _plain(listed[index])} if index is not None else {}

    def revert(self, text: str, captured: Mapping[str, Any]) -> str:
        root = self._read(text)
        listed = self._list(root)
        index = self._index(listed)
        if index is None:
            return text
        if "entry" in captured:
            listed[index] = captured["entry"]
        else:
            del listed[index]
        return self._write(root)

    def _list(self, root: Any) -> Any:
        listed = root.get(self.key)
        if listed is None:
            return []
        if not isinstance(listed, list):
            raise BadSettings(f"{self.key} in the settings file is no list.")
        return listed

    def _index(self, listed: list[Any]) -> int | None:
        wanted = self.entry[self.mark]
        return next(
            (i for i, each in enumerate(listed) if isinstance(each, Mapping) and each.get(self.mark) == wanted), None
        )

    def _read(self, text: str) -> Any:
        try:
            root = _yaml().load(text)
        except YAMLError as error:
            raise BadSettings("The settings file is no YAML that we can read.") from error
        if not isinstance(root, dict):
            raise BadSettings("The settings file holds no mapping.")
        return root

    def _write(self, root: Any) -> str:
        out = io.StringIO()
        _yaml().dump(root, out)
        return out.getvalue()


def _yaml() -> YAML:
    yaml = YAML()  # round trip: keeps comments, order and quotes
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
