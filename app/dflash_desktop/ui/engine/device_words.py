"""A device as the engine lists it, in the words of the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine.device_users import NEEDED, DriverProblem
from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.kit import numbers

MOST_USERS = 3

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
        numbers.memory(device.free_bytes), numbers.memory(device.total_bytes)
    )
    return DeviceFacts(title, words)


def reason_words(device: Device, devices: Sequence[Device]) -> str:
    """Why this one is recommended."""
    if device.kind == "gpu":
        cards = [other for other in devices if other.kind == "gpu" and not other.same_card_as]
        if len(cards) > 1:
            return translate("devices", "the card with the most free memory")
        return translate("devices", "a graphics card of its own")
    if device.kind == "integrated_gpu":
        return translate("devices", "no graphics card of its own is present; this one shares the machine's memory")
    return translate("devices", "no usable graphics card is present")


def same_card_words(device: Device) -> str:
    """That this is no further card; "" for all that are cards of their own."""
    if not device.same_card_as:
        return ""
    return translate("devices", "The same card as {0}, driven by {1}").format(device.same_card_as, device.backend)


def user_names(device: Device) -> str:
    """Who holds its memory: 'game (1.2 GiB), process 4242'; "" where nobody does or the system does not tell."""
    named = []
    for user in device.users[:MOST_USERS]:
        name = user.name or translate("devices", "process {0}").format(user.process_id)
        if user.n_bytes:
            name = translate("devices", "{0} ({1})").format(name, numbers.memory(user.n_bytes))
        named.append(name)
    n_more = len(device.users) - len(named)
    if n_more > 0:
        named.append(translate("devices", "{0} more").format(n_more))
    return ", ".join(named)


def users_words(device: Device) -> str:
    names = user_names(device)
    return translate("devices", "Used by {0}").format(names) if names else ""


def problem_words(problem: DriverProblem) -> str:
    """Why a card is not in the list, and what to do."""
    match problem.kind:
        case "no_driver":
            words = translate(
                "devices", "{0}: the card is not used, for its driver does not run. Install {1} and restart."
            )
            return words.format(problem.card, NEEDED)
        case "driver_too_old":
            words = translate(
                "devices", "{0}: the card is not used. Its driver {2} runs CUDA {3} at most. Install {1} and restart."
            )
            return words.format(problem.card, NEEDED, problem.driver, problem.cuda)
        case "no_backend":
            words = translate(
                "devices", "{0}: the card is not used, for this build has no backend for it. Install one that has."
            )
            return words.format(problem.card)
        case "backend_failed":
            words = translate(
                "devices", "{0}: the card is not used, for its backend could not start. The log says why."
            )
            return words.format(problem.card)
        case "left_out":
            return translate(
                "devices",
                "Graphics cards are not used this time: the last start ended while their drivers were started. Start "
                "again to try them once more.",
            )
        case "no_vulkan":
            words = translate(
                "devices",
                "{0}: the card is not used, for no Vulkan driver answers. Install the card's driver; on Linux also the "
                "Vulkan loader (package libvulkan1), for AMD and Intel mesa-vulkan-drivers.",
            )
            return words.format(problem.card)
