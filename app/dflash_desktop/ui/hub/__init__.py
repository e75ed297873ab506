"""The models page: catalogue, search, downloads, and what lies on this machine."""
