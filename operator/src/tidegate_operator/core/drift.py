"""Does a live object still say what was rendered?

The API server fills in defaults, admission adds containers and labels, and quantities are rewritten
(`1000m` becomes `1`), so equality would see a difference for ever and every look would write. Here
`wanted` is contained in `live`: each member that was rendered must be there with an equal value;
what others added is not looked at. Lists of named things are compared by name, other lists whole.
Empty and absent are the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from tidegate_api.v1alpha1.common import quantity_value

_NAMED = ("name", "mountPath", "key")


def differences(wanted: object, live: object, *, path: str = "") -> tuple[str, ...]:
    """Return the paths at which `live` does not hold what `wanted` says."""
    return tuple(_walk(wanted, live, path))


def _walk(wanted: object, live: object, path: str) -> Iterator[str]:
    if _empty(wanted):
        if not _empty(live) and not isinstance(live, Mapping):
            yield path
        return
    match wanted:
        case Mapping():
            if not isinstance(live, Mapping):
                yield path
                return
            for key, value in wanted.items():
                yield from _walk(value, live.get(key), f"{path}.{key}")
        case str():
            if not _same_scalar(wanted, live):
                yield path
        case Sequence():
            yield from _walk_list(wanted, live, path)
        case _:
            if not _same_scalar(wanted, live):
                yield path


def _walk_list(wanted: Sequence[object], live: object, path: str) -> Iterator[str]:
    if not isinstance(live, Sequence) or isinstance(live, str):
        yield path
        return
    if (identity := _identity(wanted)) is not None:
        by_name = {item.get(identity): item for item in live if isinstance(item, Mapping)}
        for named in (item for item in wanted if isinstance(item, Mapping)):
            name = named[identity]
            if name not in by_name:
                yield f"{path}[{name}]"
            else:
                yield from _walk(named, by_name[name], f"{path}[{name}]")
        return
    if len(wanted) != len(live):
        yield path
        return
    for index, (item, there) in enumerate(zip(wanted, live, strict=True)):
        yield from _walk(item, there, f"{path}[{index}]")


def _identity(items: Sequence[object]) -> str | None:
    """Return the member that tells the items apart, when each has it and no two are equal."""
    for member in _NAMED:
        names = [item.get(member) for item in items if isinstance(item, Mapping)]
        if len(names) == len(items) and None not in names and len(set(map(str, names))) == len(names):
            return member
    return None


def _same_scalar(wanted: object, live: object) -> bool:
    if isinstance(wanted, bool) or isinstance(live, bool):
        return wanted is live
    if wanted == live:
        return True
    if isinstance(wanted, str | int | float) and isinstance(live, str | int | float):
        first, second = _quantity(wanted), _quantity(live)
        return first is not None and first == second
    return False


def _quantity(value: str | float) -> Decimal | None:
    try:
        return quantity_value(value if isinstance(value, str) else str(value))
    except ValueError:
        return None


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, str | Mapping | Sequence) and len(value) == 0)
