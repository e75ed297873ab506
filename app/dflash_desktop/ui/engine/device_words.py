"""A device as the engine lists it, in the words of the window."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    title: str
    memory_words: str


def device_facts(device: Device) -> DeviceFacts:
    """Its names in one line, and how much of its memory is free."""
    title = device.description or device.name
    if device.name and device.name not in title:
        title = f"{device.name}  ·  {title}"
    if device.total_bytes <= 0:
        return DeviceFacts(title, translate("devices", "memory unknown"))
    words = translate("devices", "{0} of {1} memory free").format(
        numbers.size(device.free_bytes), numbers.size(device.total_bytes)
    )
    return DeviceFacts(title, words)
