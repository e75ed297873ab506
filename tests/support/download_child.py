"""A program of its own that downloads, to be killed: `python download_child.py URL MODELS STATE REPO NAME SIZE SHA`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from dflash_desktop.hub.download_status import DownloadDone
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, TimeLimits
from dflash_desktop.hub.transfer import Pace
from dflash_desktop.hub.wanted import WantedDownload, WantedFile

BLOCK = 32 * 1024


def main() -> None:
    url, models, state, repo_id, name, n_bytes, sha256 = sys.argv[1:]
    network = Network(official=url, limits=TimeLimits(connect_s=60, silence_s=3600))
    pace = Pace(block_bytes=BLOCK, retry_s=(0.01, 0.05), watch_disk_s=0.02, reserve_bytes=0)
    downloads = Downloads(Path(state), network, ModelsFolder(Path(models)), pace=pace)
    done = threading.Event()
    downloads.subscribe(lambda event: done.set() if isinstance(event, DownloadDone) else None)
    downloads.start()
    file = WantedFile(repo_id=repo_id, revision="main", name=name, n_bytes=int(n_bytes), sha256=sha256)
    downloads.add(WantedDownload(title="child", files=(file,)))
    print("started", flush=True)
    done.wait()
    downloads.close()


if __name__ == "__main__":
    main()
