"""Whether this pod may get traffic, and the document that tells the control plane what is really in force."""

import time
import uuid

from tidegate_api.config import SidecarState
from tidegate_api.reasons import Reason
from tidegate_sidecar.metrics import Recorder
from tidegate_sidecar.releases import ReleaseKeeper
from tidegate_sidecar.settings import SettingsKeeper
from tidegate_sidecar.tables import TableKeeper, UnderstoodTable


class Health:
    """Reads the keepers; holds nothing but the name of this process."""

    def __init__(
        self, *, settings: SettingsKeeper, tables: TableKeeper, releases: ReleaseKeeper, recorder: Recorder
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._releases = releases
        self._recorder = recorder
        self._process = uuid.uuid4().hex

    def not_ready(self) -> str:
        """Return why this pod should get no traffic, or an empty string."""
        if unusable := self._settings.current.identity.unusable(time.time()):
            return unusable
        table = self._tables.current
        if table is None:
            return self._tables.message
        if self._releases.message:
            return self._releases.message
        for name in self._must_be_warm(table):
            held = self._releases.state_of(name)
            if held is None:
                return f"release {name} is not open yet"
            if held.phase != "Warm":
                return f"release {name} is {held.phase}" + (f": {held.message}" if held.message else "")
        return ""

    def _must_be_warm(self, table: UnderstoodTable) -> list[str]:
        """Return the releases without which this pod is of no use.

        The stable one where this pod holds it: a candidate that still loads beside it takes nobody's answers away.
        Elsewhere everything it holds: such a pod is there for them alone.
        """
        here = [release.name for release in self._tables.wanted() or ()]
        return [table.index.stable] if table.index.stable in here else here

    def state(self) -> SidecarState:
        """Return what is in force, and everything that is wrong."""
        settings, table = self._settings.current, self._tables.current
        not_ready = self.not_ready()
        problems = [
            not_ready,
            settings.problem,
            *settings.identity.problems,
            self._tables.message,
            self._tables.link_message,
            self._releases.message,
        ]
        return SidecarState(
            process=self._process,
            table_version=0 if table is None else table.index.version,
            table_hash="" if table is None else table.hash,
            table_source="" if table is None else table.origin,
            config_hash=settings.config_hash,
            releases=list(self._releases.held),
            ready=not not_ready,
            message="; ".join(dict.fromkeys(filter(None, problems))),
            reason=Reason.SECRET_INVALID if settings.identity.unusable(time.time()) else "",
            api_keys=settings.identity.live_keys(time.time()),
            requests=self._recorder.by_release,
        )
