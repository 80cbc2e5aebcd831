"""The chat model of the settings -> a client, whose uses are counted in a usage.json and whose back-off all share."""

from __future__ import annotations

from pathlib import Path

from dr.chat import Chat
from dr.errors import UsageError
from dr.layout import Root
from dr.settings import Settings


def configured(settings: Settings) -> bool:
    return bool(settings.model and settings.base_url)


def open_chat(settings: Settings, root: Root, usage: Path | None) -> Chat:
    """UsageError when no model is configured, or its address cannot be one."""
    if not configured(settings):
        missing = [f"{key} (DR_{key.upper()})" for key in ("model", "base_url") if not getattr(settings, key)]
        raise UsageError("think with a model", f"not set: {', '.join(missing)}", "set it, or use --mind offline")
    return Chat(
        settings.base_url,
        settings.model,
        settings.api_key,
        stream=settings.stream,
        timeout_s=settings.model_timeout_s,
        usage_path=usage,
        backoff_path=root.backoff,
    )
