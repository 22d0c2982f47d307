"""The reasons that conditions give, apart from the models of conditions and resources.

Data planes tell some of them, and must not load every resource's model for that: a tenth of a
runtime's start.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Every reason that a condition may give. Readers must expect others: the set grows."""

    # Good news and progress.
    ACCEPTED = "Accepted"
    SERVING = "Serving"
    IN_FORCE = "InForce"
    COMPLETED = "Completed"
    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    SUSPENDED = "Suspended"
    # What is wrong with a spec.
    INVALID_SPEC = "InvalidSpec"
    UNKNOWN_MODEL = "UnknownModel"
    INVALID_GRAPH = "InvalidGraph"
    UNSUPPORTED_VALUE = "UnsupportedValue"
    CONFIG_MAP_MISSING = "ConfigMapMissing"
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - a reason, not a secret
    SECRET_INVALID = "SecretInvalid"  # noqa: S105
    CLAIM_MISSING = "ClaimMissing"
    KNOWLEDGE_BASE_MISSING = "KnowledgeBaseMissing"
    KNOWLEDGE_BASE_BEHIND = "KnowledgeBaseBehind"
    PIPELINE_MISSING = "PipelineMissing"
    POLICY_MISSING = "PolicyMissing"
    OLDER_POLICY_RULES = "OlderPolicyRules"
    # Building.
    LANGUAGE_UNKNOWN = "LanguageUnknown"
    WAITS_FOR_BUILD = "WaitsForBuild"
    BUILDING = "Building"
    REVISION_FAILED = "RevisionFailed"
    DOCUMENTS_FAILED = "DocumentsFailed"
    SOURCE_UNREADABLE = "SourceUnreadable"
    STORE_FULL = "StoreFull"
    INDEX_LACKS_LEG = "IndexLacksLeg"
    EMBEDDER_LANGUAGE_MISMATCH = "EmbedderLanguageMismatch"
    LANGUAGE_DRIFT = "LanguageDrift"
    REFERENCED = "Referenced"
    # Pods.
    STARTING = "Starting"
    INDEXER_UNREACHABLE = "IndexerUnreachable"
    NO_READY_POD = "NoReadyPod"
    POD_NOT_READY = "PodNotReady"
    REPLACING = "Replacing"
    POD_CREATION_FAILED = "PodCreationFailed"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_FAILED = "ContainerFailed"
    UNSCHEDULABLE = "Unschedulable"
    INSUFFICIENT_GPU = "InsufficientGPU"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    NAME_CONFLICT = "NameConflict"
    REFUSED_BY_API_SERVER = "RefusedByAPIServer"
    SESSIONS_IN_PROCESS = "SessionsInProcess"
    # Releases and rollouts.
    PREPARING_RELEASE = "PreparingRelease"
    RELEASE_FAILED = "ReleaseFailed"
    CONTAINS_REJECTED = "ContainsRejected"
    ROLLED_BACK = "RolledBack"
    STEP_REMOVED = "StepRemoved"
    WAITS_FOR_PERSON = "WaitsForPerson"
    NOT_ACKNOWLEDGED = "NotAcknowledged"
