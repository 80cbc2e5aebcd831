"""The subagent: answers one node's sub-question from its sources and writes output.txt and evidence.jsonl."""
