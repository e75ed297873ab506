"""The conversation that shows: what the person does with it. Replies are made in replies.py."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.chats.records import Attachment, ChatRecord, new_id
from dflash_desktop.engine.events import GenerationDone, JobFailed
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.chats.messages import Message, ReplyState, message_from, sent_text
from dflash_desktop.ui.chats.prompting import Asked
from dflash_desktop.ui.chats.replies import FIRST_SENT, Replies
from dflash_desktop.ui.chats.reply_run import Purpose, ReplyRun
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.chats.talk import Talk
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit.cause_words import told

BYTES_PER_TOKEN = 3
"""A guess, for messages that nobody has counted."""


@dataclass(frozen=True, slots=True)
class ShorteningDecision:
    """What the person chose after looking at what would be left out of a message."""

    keep: float | None = None  # the share of it; 1: all; None: as PFlash is set
    rated_s: float = 0.0  # what looking has taken


UNDECIDED = ShorteningDecision()


@dataclass(frozen=True, slots=True)
class Unsent:
    """A message that was not accepted: it goes back to whoever wrote it."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()


class Chat(QObject):
    """Lives in the GUI thread. A reply goes on when another chat is opened."""

    busy_changed = Signal()
    refused = Signal(object, object)  # Unsent, the engine's sentence
    failed = Signal(object)  # JobFailed
    talk_changed = Signal()  # another conversation shows
    replied = Signal(object)  # GenerationDone, of the conversation that shows
    context_exceeded = Signal()  # the prompt of the conversation that shows does not fit any more

    def __init__(self, bridge: EngineBridge, pair_state: PairState, keeper: ChatKeeper | None = None) -> None:
        super().__init__()
        self.bridge = bridge
        self._pair_state = pair_state
        self.keeper = keeper or ChatKeeper(None)
        self._left: Talk | None = None  # without a store: the conversation before the new one
        self.talk = Talk()
        self.items = ChatItemModel(self)
        self.settings = ReplySettings()
        self.replies = Replies(bridge, pair_state, self.keeper, self.items)
        self.replies.changed.connect(self.busy_changed)
        self.replies.refused.connect(self.on_reply_refused)
        self.replies.failed.connect(self.failed)
        self.replies.finished.connect(self.on_reply_finished)
        self.keeper.talk_opened.connect(self.on_talk_opened)

    # ---- state

    @property
    def is_busy(self) -> bool:
        """Whether a reply is being made in the conversation that shows."""
        return self.replies.of(self.talk.chat_id) is not None

    def can_send(self) -> bool:
        """Whether a message can be taken now: something is loaded or loading, and no reply is running here."""
        return not self.is_busy and self._pair_state.phase in (Phase.LOADED, Phase.LOADING)

    # ---- messages

    def asked_with(
        self, text: str, attachments: Sequence[Attachment], instead: Message | None, keep: float | None
    ) -> Asked:
        """What the engine would be asked if this were sent now, in place of `instead` if there is one.

        `keep`: the share of it that would be sent; None: as PFlash is set.
        """
        before = self.talk.before(instead) if instead is not None and self.talk.has(instead) else self.talk.path()
        question = Message("user", text, attachments=tuple(attachments), keep=keep)
        messages = [*self.replies.sent_part(self.talk, before), question]
        return self.replies.asked_for(messages, self.settings.system_prompt)

    def send(self, text: str, attachments: Sequence[Attachment] = (), decision: ShorteningDecision = UNDECIDED) -> bool:
        """Take a message, or return False and leave it with the caller."""
        if not (text.strip() or attachments) or not self.can_send():
            return False
        path = self.talk.path()
        question = self.talk.add_question(text, tuple(attachments), path[-1] if path else None)
        self._ask(question, "send", decision)
        return True

    def edit(
        self,
        message: Message,
        text: str,
        attachments: Sequence[Attachment] = (),
        decision: ShorteningDecision = UNDECIDED,
    ) -> bool:
        """Say something else instead of `message`: a new branch, the old one stays."""
        if not (text.strip() or attachments) or not self.can_send() or not self.talk.has(message):
            return False
        before = self.talk.before(message)
        question = self.talk.add_question(text, tuple(attachments), before[-1] if before else None)
        self._ask(question, "edit", decision)
        return True

    def regenerate(self, message: Message | None = None) -> None:
        """Ask for another version of a reply, of the last one by default."""
        if message is None and self.items.rowCount():
            message = self.items.message(self.items.rowCount() - 1)
        if message is None or message.role != "assistant" or not self.can_send() or not self.talk.has(message):
            return
        before = self.talk.before(message)
        if before:
            self._ask(before[-1], "again")

    def continue_reply(self, message: Message) -> None:
        """Let the model go on with a reply that ended before its end."""
        if self.can_send() and self.talk.has(message) and message.can_continue:
            message.error, message.facts, message.is_looping = "", None, False
            self.replies.start(ReplyRun(self.talk, message, "continue", self.settings, prefix=message.text))
            self.keeper.save(self.talk, [message])

    def delete(self, message: Message) -> list[Message]:
        """Take out a message with all that follows it; return them for `undelete`."""
        if not self.talk.has(message):
            return []
        self.stop()
        removed = self.talk.remove(message)
        self.keeper.delete_messages(removed)
        self._follow_path()
        return removed

    def undelete(self, talk: Talk, messages: Sequence[Message]) -> None:
        """Put back what `delete` has removed from that conversation."""
        for message in messages:
            talk.put(message)
        self.keeper.save(talk, messages)
        if talk is self.talk:
            self._follow_path()

    def show_version(self, message: Message, step: int) -> None:
        """Let the next (1) or previous (-1) version of a message show, with what follows it."""
        if not self.talk.has(message):
            return
        versions = self.talk.versions(message)
        wanted = versions.index(message) + step
        if 0 <= wanted < len(versions):
            self.talk.show(versions[wanted])
            self.keeper.show_message(versions[wanted])
            self._follow_path()

    def stop(self) -> None:
        """End the reply that shows now: what has come is kept, what still comes is not shown."""
        run = self.replies.of(self.talk.chat_id)
        if run is not None:
            self.replies.stop(run)

    def newest(self, context_tokens: int, known: Mapping[tuple[int, int], int]) -> tuple[int, int]:
        """Where the newest messages begin, about half a context of them, and how many tokens they are.

        `known`: tokens by message and its length, where they were counted; the others are guessed.
        """
        path = self.talk.path()
        counts = [
            known.get((one.message_id, len(one.text)), len(sent_text(one).encode(errors="replace")) // BYTES_PER_TOKEN)
            for one in path
        ]
        first = len(path)
        while first > 0 and (first == len(path) or sum(counts[first - 1 :]) <= context_tokens // 2):
            first -= 1
        while first < len(path) - 1 and path[first].role != "user":  # an answer without its question confuses
            first += 1
        return first, sum(counts[first:])

    def leave_out_oldest(self, context_tokens: int, known: Mapping[tuple[int, int], int]) -> int:
        """Let the model read only the newest messages from here on. Returns how many that leaves out; they stay in the
        chat."""
        path = self.talk.path()
        first, _ = self.newest(context_tokens, known)
        if first == 0:
            return 0
        self.talk.use_settings({**self.talk.record.settings, FIRST_SENT: path[first].message_id})
        self.keeper.save(self.talk)
        return first

    def _ask(self, question: Message, purpose: Purpose, decision: ShorteningDecision = UNDECIDED) -> None:
        if purpose != "again":
            question.keep = decision.keep
        reply = self.talk.add_reply(question)
        self.talk.use_settings({**self.talk.record.settings, **asdict(self.settings)})
        self.talk.name_it()
        self._follow_path()
        run = ReplyRun(self.talk, reply, purpose, self.settings, question, rated_s=decision.rated_s)
        self.replies.start(run)
        self.keeper.save(self.talk, [reply] if purpose == "again" else [question, reply])
        self.keeper.keep_open_chat(self.talk.chat_id)

    def _follow_path(self) -> None:
        self.items.follow_path(self.talk.path())
        self.busy_changed.emit()

    # ---- chats

    def clear(self) -> None:
        """Begin a new chat. The old one is among the chats; without a store, `undo_clear` brings it back."""
        self._left = self.talk if len(self.talk) else None
        if not self.keeper.has_store:
            self.stop()
        self._show(Talk())

    def undo_clear(self) -> None:
        if self.items.rowCount() == 0 and self._left is not None:
            self._show(self._left)
        self._left = None

    def branch_off(self, message: Message) -> None:
        """Begin a new chat with what leads to `message`, and `message` itself; this one stays as it is."""
        if not self.talk.has(message):
            return
        new = Talk()
        parent: Message | None = None
        for one in [*self.talk.before(message), message]:
            copy = message_from(replace(one.record(), message_id=new_id()))
            copy.parent_id = parent.message_id if parent is not None else None
            new.put(copy)
            parent = copy
        title = (self.keeper.record(self.talk.chat_id) or self.talk.record).title
        new.record = replace(new.record, title=title, settings=dict(self.talk.record.settings))
        self.keeper.save(new, new.messages())
        self._show(new)

    def open(self, chat_id: int) -> None:
        """Show that chat, as soon as it has been read."""
        if chat_id == self.talk.chat_id:
            return
        running = self.replies.talk(chat_id)
        if running is not None:
            self._show(running)
        else:
            self.keeper.open(chat_id)

    def delete_chat(self, chat_id: int) -> ChatRecord | None:
        """Take a chat out of the list; its reply ends, and it does not show any more."""
        run = self.replies.of(chat_id)
        if run is not None:
            self.replies.stop(run)
        record = self.keeper.delete(chat_id)
        if self.talk.chat_id == chat_id:
            self._show(Talk())
        return record

    @Slot(object)
    def on_talk_opened(self, talk: Talk) -> None:
        if self.replies.talk(talk.chat_id) is None and talk.chat_id != self.talk.chat_id:
            self._show(talk)

    def _show(self, talk: Talk) -> None:
        self.talk = talk
        self.items.reset_to(talk.path())
        self.keeper.keep_open_chat(talk.chat_id if len(talk) else None)
        self.talk_changed.emit()
        self.busy_changed.emit()

    # ---- replies

    @Slot(object, object)
    def on_reply_refused(self, run: ReplyRun, failure: JobFailed | None) -> None:
        """The question was not accepted: it leaves the chat and goes back to whoever wrote it."""
        why = (
            told(failure.cause, failure.message)
            if failure
            else self.tr("The model was not loaded, so the message was not sent.")
        )
        unsent = Unsent()
        if run.purpose == "continue":
            self.items.finish(run.message, ReplyState.STOPPED, None)
            self.keeper.save(run.talk, [run.message])
        else:
            gone = run.message
            if run.question is not None and run.purpose != "again":
                gone = run.question
                unsent = Unsent(gone.text, gone.attachments)
            if run.talk.has(gone):
                self.keeper.delete_messages(run.talk.remove(gone))
            if len(run.talk) == 0:
                self.keeper.delete(run.talk.chat_id)
                run.talk.record = ChatRecord(new_id(), created_s=time.time(), changed_s=time.time())
            if run.talk is self.talk:
                self._follow_path()
        self.refused.emit(unsent, why)
        if failure is not None and failure.kind == "context_exceeded" and run.talk is self.talk:
            self.context_exceeded.emit()

    @Slot(object, object)
    def on_reply_finished(self, run: ReplyRun, done: GenerationDone) -> None:
        if run.talk is self.talk:
            self.replied.emit(done)
