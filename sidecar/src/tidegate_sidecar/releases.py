"""Keeps the runtime's releases in step with the table: opens what it names, closes what it no longer does.

Level-based: each pass compares what should be held with what the runtime says it holds, so a lost
call, a restarted runtime or a restarted sidecar heals in the next pass. A release that left the table
is closed only after its last request, and is held no more from the moment it is told to close: a table
that names it again must not find it warm. Passes are quick while something changes and slow otherwise;
a new table, a failed search or the end of an idle connection wakes the keeper. A release that failed is asked for again at the slow pace.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from tidegate_api.config import ReleaseConfig, ReleaseState
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.ports import RuntimeAdmin

logger = logging.getLogger(__name__)

BUSY_SECONDS = 0.2
CALM_SECONDS = 5.0


class ReleaseKeeper:
    """Follows the table's releases. `message` says why the runtime's state is unknown; empty = it is known."""

    def __init__(
        self,
        runtime: RuntimeAdmin,
        in_flight: InFlight,
        *,
        busy_seconds: float = BUSY_SECONDS,
        calm_seconds: float = CALM_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._in_flight = in_flight
        self._busy_seconds = busy_seconds
        self._calm_seconds = calm_seconds
        self._woken = asyncio.Event()
        self._retry_at = 0.0
        self._refused: dict[str, ReleaseState] = {}
        self.held: tuple[ReleaseState, ...] = ()
        self.message = "the runtime has not been asked yet"

    def wake(self) -> None:
        """Look again soon: the table changed, or the runtime failed a request or hung up."""
        self._woken.set()

    def state_of(self, release: str) -> ReleaseState | None:
        """Return what is known of `release`."""
        return next((state for state in self.held if state.name == release), None)

    async def follow(self, wanted: Callable[[], Sequence[ReleaseConfig] | None]) -> None:
        """Keep the runtime in step, until cancelled."""
        while True:
            self._woken.clear()
            settled = await self.step(wanted)
            await asyncio.sleep(self._busy_seconds)
            if not settled:
                continue
            try:
                async with asyncio.timeout(self._calm_seconds):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def step(self, wanted: Callable[[], Sequence[ReleaseConfig] | None]) -> bool:
        """Compare and act once; True when nothing is left to do or to wait for.

        None = there is no table yet: nothing is known to be superfluous, so nothing is closed.
        """
        try:
            held = await self._look()
            if await self._act(wanted, held):
                held = await self._look()
        except RequestError as error:
            self._lose(error.message)
            return False
        self._note(tuple(held.values()))
        names = _names(wanted())
        return names is None or all(state.phase != "Loading" and state.name in names for state in self.held)

    async def _look(self) -> dict[str, ReleaseState]:
        """Return what the runtime holds, and what it refused to open."""
        state = await self._runtime.state()
        return self._refused | {release.name: release for release in state.releases}

    async def _act(self, wanted: Callable[[], Sequence[ReleaseConfig] | None], held: dict[str, ReleaseState]) -> bool:
        acted, retry = False, self._retry_is_due()
        for release in wanted() or ():
            known = held.get(release.name)
            if known is None or (retry and known.phase == "Failed"):
                acted = True
                await self._open(release)
        for name in held:
            # Asked anew for each: the table may have changed while another call was under way.
            names = _names(wanted())
            if names is None or name in names or self._in_flight.of(name):
                continue
            acted = True
            if self._refused.pop(name, None) is None:
                await self._close(name)
        return acted

    async def _open(self, release: ReleaseConfig) -> None:
        """Ask for one release; what the runtime refuses must not keep the others waiting."""
        self._refused.pop(release.name, None)
        try:
            await self._runtime.open(release)
        except RequestError as error:
            self._refused[release.name] = ReleaseState(name=release.name, phase="Failed", message=error.message)

    async def _close(self, name: str) -> None:
        """Let go of one release; one that stays costs memory, not answers."""
        self.held = tuple(state for state in self.held if state.name != name)
        try:
            await self._runtime.close(name)
        except RequestError as error:
            logger.warning("release not closed", extra={"release": name, "reason": error.message})

    def _retry_is_due(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._calm_seconds
        return True

    def _lose(self, message: str) -> None:
        if message != self.message:
            logger.warning("runtime not in step", extra={"reason": message})
        self.message, self.held = message, ()
        self._refused.clear()

    def _note(self, states: tuple[ReleaseState, ...]) -> None:
        before = {state.name: state.phase for state in self.held}
        for state in states:
            if before.get(state.name) != state.phase:
                extra = {"release": state.name, "phase": state.phase, "reason": state.message}
                logger.info("release changed", extra=extra)
        self.message, self.held = "", states


def _names(releases: Sequence[ReleaseConfig] | None) -> frozenset[str] | None:
    return None if releases is None else frozenset(release.name for release in releases)
