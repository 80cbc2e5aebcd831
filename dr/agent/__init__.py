"""One subagent: context.json in, output.txt and evidence.jsonl out. Never imports the runner."""
