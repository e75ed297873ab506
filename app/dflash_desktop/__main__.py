"""python -m dflash_desktop."""

from dflash_desktop.cli import run

if __name__ == "__main__":
    run()
