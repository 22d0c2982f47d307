"""The identity of a parent's pods. No token is mounted unless a container asks for one."""

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child


def service_account(name: str, owner: Owner, component: Component) -> Manifest:
    """Return a ServiceAccount."""
    return child(Kind.SERVICE_ACCOUNT, name, owner, component, automountServiceAccountToken=False)
