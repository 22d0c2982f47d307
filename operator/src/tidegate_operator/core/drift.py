"""Does a live object still say what was rendered?

The API server fills in defaults, admission adds containers and labels, and quantities are rewritten
(`1000m` becomes `1`), so equality would see a difference for ever and every look would write. Here
`wanted` is contained in `live`: each member that was rendered must be there with an equal value;
what others added is not looked at. Lists of named things are compared by name, other lists whole.
Empty and absent are the same. Both sides are plain JSON.
"""

from collections.abc import Iterator
from decimal import Decimal

from tidegate_api.v1alpha1.common import quantity_value

_NAMED = ("name", "mountPath", "key")


def differences(wanted: object, live: object, *, path: str = "") -> tuple[str, ...]:
    """Return the paths at which `live` does not hold what `wanted` says."""
    return tuple(_walk(wanted, live, path))


def _walk(wanted: object, live: object, path: str) -> Iterator[str]:
    if wanted == live:
        return
    match wanted:
        case dict() if wanted:
            if not isinstance(live, dict):
                yield path
                return
            for key, value in wanted.items():
                yield from _walk(value, live.get(key), f"{path}.{key}")
        case list() if wanted:
            yield from _walk_list(wanted, live, path)
        case None | "" | dict() | list():
            # What is empty was rendered for the structure's sake: it asks for nothing inside an object.
            if live and not isinstance(live, dict):
                yield path
        case _:
            if not _same_quantity(wanted, live):
                yield path


def _walk_list(wanted: list[object], live: object, path: str) -> Iterator[str]:
    if not isinstance(live, list):
        yield path
        return
    if (identity := _identity(wanted)) is not None:
        by_name = {item.get(identity): item for item in live if isinstance(item, dict)}
        for item in wanted:
            name = item[identity] if isinstance(item, dict) else None
            if name not in by_name:
                yield f"{path}[{name}]"
            else:
                yield from _walk(item, by_name[name], f"{path}[{name}]")
        return
    if len(wanted) != len(live):
        yield path
        return
    for index, (item, there) in enumerate(zip(wanted, live, strict=True)):
        yield from _walk(item, there, f"{path}[{index}]")


def _identity(items: list[object]) -> str | None:
    """Return the member that tells the items apart, when each has it and no two are equal."""
    for member in _NAMED:
        names = [item.get(member) for item in items if isinstance(item, dict)]
        if len(names) == len(items) and None not in names and len(set(map(str, names))) == len(names):
            return member
    return None


def _same_quantity(wanted: object, live: object) -> bool:
    first, second = _quantity(wanted), _quantity(live)
    return first is not None and first == second


def _quantity(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return quantity_value(value if isinstance(value, str) else str(value))
    except ValueError:
        return None
