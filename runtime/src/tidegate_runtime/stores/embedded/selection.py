"""Which rows a caller may see and a filter accepts, decided before any leg runs.

Absent means the least: a source without rules is visible to nobody, an anonymous caller sees only
what is public at both levels, a document with groups only who shares one. A document's tenants
narrow those of its source and never widen them. Selections are cached per snapshot, which is safe
because nothing of a snapshot changes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tidegate_api.shape import MetadataType
from tidegate_api.wire import Filter
from tidegate_runtime.ports import Permission, Rows, SourceRules
from tidegate_runtime.stores.embedded.filters import Predicate, matching_documents, parse_filter
from tidegate_runtime.stores.embedded.live import LiveSegment
from tidegate_runtime.stores.embedded.segment import Access

EVERYONE = "*"
_SPARSE_SHARE = 0.05
_CACHE_BYTES = 32 * 1024 * 1024
_CACHE_ENTRIES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class RowSelection:
    """`mask` and `rows` both None = every row; `rows` where few are selected, else `mask`."""

    count: int
    mask: NDArray[np.bool_] | None = None
    rows: Rows | None = None

    @property
    def size_bytes(self) -> int:
        """Return the memory that this takes."""
        return sum(array.nbytes for array in (self.mask, self.rows) if array is not None)


class Selector:
    """Makes and remembers the selections of one snapshot. Thread-safe."""

    def __init__(
        self,
        segments: Sequence[LiveSegment],
        *,
        rules: Mapping[str, SourceRules],
        metadata_schema: Mapping[str, MetadataType],
    ) -> None:
        self._segments = tuple(segments)
        self._rules = rules
        self._schema = metadata_schema
        self._rows = sum(live.segment.rows for live in segments)
        self._cache: OrderedDict[tuple[Permission, str], RowSelection] = OrderedDict()
        self._cached_bytes = 0
        self._lock = Lock()

    def select(self, permission: Permission, filters: Filter | None) -> RowSelection:
        """Return the rows that `permission` may see and `filters` accept."""
        key = (permission, "" if filters is None else filters.model_dump_json())
        with self._lock:
            if (known := self._cache.get(key)) is not None:
                self._cache.move_to_end(key)
                return known
        predicate = None if filters is None else parse_filter(filters, schema=self._schema)
        selection = self._selection(permission, predicate)
        with self._lock:
            self._remember(key, selection)
        return selection

    def _remember(self, key: tuple[Permission, str], selection: RowSelection) -> None:
        if key in self._cache:
            return
        self._cache[key] = selection
        self._cached_bytes += selection.size_bytes
        while len(self._cache) > 1 and (self._cached_bytes > _CACHE_BYTES or len(self._cache) > _CACHE_ENTRIES):
            _, dropped = self._cache.popitem(last=False)
            self._cached_bytes -= dropped.size_bytes

    def _selection(self, permission: Permission, predicate: Predicate | None) -> RowSelection:
        mask = np.ones(self._rows, dtype=np.bool_)
        for live in self._segments:
            documents = self._visible_documents(live, permission)
            if predicate is not None:
                documents &= matching_documents(predicate, live.segment, rules=self._rules)
            if not documents.all():
                mask[live.rows] = documents[live.segment.row_documents]
        count = int(np.count_nonzero(mask))
        if count == self._rows:
            return RowSelection(count)
        if count < _SPARSE_SHARE * self._rows:
            return RowSelection(count, rows=np.flatnonzero(mask))
        return RowSelection(count, mask=mask)

    def _visible_documents(self, live: LiveSegment, permission: Permission) -> NDArray[np.bool_]:
        segment = live.segment
        sources = [self._source_visible(source, permission) for source in segment.dictionaries.sources]
        access = [_access_granted(entry, permission) for entry in segment.dictionaries.access]
        visible = np.array(sources, dtype=np.bool_)[segment.source_numbers]
        visible &= np.array(access, dtype=np.bool_)[segment.access_numbers]
        return visible if live.live_documents is None else visible & live.live_documents

    def _source_visible(self, source: str, permission: Permission) -> bool:
        rules = self._rules.get(source)
        return rules is not None and _tenant_listed(rules.tenants, permission)


def _access_granted(access: Access, permission: Permission) -> bool:
    if access.tenants is not None and not _tenant_listed(access.tenants, permission):
        return False
    return not access.groups or not permission.groups.isdisjoint(access.groups)


def _tenant_listed(tenants: tuple[str, ...], permission: Permission) -> bool:
    return EVERYONE in tenants or (permission.tenant is not None and permission.tenant in tenants)
