"""The record of calls to scripted plugins is the same as in the tests of the framework."""

from tests.framework.conftest import calls

__all__ = ["calls"]
