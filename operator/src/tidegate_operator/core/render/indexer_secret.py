"""The token that pods present to copy segments: made once, never shown, never rewritten."""

import base64

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, indexer_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child

TOKEN_KEY = "token"  # noqa: S105 - the name of an entry


def indexer_secret(owner: Owner, *, token: str) -> Manifest:
    """Return the Secret of a knowledge base's indexer."""
    encoded = base64.b64encode(token.encode()).decode()
    return child(
        Kind.SECRET, indexer_name(owner.ref.name), owner, Component.INDEXER, type="Opaque", data={TOKEN_KEY: encoded}
    )
