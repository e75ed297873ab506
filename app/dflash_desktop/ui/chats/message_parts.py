"""What stands above and below a message's text: attachments, folded thoughts, status, error, buttons, facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from dflash_desktop.chats.records import Attachment
from dflash_desktop.ui.chats.messages import UNFINISHED, Message, ReplyState
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme

BUBBLE_X, BUBBLE_TOP, BUBBLE_BOTTOM = 16.0, 12.0, 8.0  # lines are higher than their text: it looks centred so
FOOT_GAP = 10.0
BUTTON = 28.0
CHIP_HEIGHT, CHIP_GAP, CHIP_ICON = 28.0, 6.0, 24.0
THOUGHTS_HEIGHT = 34.0
CAPTION_HEIGHT = 24.0
COUNT_WIDTH = 40.0
NOTE_ICON, NOTE_INDENT = 16.0, 24.0
PREVIEW_CHARS = 40

Action = Literal[
    "copy", "copy_code", "again", "edit", "continue", "previous", "next", "thoughts", "attachment", "facts"
]
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class HotSpot:
    """Something to click, in the message's own coordinates."""

    rect: QRectF
    action: Action
    index: int = -1  # of the block or attachment


def attachment_words(attachment: Attachment) -> str:
    """An attachment by its name, or a paste by how it begins, and its size."""
    name = attachment.name or " ".join(attachment.text[: 4 * PREVIEW_CHARS].split())[:PREVIEW_CHARS]
    return translate("facts", "{0}  ·  {1}").format(name, numbers.size(attachment.n_bytes))


class MessageParts:
    """Sizes only; the painter paints them."""

    def __init__(self, theme: Theme, message: Message) -> None:
        self._theme = theme
        self.message = message
        self.is_unfolded = False

    # ---- above the text

    @property
    def has_thoughts(self) -> bool:
        return bool(self.message.reasoning) or self.message.is_thinking

    def caption(self) -> str:
        """Who speaks, where it is neither the person nor the model."""
        return {"system": translate("facts", "System"), "tool": translate("facts", "Tool result")}.get(
            self.message.role, ""
        )

    def head_height(self) -> float:
        if self.message.role == "user":
            return len(self.message.attachments) * (CHIP_HEIGHT + CHIP_GAP)
        return (CAPTION_HEIGHT if self.caption() else 0.0) + (THOUGHTS_HEIGHT if self.has_thoughts else 0.0)

    def attachments_width(self) -> float:
        metrics = QFontMetricsF(self._theme.font("caption"))
        words = [metrics.horizontalAdvance(attachment_words(one)) for one in self.message.attachments]
        return max(words, default=0.0) + (CHIP_ICON + 24 if words else 0.0)

    # ---- below it

    @property
    def has_foot(self) -> bool:
        return self.message.is_reply and self.message.state not in UNFINISHED

    @property
    def has_versions(self) -> bool:
        return self.message.place[1] > 1

    def estimated_foot(self) -> float:
        if self.message.role == "user":
            return BUTTON if self.has_versions else 0.0
        return FOOT_GAP + BUTTON

    def foot_height(self, width: float, *, has_content: bool) -> float:
        if not self.message.is_reply:
            return BUTTON if self.has_versions else 0.0
        height = 0.0
        gap = FOOT_GAP if has_content else 0.0
        if self.message.status_words():
            height += gap + self.status_height()
        if self.message.note_words():
            height += gap + self.note_height(width)
        if self.message.error:
            height += gap + self.error_height(width)
        if self.has_foot:
            height += FOOT_GAP + max(BUTTON, self.facts_height(width))
        return height

    def status_height(self) -> float:
        bar = 14.0 if self.message.state is ReplyState.READING else 0.0
        return QFontMetricsF(self._theme.font("body")).height() + bar + 4

    def note_height(self, width: float) -> float:
        return max(NOTE_ICON, self._text_height("body", self.message.note_words(), width - NOTE_INDENT))

    def error_height(self, width: float) -> float:
        return self._text_height("body", self.message.error, width - 56) + 24

    def buttons(self) -> list[Action]:
        """What can be done with a finished reply, in the order of the buttons."""
        found: list[Action] = ["copy"]
        if self.message.role == "assistant":
            found.append("again")
        if self.message.can_continue:
            found.append("continue")
        return found

    def facts_x(self) -> float:
        versions = 2 * BUTTON + COUNT_WIDTH if self.has_versions else 0.0
        return len(self.buttons()) * BUTTON + versions + 10

    def facts_height(self, width: float) -> float:
        facts = self.message.facts
        return self._text_height("caption", facts.line(), width - self.facts_x()) if facts else 0.0

    def _text_height(self, role: Literal["caption", "body"], text: str, width: float) -> float:
        metrics = QFontMetricsF(self._theme.figure_font(role))
        flags = int(Qt.TextFlag.TextWordWrap.value)
        return metrics.boundingRect(QRectF(0, 0, max(40.0, width), 1e6), flags, text).height()

    # ---- what can be clicked

    def spots(self, *, width: float, content_x: float, content_height: float, height: float) -> list[HotSpot]:
        """Everything to click but what belongs to a block."""
        if self.message.role == "user":
            return self._user_spots(width, content_x, content_height)
        spots = []
        if self.has_thoughts:
            top = CAPTION_HEIGHT if self.caption() else 0.0
            spots.append(HotSpot(QRectF(-6, top, 300, THOUGHTS_HEIGHT - 4), "thoughts"))
        if self.has_foot:
            y = height - max(BUTTON, self.facts_height(width))
            for place, action in enumerate(self.buttons()):
                spots.append(HotSpot(QRectF(place * BUTTON - 6, y, BUTTON, BUTTON), action))
            if self.has_versions:
                spots += self._version_spots(len(self.buttons()) * BUTTON - 6, y)
            if self.message.facts is not None:
                x = self.facts_x()
                spots.append(HotSpot(QRectF(x, y, width - x, height - y), "facts"))
        return spots

    def _user_spots(self, width: float, content_x: float, content_height: float) -> list[HotSpot]:
        x = content_x - BUBBLE_X - BUTTON - 6
        spots = [
            HotSpot(QRectF(x, 6, BUTTON, BUTTON), "copy"),
            HotSpot(QRectF(x - BUTTON, 6, BUTTON, BUTTON), "edit"),
        ]
        for place in range(len(self.message.attachments)):
            y = BUBBLE_TOP + place * (CHIP_HEIGHT + CHIP_GAP)
            spots.append(HotSpot(QRectF(content_x, y, width - BUBBLE_X - content_x, CHIP_HEIGHT), "attachment", place))
        if self.has_versions:
            spots += self._version_spots(width - 2 * BUTTON - COUNT_WIDTH, content_height)
        return spots

    def _version_spots(self, x: float, y: float) -> list[HotSpot]:
        version, n_versions = self.message.place
        spots = []
        if version > 1:
            spots.append(HotSpot(QRectF(x, y, BUTTON, BUTTON), "previous"))
        if version < n_versions:
            spots.append(HotSpot(QRectF(x + BUTTON + COUNT_WIDTH, y, BUTTON, BUTTON), "next"))
        return spots

    def count_rect(self, *, width: float, content_height: float, height: float) -> QRectF:
        """Where "2/3" stands."""
        if self.message.role == "user":
            return QRectF(width - BUTTON - COUNT_WIDTH, content_height, COUNT_WIDTH, BUTTON)
        y = height - max(BUTTON, self.facts_height(width))
        return QRectF((len(self.buttons()) + 1) * BUTTON - 6, y, COUNT_WIDTH, BUTTON)
