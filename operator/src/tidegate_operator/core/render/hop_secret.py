"""The key that signs hops between the pods of one pipeline: made once, never shown, never rewritten.

Pods believe every entry and sign with the first by name, so a key is exchanged by adding a second
entry, waiting until all pods have it, and removing the first.
"""

import base64

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, routing_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child

HOP_KEY = "key-1"


def hop_secret(owner: Owner, *, key: str) -> Manifest:
    """Return the Secret of a pipeline's pods."""
    encoded = base64.b64encode(key.encode()).decode()
    return child(
        Kind.SECRET, routing_name(owner.ref.name), owner, Component.ROUTING, type="Opaque", data={HOP_KEY: encoded}
    )
