"""Every child of a RetrievalPipeline but its releases, in the order in which a pod needs them."""

from collections.abc import Iterable

from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_operator.core.children import Upkeep, Wanted, seal
from tidegate_operator.core.kinds import Manifest
from tidegate_operator.core.names import Component, Label, deployment_name, routing_name
from tidegate_operator.core.observed import Children, Owner
from tidegate_operator.core.render.hop_secret import hop_secret
from tidegate_operator.core.render.meta import labels_of, with_labels
from tidegate_operator.core.render.networkpolicy import PEER_PORT, PUBLIC_PORT, network_policy
from tidegate_operator.core.render.pdb import disruption_budget
from tidegate_operator.core.render.pipeline_deployment import PipelinePod, account_of, pipeline_deployment
from tidegate_operator.core.render.role import role, role_binding
from tidegate_operator.core.render.service import service
from tidegate_operator.core.render.serviceaccount import service_account


def selector_of(owner: Owner, deployment: str) -> dict[str, str]:
    """Return the labels that select the pods of one Deployment."""
    return {**labels_of(owner, Component.RETRIEVAL), Label.DEPLOYMENT.value: deployment}


def pipeline_children(
    spec: RetrievalPipelineSpec,
    children: Children,
    *,
    routing: Manifest,
    pods: Iterable[PipelinePod],
    public: str | None,
    operator_namespace: str,
    hop_key: str,
) -> list[Wanted]:
    """Return what the cluster should hold. `public` is the Deployment that the Service selects, once there is one.

    `hop_key` is used only where no Secret is there yet.
    """
    owner, component = children.owner, Component.ROUTING
    name = routing_name(owner.ref.name)
    manifests = [
        service_account(name, owner, component),
        role(name, owner, component, config_maps=[name]),
        role_binding(name, owner, component, account=account_of(spec, owner)),
        routing,
        network_policy(owner, operator_namespace=operator_namespace),
        disruption_budget(owner),
    ]
    if public is not None:
        selector = selector_of(owner, public)
        manifests.append(service(owner.ref.name, owner, Component.RETRIEVAL, selector=selector, ports=[PUBLIC_PORT]))
    pods = list(pods)
    manifests.extend(_peer_service(owner, pod.deployment) for pod in pods)
    deployments = [seal(pipeline_deployment(pod, owner), children, inputs=pod.inputs()) for pod in pods]
    # Nothing about a secret is written next to it, not even a hash.
    secret = Wanted(seal(hop_secret(owner, key=hop_key), children, inputs="generated once"), Upkeep.ONCE)
    return [secret, *(Wanted(seal(manifest, children)) for manifest in manifests), *map(Wanted, deployments)]


def _peer_service(owner: Owner, deployment: str) -> Manifest:
    """Return the Service by which other pods of the pipeline reach those of one Deployment."""
    name = deployment_name(owner.ref.name, deployment)
    selector = selector_of(owner, deployment)
    manifest = service(name, owner, Component.RETRIEVAL, selector=selector, ports=[PEER_PORT])
    return with_labels(manifest, {Label.DEPLOYMENT.value: deployment})
