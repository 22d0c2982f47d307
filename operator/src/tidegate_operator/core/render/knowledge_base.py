"""Every child of a KnowledgeBase but its frozen revisions, in the order in which a pod needs them."""

from tidegate_api.config import IndexerConfig
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_operator.core.children import Upkeep, Wanted, seal
from tidegate_operator.core.names import Component, indexer_name
from tidegate_operator.core.observed import Children
from tidegate_operator.core.render.indexer_config import indexer_config_map
from tidegate_operator.core.render.indexer_deployment import INDEXER_PORT, IndexerPod, indexer_deployment, store_of
from tidegate_operator.core.render.indexer_pvc import indexer_claim
from tidegate_operator.core.render.indexer_secret import indexer_secret
from tidegate_operator.core.render.meta import labels_of
from tidegate_operator.core.render.role import lease, role, role_binding
from tidegate_operator.core.render.service import service
from tidegate_operator.core.render.serviceaccount import service_account


def knowledge_base_children(
    spec: KnowledgeBaseSpec, children: Children, *, config: IndexerConfig, pod: IndexerPod, token: str
) -> list[Wanted]:
    """Return what the cluster should hold. `token` is used only where no Secret is there yet."""
    owner, component = children.owner, Component.INDEXER
    name = indexer_name(owner.ref.name)
    readable = [name, *(config_map for _, config_map in pod.config_maps)]
    rendered = [
        (service_account(name, owner, component), Upkeep.CURRENT),
        (role(name, owner, component, config_maps=readable, lease=name, touched=name), Upkeep.CURRENT),
        (role_binding(name, owner, component, account=name), Upkeep.CURRENT),
        (lease(name, owner, component), Upkeep.ONCE),
        (indexer_config_map(config, spec, owner), Upkeep.CURRENT),
        (service(name, owner, component, selector=labels_of(owner, component), ports=[INDEXER_PORT]), Upkeep.CURRENT),
    ]
    if not store_of(spec).claim_name:
        rendered.append((indexer_claim(store_of(spec), owner), Upkeep.GROW))
    wanted = [Wanted(seal(manifest, children), upkeep) for manifest, upkeep in rendered]
    # Nothing about a secret is written next to it, not even a hash.
    secret = seal(indexer_secret(owner, token=token), children, inputs="generated once")
    return [
        Wanted(secret, Upkeep.ONCE),
        *wanted,
        Wanted(seal(indexer_deployment(pod, owner), children, inputs=pod.inputs())),
    ]
