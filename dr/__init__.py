"""Deep-research runner: a DAG of sub-questions, one subagent process per node, a report one can check."""

__version__ = "0.1.0"
