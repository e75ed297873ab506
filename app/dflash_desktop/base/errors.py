"""The two kinds of failure: AppError, where the world said no, and everything else, which is a bug."""

from __future__ import annotations

from dflash_desktop.base.causes import Cause


class AppError(Exception):
    """Something that can be expected went wrong. The text is for the person: what happened, why, what to do."""

    def __init__(self, message: str = "", *, cause: Cause | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class BadInput(AppError):
    """What was asked for makes no sense as it stands; asking differently helps. The command line exits with 2."""
