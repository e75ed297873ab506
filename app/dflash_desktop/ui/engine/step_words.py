"""One step in words: what was drafted and accepted, why it had that size, where its time went."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine.events import StepDone
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate


def step_title(step: StepDone) -> str:
    """'step 12: 3 of 7 accepted'."""
    if step.tree is None:
        return translate("step", "step {0}: no nodes").format(numbers.count(step.step_index + 1))
    return translate("step", "step {0}: {1} of {2} accepted").format(
        numbers.count(step.step_index + 1), numbers.count(step.n_accepted), numbers.count(step.n_drafted)
    )


def step_reason(step: StepDone) -> str:
    """Why the tuner chose this size, and what it expected of it."""
    match step.reason:
        case "no_draft":
            return translate("step", "No draft is loaded: one token per step.")
        case "off":
            return translate("step", "The draft is switched off: one token per step.")
        case "fixed":
            return translate("step", "The size was set by you.")
        case "plain_faster":
            return translate("step", "Plain decoding: measured to be faster here.")
        case "probe":
            return translate("step", "A probe: does drafting pay again?")
        case "measure":
            return translate("step", "A measurement: how long does a step take here?")
        case "no_room":
            return translate("step", "The context or the token limit leaves no room for more.")
        case "best":
            return _best_words(step)


def _best_words(step: StepDone) -> str:
    if step.expected_committed > 0 and step.expected_us > 0:
        return translate("step", "Most tokens per second expected: {0} in {1}; it became {2} in {3}.").format(
            numbers.decimal(step.expected_committed, 1),
            numbers.seconds(step.expected_us / 1e6),
            numbers.count(step.n_committed),
            numbers.seconds(_all_us(step) / 1e6),
        )
    if step.expected_committed > 0:
        return translate("step", "Most tokens per second expected: {0}; it became {1}.").format(
            numbers.decimal(step.expected_committed, 1), numbers.count(step.n_committed)
        )
    return translate("step", "The size with the most expected tokens per second.")


def step_times(step: StepDone) -> str:
    """'draft 0.9 ms, verify 5.2 ms, commit 0.1 ms, rest 0.1 ms'."""
    return translate("step", "Draft {0}, verify {1}, commit {2}, rest {3}.").format(
        *(numbers.seconds(us / 1e6) for us in (step.draft_us, step.verify_us, step.commit_us, step.host_us))
    )


def _all_us(step: StepDone) -> int:
    return step.draft_us + step.verify_us + step.commit_us + step.host_us
