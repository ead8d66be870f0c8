"""The model configuration that everything in canonical form shares."""

from pydantic import BaseModel, ConfigDict


class BaseDataModel(BaseModel):
    """Unknown keys are refused, since importers map every key knowingly and a typo must not vanish.

    Lax about types otherwise (canonical-chat.md section 1).
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True, use_enum_values=True)
