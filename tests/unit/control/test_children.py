"""Children: which writes a rendered object needs, and which objects are never touched."""

from datetime import UTC, datetime, timedelta

import pytest

from tidegate_operator.core.children import Upkeep, Wanted, plan_children, seal
from tidegate_operator.core.kinds import FIELD_MANAGER, Kind, Manifest, Ref
from tidegate_operator.core.names import Annotation
from tidegate_operator.core.observed import Children, Live, Owner, Refusal
from tidegate_operator.core.plan import Apply, Create

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = Owner(Ref(Kind.KNOWLEDGE_BASE, "acme", "docs"), "uid-1")
NOBODY = Children(owner=OWNER)
REF = Ref(Kind.DEPLOYMENT, "acme", "docs-indexer")


def deployment(image: str = "a:1", *, replicas: int = 1, template: str | None = None) -> Manifest:
    annotations = {} if template is None else {Annotation.TEMPLATE.value: template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": REF.name, "namespace": "acme", "annotations": annotations},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "indexer", "image": image}]}}},
    }


def as_live(
    manifest: Manifest, *, uid: str = "uid-9", managers: list[Manifest] | None = None, **metadata: object
) -> Live:
    entries = [{"manager": FIELD_MANAGER}] if managers is None else managers
    return Live({**manifest, "metadata": {**manifest["metadata"], "uid": uid, "managedFields": entries, **metadata}})


def written_to(live_uid: str, manifest: Manifest) -> Apply:
    """Return the apply that reaches that very object."""
    return Apply({**manifest, "metadata": {**manifest["metadata"], "uid": live_uid}})


def with_live(live: Live, **members: object) -> Children:
    return Children(owner=OWNER, live={live.ref: live}, **members)  # type: ignore[arg-type]


def test_a_missing_child_is_created_with_our_controller_reference_in_the_same_namespace() -> None:
    manifest = seal(deployment(), NOBODY)

    plan = plan_children(NOBODY, [Wanted(manifest)], now=NOW)

    assert plan.actions == (Create(manifest),)
    assert manifest["metadata"]["ownerReferences"] == [OWNER.reference()]
    assert manifest["metadata"]["namespace"] == OWNER.ref.namespace


def test_a_child_that_is_as_rendered_costs_no_write() -> None:
    manifest = seal(deployment(), NOBODY)

    assert plan_children(with_live(as_live(manifest)), [Wanted(manifest)], now=NOW).actions == ()


def test_changed_inputs_and_drift_are_applied() -> None:
    old, new = seal(deployment("a:1"), NOBODY), seal(deployment("a:2"), NOBODY)
    edited = as_live({**old, "spec": deployment("evil:1")["spec"]})

    assert plan_children(with_live(as_live(old)), [Wanted(new)], now=NOW).actions == (written_to("uid-9", new),)
    assert plan_children(with_live(edited), [Wanted(old)], now=NOW).actions == (written_to("uid-9", old),)


def test_a_difference_that_an_apply_has_left_is_not_fought_over() -> None:
    manifest = seal(deployment("a:1"), NOBODY)
    rewritten = as_live({**manifest, "spec": deployment("mirror/a:1")["spec"]})
    path = ".spec.template.spec.containers[indexer].image"

    children = with_live(rewritten, settled={REF: (path,)})

    assert plan_children(children, [Wanted(manifest)], now=NOW).actions == ()


@pytest.mark.parametrize(
    "references",
    [
        [],
        [{"kind": "Application", "name": "docs", "uid": "uid-1x", "controller": True, "apiVersion": "x/v1"}],
        [{**OWNER.reference(), "controller": False}],
    ],
)
def test_somebody_elses_object_of_that_name_is_never_touched(references: list[Manifest]) -> None:
    manifest = seal(deployment(), NOBODY)
    foreign = as_live(deployment("theirs:1"), ownerReferences=references)

    plan = plan_children(with_live(foreign), [Wanted(manifest)], now=NOW)

    assert plan.actions == ()
    assert plan.conflicts == (REF,)


def test_what_a_deleted_parent_of_the_same_name_left_is_waited_for() -> None:
    manifest = seal(deployment(), NOBODY)
    leftover = as_live(manifest, ownerReferences=[{**OWNER.reference(), "uid": "uid-0"}])

    plan = plan_children(with_live(leftover), [Wanted(manifest)], now=NOW)

    assert (plan.actions, plan.conflicts, plan.leftovers) == ((), (), (REF,))


def test_an_object_that_is_being_deleted_is_waited_for() -> None:
    manifest = seal(deployment("a:2"), NOBODY)
    going = as_live(seal(deployment("a:1"), NOBODY), deletionTimestamp=NOW.isoformat())

    assert plan_children(with_live(going), [Wanted(manifest)], now=NOW).actions == ()


def test_a_newer_template_with_equal_inputs_rolls_nothing() -> None:
    inputs = {"image": "a:1"}
    old = seal(deployment("a:1", template="1"), NOBODY, inputs=inputs)
    newer = {**deployment("a:1", template="2")}
    newer["spec"] = {**newer["spec"], "minReadySeconds": 5}
    children = with_live(as_live(old))

    assert plan_children(children, [Wanted(seal(newer, NOBODY, inputs=inputs))], now=NOW).actions == ()
    changed = seal(newer, NOBODY, inputs={"image": "a:2"})
    assert plan_children(children, [Wanted(changed)], now=NOW).actions == (written_to("uid-9", changed),)


def test_replicas_belong_to_whoever_set_them_last() -> None:
    manifest = seal(deployment(replicas=1), NOBODY)
    scaled = as_live(
        {**manifest, "spec": {**manifest["spec"], "replicas": 5}},
        managers=[{"manager": FIELD_MANAGER}, {"manager": "autoscaler", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
    )
    changed = seal(deployment("a:2", replicas=1), NOBODY)

    assert plan_children(with_live(scaled), [Wanted(manifest)], now=NOW).actions == ()
    (action,) = plan_children(with_live(scaled), [Wanted(changed)], now=NOW).actions
    assert isinstance(action, Apply)
    assert "replicas" not in action.manifest["spec"]


def claim(size: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "docs-indexer", "namespace": "acme"},
        "spec": {"resources": {"requests": {"storage": size}}},
    }


@pytest.mark.parametrize(("size", "writes"), [("10Gi", 0), ("10240Mi", 0), ("5Gi", 0), ("20Gi", 1)])
def test_a_claim_only_grows(size: str, writes: int) -> None:
    live = as_live(seal(claim("10Gi"), NOBODY))

    plan = plan_children(with_live(live), [Wanted(seal(claim(size), NOBODY), Upkeep.GROW)], now=NOW)

    assert len(plan.actions) == writes


def test_an_object_that_is_made_once_is_never_rewritten() -> None:
    live = as_live(seal(deployment("a:1"), NOBODY))

    assert plan_children(with_live(live), [Wanted(seal(deployment("a:2"), NOBODY), Upkeep.ONCE)], now=NOW).actions == ()


def test_a_refused_write_is_reported_and_repeated_only_when_due_or_changed() -> None:
    manifest, changed = seal(deployment("a:1"), NOBODY), seal(deployment("a:2"), NOBODY)
    refusal = Refusal(REF, Create(manifest).inputs, "Forbidden", "exceeded quota", NOW + timedelta(seconds=30))
    children = Children(owner=OWNER, refusals={REF: refusal})

    early = plan_children(children, [Wanted(manifest)], now=NOW)
    due = plan_children(children, [Wanted(manifest)], now=NOW + timedelta(seconds=31))
    edited = plan_children(children, [Wanted(changed)], now=NOW)

    assert (early.actions, early.refusals) == ((), (refusal,))
    assert (due.actions, due.refusals) == ((Create(manifest),), (refusal,))
    assert (edited.actions, edited.refusals) == ((Create(changed),), ())
