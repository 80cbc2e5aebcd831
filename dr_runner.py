"""Entry of the main agent: question in, report out. Everything is in dr/; see README.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dr.cli import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
