"""The frozen program's first file."""

import multiprocessing
import os


def restore_environment() -> None:
    """Let programs that we start (a file manager, a browser) use their own libraries, not ours.

    PyInstaller's starter points the linker at our folder, which this process has read by now, and keeps what was there
    before under another name.
    """
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if before:
        os.environ["LD_LIBRARY_PATH"] = before
    else:
        os.environ.pop("LD_LIBRARY_PATH", None)


if __name__ == "__main__":
    multiprocessing.freeze_support()  # a library that starts a helper process would open a second window otherwise
    restore_environment()
    from dflash_desktop.cli import run

    run()
