"""The base of every document that crosses a process or the API server.

Fields are snake_case in Python and camelCase outside; unknown fields of *resources and rendered
documents* are ignored (the API server prunes, and a newer writer may know more than an older
reader). The HTTP wire contract has its own, strict base in `wire.py`.
"""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """Frozen, camelCase outside, populated by either name."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_document(self) -> dict[str, object]:
        """Return the document as it is stored: camelCase, absent members left out."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")
