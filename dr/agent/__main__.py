"""`python -m dr.agent`: the same subagent as agentmain.py, for a root that has an agentmain.py of its own."""

from dr.agent.cli import main

raise SystemExit(main())
