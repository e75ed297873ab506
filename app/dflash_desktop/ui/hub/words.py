"""What the hub room says in kinds and numbers, in the words of the window."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from dflash_desktop.hub.catalogue import Note
from dflash_desktop.hub.download_status import DownloadStatus
from dflash_desktop.hub.fit import Fit
from dflash_desktop.hub.places import PlaceKind
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate
SPEED_SILENCE_S = 3.0
"""After so long without a byte the row says so instead of a speed."""


def problem_words(problem: HubProblem) -> str:
    """What happened, why, and what to do."""
    where, detail = problem.where, problem.detail
    match problem.kind:
        case "offline":
            return translate(
                "hub", "There is no network connection to {0}. Everything on this machine works as before."
            ).format(where)
        case "unreachable":
            return translate(
                "hub", "{0} cannot be reached ({1}). If that stays so, use a mirror or a proxy: Network…"
            ).format(where, detail)
        case "stalled":
            return translate("hub", "{0} stopped sending.").format(where)
        case "tls":
            return translate(
                "hub",
                "The certificate of {0} is not trusted. A security program may sit in between: "
                "add its certificate to the system's store.",
            ).format(where)
        case "proxy":
            return translate(
                "hub", "The proxy does not let us through to {0} ({1}). Check its address: Network…"
            ).format(where, detail)
        case "not_a_hub":
            return translate(
                "hub", "Something else answers in place of {0}: a network's sign-in page, or a mirror that is none."
            ).format(where)
        case "token_needed":
            return translate(
                "hub",
                "{0} is only given to people who are signed in. Accept its terms on its page, "
                "and enter an access token: Network…",
            ).format(where)
        case "token_refused":
            return translate("hub", "The access token was refused. Enter a valid one: Network…")
        case "terms":
            return translate(
                "hub",
                "Your access token is fine, but its owner has not accepted the terms of {0} yet. Do so on its page.",
            ).format(where)
        case "not_found":
            return translate("hub", "The hub has no {0} in {1} any more. Look for it with the search.").format(
                detail, where
            )
        case "rate_limited":
            return translate("hub", "{0} has had too many requests and asks us to wait.").format(where)
        case "server_error":
            return translate("hub", "{0} has a fault of its own ({1}).").format(where, detail)
        case "changed":
            return translate(
                "hub",
                "{0} is another file on the hub now than when you asked for it. "
                "Remove this download and start it again.",
            ).format(where)
        case "corrupt":
            return translate(
                "hub", "{0} arrived twice, and both times it was not what the hub announced. It was not kept."
            ).format(where)
        case "disk_full":
            return translate(
                "hub", "The disk is too full: {0} are needed, {1} are free. It goes on when there is room."
            ).format(numbers.size(problem.needed_bytes), numbers.size(problem.free_bytes))
        case "file_too_large":
            return translate(
                "hub", "The disk with {0} cannot hold a file of this size. Choose a models folder on another one."
            ).format(where)
        case "folder_missing":
            return translate(
                "hub", "The folder {0} is not there. If it is on a drive, connect it: nothing is lost."
            ).format(where)
        case "folder_read_only":
            return translate(
                "hub", "Nothing may be written to {0}. Choose another models folder, or change its rights."
            ).format(where)
        case "busy":
            return translate("hub", "Another program is fetching the same file. This one waits for it.")
        case "bad_name":
            return translate("hub", "{0} has a name that cannot be used on this system.").format(where)
        case _:
            return translate("hub", "It failed ({0}). Details are in the log file.").format(detail or where)


def state_words(row: DownloadStatus) -> str:
    """One line under the bar of a download."""
    match row.state:
        case "queued":
            return translate("hub", "Waits for its turn")
        case "connecting":
            return translate("hub", "Connecting")
        case "checking":
            if row.n_done_bytes >= row.n_total_bytes:
                return translate("hub", "Checking what arrived, {0}").format(
                    _share(row.checked_bytes, row.check_total_bytes)
                )
            return translate("hub", "Reading what is here already, {0}").format(
                _share(row.checked_bytes, row.check_total_bytes)
            )
        case "waiting":
            return _waiting_words(row)
        case "paused":
            return translate("hub", "Paused at {0}").format(_share(row.n_done_bytes, row.n_total_bytes))
        case "done":
            return translate("hub", "Ready: size and hash are right")
        case "failed":
            return problem_words(row.problem) if row.problem is not None else translate("hub", "It failed.")
        case _:
            return _loading_words(row)


def fit_words(fit: Fit) -> str:
    """fits, tight or doesn't fit; with what is behind it."""
    needed, free = numbers.memory(fit.needed_bytes), numbers.memory(fit.free_bytes)
    match fit.verdict:
        case "fits":
            words = translate("hub", "Fits: {0} of {1} free, {2} context")
        case "tight":
            words = translate("hub", "Tight: {0} of {1} free, {2} context")
        case "too_large":
            words = translate("hub", "Doesn't fit: needs {0}, {1} are free")
        case _:
            return translate("hub", "Memory of the device is not known")
    return words.format(needed, free, numbers.count(fit.context_tokens))


def fit_badge(fit: Fit) -> tuple[str, str]:
    """The verdict in one or two words, and its tone."""
    match fit.verdict:
        case "fits":
            return translate("hub", "fits"), "good"
        case "tight":
            return translate("hub", "tight"), "flash"
        case "too_large":
            return translate("hub", "doesn't fit"), "bad"
        case _:
            return translate("hub", "not known"), "muted"


def fit_source(fit: Fit) -> str:
    return translate("hub", "estimated") if fit.is_estimate else translate("hub", "planned by the engine")


def speed_words(expected_tps: float | None) -> str:
    """Empty where nothing is known of the device."""
    if expected_tps is None:
        return ""
    return translate("hub", "about {0} tok/s (estimated)").format(numbers.count(max(1, round(expected_tps))))


def note_words(note: Note) -> str:
    match note:
        case "thinking_slows_draft":
            return translate("hub", "With thinking on, the draft guesses less well: answers are the same, and slower.")
        case "no_thinking":
            return translate("hub", "Its draft was made for answers without thinking.")
        case "q4_draft_loses":
            return translate(
                "hub", "Take the Q8_0 draft where memory allows: the Q4 one guesses much worse on this model."
            )


def place_words(kind: PlaceKind) -> str:
    """Where a file lies, in a word or two."""
    return {
        "built_in": translate("hub", "comes with the app"),
        "ours": translate("hub", "downloaded"),
        "hf_cache": translate("hub", "Hugging Face cache"),
        "lm_studio": "LM Studio",
        "ollama": "Ollama",
        "folder": translate("hub", "your folder"),
    }[kind]


def _loading_words(row: DownloadStatus) -> str:
    done = translate("hub", "{0} of {1}").format(numbers.size(row.n_done_bytes), numbers.size(row.n_total_bytes))
    if row.silence_s > SPEED_SILENCE_S:
        return translate("hub", "{0}  ·  no data for {1} s").format(done, numbers.count(int(row.silence_s)))
    if not row.bytes_per_s:
        return done
    speed = translate("hub", "{0}/s").format(numbers.size(int(row.bytes_per_s)))
    left = numbers.remaining((row.n_total_bytes - row.n_done_bytes) / row.bytes_per_s)
    return translate("hub", "{0}  ·  {1}  ·  {2}").format(done, speed, left)


def _waiting_words(row: DownloadStatus) -> str:
    if row.problem is None:
        return translate("hub", "Waiting")
    seconds = numbers.count(max(1, round(row.retry_in_s or 0)))
    if row.problem.kind == "stalled":
        return translate("hub", "Stalled, retrying in {0} s").format(seconds)
    if row.problem.kind in ("disk_full", "folder_missing", "busy"):
        return problem_words(row.problem)
    return translate("hub", "{0} Retrying in {1} s.").format(problem_words(row.problem), seconds)


def _share(part: int, whole: int) -> str:
    return numbers.percent(part / whole) if whole else numbers.percent(1)
