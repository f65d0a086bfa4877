"""What the API server would reject: fields that are missing, out of bounds or in contradiction, forbidden changes.

The rules of a kind are tables of fields (`field_rules`); `rules` knows which kind has which. They read JSON of which
`kinds/shapes.py` has checked the types, and return errors, they never raise. `validate_create` judges a new object,
`validate_update` a changed one against the stored one, `validate_state` one whatever it was before, `validate_status`
what is written to the status subresource; `validate_metadata`, `validate_name` and `validate_metadata_update` what is
left to judge of an object whose other parts have been judged before.
"""

from pilotage.sandbox.rules.validation.rules import (
    validate_create,
    validate_metadata,
    validate_metadata_update,
    validate_name,
    validate_state,
    validate_status,
    validate_update,
)

__all__ = [
    "validate_create",
    "validate_metadata",
    "validate_metadata_update",
    "validate_name",
    "validate_state",
    "validate_status",
    "validate_update",
]
