"""What is wrong with a KnowledgeBase's indexer or index, in words that name what to change.

An indexer in trouble stops edits, not answers: what it has built goes on serving, and each sentence says so.
"""

from tidegate_api.conditions import Reason
from tidegate_api.v1alpha1.knowledgebase import RevisionStatus
from tidegate_operator.core.observed_kb import KnowledgeWorld
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.render.indexer_deployment import store_of
from tidegate_operator.core.revisions import READY
from tidegate_operator.core.workloads import Trouble, first_trouble

_SERVES_ON = "what is built goes on serving, edits wait"


def pod_trouble(world: KnowledgeWorld) -> Trouble | None:
    """Return why the indexer's pod does not run, when it is known."""
    workload = world.workload
    return first_trouble(workload, world.pods) if workload is None or workload.ready == 0 else workload.trouble


def no_room(world: KnowledgeWorld) -> Verdict | None:
    """Return that the index does not fit on its volume, and which member of the spec is about that."""
    state = world.indexer
    if state is None or Reason.STORE_FULL not in {state.reason, *(each.reason for each in state.revisions)}:
        return None
    spec = world.asked or world.accepted
    store = store_of(spec) if spec is not None else None
    if store is None or store.claim_name:
        claim = store.claim_name if store is not None else ""
        where = f"claim {claim} (spec.store.index.embedded.claimName) is full: enlarge that claim"
    else:
        where = f"spec.store.index.embedded.size: {store.size} is too small: write more"
    message = f"{where}, or remove documents; {_SERVES_ON} and go on by themselves once there is room"
    return Verdict(Reason.STORE_FULL, message)


def degraded(world: KnowledgeWorld, *, desired: RevisionStatus | None, serves: bool) -> Verdict | None:
    """Return what keeps edits from reaching the index, or answers from being as good as they should be.

    `desired` is the revision that the spec asks for; `serves` = some revision can be queried.
    """
    if serves and (world.workload is None or world.workload.ready == 0):
        trouble = pod_trouble(world)
        if trouble is None:
            return Verdict(Reason.INDEXER_UNREACHABLE, f"the indexer's pod does not run; {_SERVES_ON}")
        return Verdict(trouble.reason, f"the indexer's pod does not run: {trouble.message}; {_SERVES_ON}")
    if (full := no_room(world)) is not None:
        return full
    state = world.indexer
    if state is not None and state.message:
        return Verdict(Reason.SOURCE_UNREADABLE, state.message)
    if desired is not None and desired.phase == READY and "dense" not in desired.provides:
        message = (
            f"too many chunks are in a language that {desired.embedder} does not know, so {desired.name} answers "
            "by BM25 alone; set spec.embedding.model to auto or to a multilingual model"
        )
        return Verdict(Reason.EMBEDDER_LANGUAGE_MISMATCH, message)
    if state.sync.failed if state is not None else world.status.sync.failed:
        message = "some documents could not be indexed; status.sync.failures names them and says why"
        return Verdict(Reason.DOCUMENTS_FAILED, message)
    return None
