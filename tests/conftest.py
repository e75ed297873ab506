"""What holds for every test: no real home, no display needed, no thread left behind."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from support.patience import LONG_S

# Windows of workers side by side would take the keyboard from each other.
if "PYTEST_XDIST_WORKER" in os.environ or (
    sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


_REAL_ENVIRONMENT = dict(os.environ)

# The same examples in every run, however long each takes: a run fails for what was changed. To look for other examples:
# pytest --hypothesis-profile=search
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True, database=None)
settings.load_profile("same")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads its options
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Spread the whole default run over workers, file by file; a room or a file begins sooner without any.

    Other markers do without, too: tests of a GPU or of other programs want it to themselves. Each worker takes up to
    two gigabytes and collects everything by itself, so more than four gain little.
    """
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    option, tests = config.option, Path(__file__).parent
    is_whole = {Path(argument).resolve() for argument in config.args} <= {tests, tests.parent}
    is_default = option.markexpr in config.getini("addopts") and not option.usepdb
    if option.numprocesses is None and is_whole and is_default:
        option.numprocesses = min(4, psutil.cpu_count() or 1)
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
        option.loadscopereorder = False  # the many short files of ui/ come last and let all workers end together


@pytest.fixture(scope="session")
def real_environment() -> dict[str, str]:
    """The environment before it was changed: for builds, which use the person's compiler and download caches."""
    return dict(_REAL_ENVIRONMENT)


@pytest.fixture(scope="session", autouse=True)
def home_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of the test run's own: neither tests nor the programs they start see the person's files."""
    home = tmp_path_factory.mktemp("home")
    own = {
        "HOME": home,
        "XDG_DATA_HOME": home / "data",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_STATE_HOME": home / "state",
        "LOCALAPPDATA": home / "local",
        "APPDATA": home / "roaming",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in own.items():
            patch.setenv(name, str(folder))
        yield home


@pytest.fixture(scope="module", autouse=True)
def nobody_looks_through_what_stays() -> None:
    """Keep modules and collected tests out of the garbage collector's way, half a million objects that live to the end.

    Looking through them takes it a third of a second, and each window that is taken down asks for that. run_window lets
    go of everything; hence once per file.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_thread_outlives_its_test() -> Iterator[None]:
    """Fail a test whose threads still run after it. Threads that were there before are not its own."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + LONG_S / 5
    for thread in set(threading.enumerate()) - before:
        # Dummy threads stand for native ones that only passed through Python; nobody can join them.
        if not isinstance(thread, threading._DummyThread):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"the thread {thread.name!r} outlives its test"
