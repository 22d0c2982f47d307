"""Drift: what counts as a difference between what was rendered and what is there."""

import pytest

from tidegate_operator.core.drift import differences


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"cpu": "1000m"}, {"cpu": "1"}),
        ({"memory": "1Gi"}, {"memory": "1024Mi"}),
        ({"replicas": 1}, {"replicas": 1, "strategy": {"type": "RollingUpdate"}}),
        ({"annotations": {}}, {}),
        ({"env": []}, {"env": None}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        (
            {"containers": [{"name": "a", "image": "x"}]},
            {"containers": [{"name": "mesh", "image": "proxy"}, {"name": "a", "image": "x", "tty": False}]},
        ),
        ({"ports": [{"name": "http", "port": 80}]}, {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}),
    ],
)
def test_what_the_api_server_fills_in_or_rewrites_is_no_difference(wanted: object, live: object) -> None:
    assert differences(wanted, live) == ()


@pytest.mark.parametrize(
    ("wanted", "live", "path"),
    [
        ({"cpu": "1"}, {"cpu": "2"}, (".cpu",)),
        ({"a": {"b": 1}}, {}, (".a",)),
        ({"a": {"b": 1}}, {"a": []}, (".a",)),
        ({"enabled": False}, {}, (".enabled",)),
        ({"containers": [{"name": "a", "image": "x"}]}, {"containers": [{"name": "b"}]}, (".containers[a]",)),
        ({"containers": [{"name": "a", "image": "x"}]}, {"containers": [{"name": "a"}]}, (".containers[a].image",)),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}, (".args[0]", ".args[1]")),
        ({"args": ["a"]}, {"args": ["a", "b"]}, (".args",)),
        ({"args": ["a"]}, {"args": "a"}, (".args",)),
        ({"command": ""}, {"command": "rm"}, (".command",)),
        ({"number": 3}, {"number": "three"}, (".number",)),
    ],
)
def test_a_difference_is_named_by_its_path(wanted: object, live: object, path: tuple[str, ...]) -> None:
    assert differences(wanted, live) == path
