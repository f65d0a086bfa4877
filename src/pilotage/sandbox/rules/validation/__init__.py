"""What the API server would refuse: wrong types, missing and contradictory fields, changes of what is immutable.

Checks return errors, they never raise, whatever JSON they meet. `validate_create` judges a new object,
`validate_update` a changed one against the stored one; `validate_metadata` and `validate_metadata_update` what is left
to judge of an object whose other parts have been judged before.
"""

from pilotage.sandbox.rules.validation.rules import (
    validate_create,
    validate_metadata,
    validate_metadata_update,
    validate_update,
)

__all__ = ["validate_create", "validate_metadata", "validate_metadata_update", "validate_update"]
