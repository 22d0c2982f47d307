"""The harness itself: a plain pod behind a Service, and what a wait says when it fails."""

import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.cluster import CommandError, Namespace
from tests.e2e.wait import ConditionTimeoutError, wait_for

LABELS = {"app": "web"}
ANSWER = "served from a read-only root"
SERVE = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{ANSWER}')
http.server.HTTPServer(('', 8080), Handler).serve_forever()
"""


def plain_pod(image: str, *command: str) -> dict[str, Any]:
    """Return the template of a pod under the restricted profile that runs a command in an image of ours."""
    container = {
        "name": "main",
        "image": image,
        "command": list(command),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}


def deployment(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Deployment of one such pod."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template},
    }


def test_a_pod_of_our_image_answers_behind_its_service(namespace: Namespace, images: Mapping[str, str]) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    template = plain_pod(images["sidecar"], "python", "-c", SERVE)
    template["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    namespace.apply(deployment(template), service)
    namespace.wait_for_condition("deployment/web", "Available")

    with namespace.port_forward("service/web", 80) as url, urllib.request.urlopen(url, timeout=10) as response:
        assert response.read().decode() == ANSWER


def test_a_wait_that_fails_shows_the_object_its_events_and_the_logs(
    namespace: Namespace, images: Mapping[str, str]
) -> None:
    namespace.apply(deployment(plain_pod(images["sidecar"], "python", "-c", "raise SystemExit('last ' + 'words')")))
    wait_for(
        lambda: "last words" in namespace.diagnosis("deployment/web"),
        what="the pod has run and failed",
        timeout_seconds=60,
        describe=lambda: namespace.diagnosis("deployment/web"),
    )

    with pytest.raises(ConditionTimeoutError) as failure:
        namespace.wait_for_condition("deployment/web", "Unheard", timeout_seconds=1)

    told = str(failure.value)
    assert "after 1 s it is still not true that deployment/web has Unheard=True" in told
    assert "kind: Deployment" in told
    assert "Scaled up replica set" in told
    assert "last words" in told


def test_a_namespace_refuses_pods_that_the_restricted_profile_refuses(
    namespace: Namespace, images: Mapping[str, str]
) -> None:
    template = plain_pod(images["sidecar"], "true")
    template["spec"]["containers"][0].pop("securityContext")

    with pytest.raises(CommandError, match="violates PodSecurity"):
        namespace.apply({"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "plain"}})
