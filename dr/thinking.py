"""One question to a planner that takes long, asked in a thread, so that the runner's loop goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Thought:
    """ask: what the thread does. told: called in it when it is done. apply: what becomes of the answer, in the loop."""

    def __init__(self, ask: Callable[[], Any], told: Callable[[], None], apply: Callable[[Callable[[], Any]], None]):
        self._ask, self._told, self._apply = ask, told, apply
        self._answer: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="planner", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._answer = self._ask()
        except BaseException as error:  # noqa: BLE001 - raised again in the loop, where it belongs
            self._error = error
        self._told()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def answer(self) -> Any:
        """What came out; raises what the planner raised."""
        if self._error is not None:
            raise self._error
        return self._answer

    def apply(self) -> None:
        self._apply(self.answer)

    def join(self) -> None:
        self._thread.join()
