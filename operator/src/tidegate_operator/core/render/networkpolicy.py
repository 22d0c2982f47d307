"""Who may reach a pipeline's pods: everybody the public port, few the others.

State and counters are for the operator and for namespaces that are labelled for scraping; peers are
pods of the same pipeline. The runtime has no port at all.
"""

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child, labels_of
from tidegate_operator.core.render.service import Port

PUBLIC_PORT = Port("http", 8080)
STATE_PORT = Port("state", 8081)
PEER_PORT = Port("peers", 8082)
# Put on a namespace whose pods may scrape metrics.
SCRAPER_LABEL = "tidegate.dev/metrics"


def network_policy(owner: Owner, *, operator_namespace: str) -> Manifest:
    """Return the NetworkPolicy of a pipeline's pods."""
    labels = labels_of(owner, Component.RETRIEVAL)
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}}}
    scraper = {"namespaceSelector": {"matchLabels": {SCRAPER_LABEL: "true"}}}
    spec = {
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [_port(PUBLIC_PORT)]},
            {"ports": [_port(STATE_PORT)], "from": [operator, scraper]},
            {"ports": [_port(PEER_PORT)], "from": [{"podSelector": {"matchLabels": labels}}]},
        ],
    }
    return child(Kind.NETWORK_POLICY, owner.ref.name, owner, Component.RETRIEVAL, spec=spec)


def _port(port: Port) -> Manifest:
    return {"protocol": "TCP", "port": port.number}
