"""What the operator is started with: environment `TIDEGATE_*`, and flags for the namespaces it serves."""

import argparse
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from tidegate_operator.core.platform import Images, Platform


def _installed_version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:
        return "0"


class Settings(BaseSettings):
    """Every setting. An empty list of namespaces = all of them."""

    model_config = SettingsConfigDict(env_prefix="TIDEGATE_", frozen=True, extra="ignore")

    namespaces: Annotated[list[str], NoDecode] = Field(default_factory=list)
    runtime_image: str
    sidecar_image: str
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: Annotated[list[str], NoDecode] = Field(default_factory=list, description="separated by commas")
    version: str = Field(default_factory=_installed_version, description="of the data planes that the images hold")
    operator_namespace: str = "tidegate-system"
    lease: str = Field(default="tidegate-operator", description="by which a second operator is noticed")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    resync_seconds: Annotated[float, Field(ge=1)] = 600.0
    workers: Annotated[int, Field(ge=1, le=256)] = 16
    listen: str = "0.0.0.0"  # noqa: S104 - probes and scrapes come from outside the pod
    health_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 8081

    @field_validator("image_pull_secrets", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    def platform(self) -> Platform:
        """Return the part that decisions depend on."""
        return Platform(
            version=self.version,
            images=Images(self.runtime_image, self.sidecar_image),
            pull_policy=self.image_pull_policy,
            pull_secrets=tuple(self.image_pull_secrets),
            operator_namespace=self.operator_namespace,
        )


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Return the settings of this process; `--namespace` may be given several times.

    Raises:
        pydantic.ValidationError: a variable is missing or wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m tidegate_operator", description="Tidegate's control plane.")
    parser.add_argument("--namespace", action="append", default=[], help="serve this namespace; absent = all of them")
    namespaces = parser.parse_args(arguments).namespace
    return Settings(namespaces=namespaces) if namespaces else Settings()
