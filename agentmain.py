"""One subagent: python agentmain.py --task NAME [--input TEXT] [--func FILE] [--nobg] [--llm_no N] [--verbose]
[--no-user-tools]. Answers temp/NAME/context.json in the foreground; output.txt then ends with [ROUND END]."""

from dr.agent.cli import main

raise SystemExit(main())
