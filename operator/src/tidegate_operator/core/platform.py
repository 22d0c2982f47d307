"""What the operator was started with, as far as a decision depends on it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Images:
    """Full references of the images that a release or a revision was made for."""

    runtime: str
    sidecar: str


@dataclass(frozen=True, slots=True)
class Platform:
    """Version and images of the data planes, and where the operator itself lives."""

    version: str
    images: Images
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()  # names; looked for by the kubelet in the namespace of each pod
    operator_namespace: str = "tidegate-system"
    # How long a revision stays Retiring before it is dropped: longer than any pass that may have read it before.
    retiring_seconds: float = 60.0

    def images_of(self, version: str) -> Images:
        """Return the images of `version`: ours, or the same repositories under that tag."""
        if version in ("", self.version):
            return self.images
        return Images(_retag(self.images.runtime, version), _retag(self.images.sidecar, version))


def _retag(reference: str, version: str) -> str:
    repository = reference.partition("@")[0]
    head, slash, last = repository.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}:{version}"
