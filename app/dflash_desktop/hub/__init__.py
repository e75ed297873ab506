"""Models from outside: the catalogue of pairs, search, downloads and what lies on this machine. Imports base only."""

import os

# Its client would otherwise ask the hub which programs may be running here, on top of what the person asked for.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
