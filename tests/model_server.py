"""The model provider on loopback of the public test kit, by the name tests import it."""

from nightwarden.testing.model_server import (
    USAGE,
    Call,
    Calls,
    Cut,
    Drop,
    Hang,
    ModelServer,
    Request,
    Say,
    Script,
    Status,
    Vectors,
)

__all__ = [
    "USAGE",
    "Call",
    "Calls",
    "Cut",
    "Drop",
    "Hang",
    "ModelServer",
    "Request",
    "Say",
    "Script",
    "Status",
    "Vectors",
]
