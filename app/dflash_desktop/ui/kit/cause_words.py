"""Failures of the rooms below in the window's language. One without a cause is told in its own English sentence."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate


def told(cause: Cause | None, sentence: str) -> str:
    """What to say of a failure: its cause in words, else the sentence that came with it."""
    return cause_words(cause) or sentence if cause is not None else sentence


def error_words(error: Exception) -> str:
    """The same for an exception that arrived here."""
    return told(error.cause if isinstance(error, AppError) else None, str(error))


def cause_words(cause: Cause) -> str:
    """What happened and what to do, in the language in force; "" for a cause that has no words."""
    match cause.code:
        case "file_missing" | "file_broken" | "tokenizer_unknown":
            return _file_words(cause)
        case "file_unsupported" | "architecture_unknown" | "experts_unsupported" | "draft_unsupported":
            return _unsupported_words(cause)
        case "wrong_role" | "draft_mismatch":
            return _role_words(cause)
        case "out_of_memory" | "context_too_large" | "draft_too_large" | "no_memory":
            return _memory_words(cause)
        case "device_missing" | "no_device" | "device_failed" | "engine_missing":
            return _device_words(cause)
        case "context_exceeded":
            return _prompt_words(cause)
        case "template_refuses":
            return translate("causes", "The model's chat template refuses this conversation: {0}.").format(
                cause.name("reason")
            )
        case "nothing_loaded":
            return translate("causes", "No model is loaded. Load one first.")
        case "other_model_loaded":
            return translate("causes", "Another model was loaded meanwhile. Send it again.")
        case "disk_full":
            return _disk_words(cause)
        case "state_broken" | "state_unreadable" | "state_unwritable":
            return _state_words(cause)
        case "bug":
            words = translate("causes", "Something went wrong in the program itself ({0}). The log has more.")
            return words.format(cause.name("kind"))


def _file_words(cause: Cause) -> str:
    file = cause.name("file")
    match cause.code:
        case "file_missing":
            words = translate("causes", "{0} is not in {1} any more. Choose where it is now, or another model.")
            return words.format(file, cause.name("folder"))
        case "file_broken":
            words = translate(
                "causes", "{0} is damaged, incomplete or no model file. Download it again, or choose another file."
            )
            return words.format(file)
        case _:
            words = translate("causes", "{0} has a tokenizer of a kind that this version does not know: {1}.")
            return words.format(file, cause.name("tokenizer"))


def _unsupported_words(cause: Cause) -> str:
    file = cause.name("file")
    match cause.code:
        case "architecture_unknown":
            words = translate("causes", "{0} is of the architecture {1}, which this version does not run.")
            return words.format(file, cause.name("architecture"))
        case "experts_unsupported":
            return translate("causes", "{0} is a mixture of experts, which this version does not run.").format(file)
        case "draft_unsupported":
            return translate("causes", "{0} is a draft of a kind that this version does not run.").format(file)
        case _:
            words = translate("causes", "{0} is a model that this version or device cannot run. Choose another one.")
            return words.format(file)


def _role_words(cause: Cause) -> str:
    file = cause.name("file")
    match cause.code:
        case "wrong_role" if cause.name("wanted") == "draft":
            words = translate("causes", "{0} is no DFlash draft. Choose the draft made for this model, or none.")
            return words.format(file)
        case "wrong_role" if cause.name("role") == "draft":
            words = translate("causes", "{0} is a DFlash draft, not a model to chat with. Open it with its target.")
            return words.format(file)
        case "wrong_role":
            return translate("causes", "{0} is not a model to chat with.").format(file)
        case _:
            words = translate(
                "causes", "{0} is not a draft for {1}. Choose the draft that was made for this model, or load it alone."
            )
            return words.format(cause.name("draft"), cause.name("target"))


def _memory_words(cause: Cause) -> str:
    device = cause.name("device")
    needed, free = numbers.memory(cause.number("needed_bytes")), numbers.memory(cause.number("free_bytes"))
    context = numbers.tokens(cause.number("context_tokens"))
    match cause.code:
        case "context_too_large" if cause.number("max_context_tokens"):
            words = translate(
                "causes",
                "With a context of {0} this model needs {1}; {2} has {3} free. The largest context that fits: {4}.",
            )
            return words.format(context, needed, device, free, numbers.tokens(cause.number("max_context_tokens")))
        case "context_too_large":
            words = translate(
                "causes",
                "With a context of {0} this model needs {1}; {2} has {3} free. No context fits: choose a smaller model "
                "or another device, or close what uses the memory.",
            )
            return words.format(context, needed, device, free)
        case "draft_too_large":
            words = translate(
                "causes",
                "With a context of {0} the draft needs {1}; {2} has {3} free. Choose a smaller context, or another "
                "device for the draft.",
            )
            return words.format(context, needed, device, free)
        case "out_of_memory" if cause.number("needed_bytes") > cause.number("free_bytes") > 0:
            words = translate(
                "causes",
                "{0} needs {1}; {2} has {3} free. Choose a smaller context or model, or close what uses the memory.",
            )
            return words.format(_part_words(cause.name("part")), needed, device, free)
        case "out_of_memory" if cause.number("needed_bytes") and device:
            # Enough is free, in pieces; or something else sets a limit.
            words = translate(
                "causes",
                "{0} needs {1} in one piece, which {2} does not have. Choose a smaller context or model, or close what "
                "uses the memory.",
            )
            return words.format(_part_words(cause.name("part")), needed, device)
        case "out_of_memory" if device:
            words = translate(
                "causes", "The memory of {0} is not enough. Choose a smaller context or model, or close what uses it."
            )
            return words.format(device)
        case _:
            return translate("causes", "The computer has no memory left for this. Close what uses it, and try again.")


def _part_words(part: str) -> str:
    """What there was no memory for, as the start of a sentence."""
    match part:
        case "weights":
            return translate("causes", "The model")
        case "kv_cache":
            return translate("causes", "The KV cache")
        case "compute":
            return translate("causes", "The computation")
        case "draft":
            return translate("causes", "The draft")
        case "scorer":
            return translate("causes", "The scorer")
        case _:
            return translate("causes", "This")


def _device_words(cause: Cause) -> str:
    match cause.code:
        case "device_missing":
            words = translate("causes", "There is no device {0}. Present: {1}.")
            return words.format(cause.name("device"), cause.name("present"))
        case "no_device":
            return translate("causes", "The engine finds no device to compute on. Install the program again.")
        case "device_failed" if cause.name("device"):
            words = translate(
                "causes", "The device {0} failed. Load the model again; if it stays so, update its driver."
            )
            return words.format(cause.name("device"))
        case "device_failed":
            return translate("causes", "The device failed. Load the model again; if it stays so, update its driver.")
        case _:
            return translate(
                "causes", "The engine's library is missing or of another version. Install the program again."
            )


def _prompt_words(cause: Cause) -> str:
    n_prompt, n_context = cause.number("prompt_tokens"), cause.number("context_tokens")
    if cause.number("is_least"):
        words = translate(
            "causes",
            "The message has at least {0}, but the context holds {1}, and the answer needs room too. Shorten it by at "
            "least {2}, or load the model with a larger context.",
        )
    else:
        words = translate(
            "causes",
            "The message with all before it has {0}, but the context holds {1}, and the answer needs room too. Shorten "
            "it by at least {2}, or load the model with a larger context.",
        )
    return words.format(numbers.tokens(n_prompt), numbers.count(n_context), numbers.tokens(n_prompt - n_context + 1))


def _disk_words(cause: Cause) -> str:
    needed, free = cause.number("needed_bytes"), cause.number("free_bytes")
    if needed:
        words = translate("causes", "The disk with {0} is too full: {1} are needed, {2} are free.")
        return words.format(cause.name("folder"), numbers.size(needed), numbers.size(free))
    return translate("causes", "The disk with {0} is full. Make room; then it goes on.").format(cause.name("folder"))


def _state_words(cause: Cause) -> str:
    """About a file of the program's own."""
    file = cause.name("file")
    match cause.code:
        case "state_broken" if cause.name("aside"):
            words = translate("causes", "{0} was damaged. It is kept as {1}; defaults count in its place.")
            return words.format(file, cause.name("aside"))
        case "state_broken":
            return translate("causes", "{0} is damaged and cannot be moved aside. Defaults count in its place.").format(
                file
            )
        case "state_unreadable":
            return translate(
                "causes", "{0} cannot be read. Check who may read it; defaults count in its place."
            ).format(file)
        case _:
            return translate(
                "causes", "{0} cannot be written: {1}. What you set counts until the program ends."
            ).format(file, cause.name("reason"))
