"""Entry of the main agent: question in, report out. Everything is in dr/; see README.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

if __name__ == "__main__":
    try:
        from dr.cli import main

        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # while it is still being loaded, or already over
        code = 130
    raise SystemExit(code)
