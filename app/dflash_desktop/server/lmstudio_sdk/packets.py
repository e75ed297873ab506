"""The packets of LM Studio's SDK: what a client sends, as types, and the errors it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec

from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.models import ModelState

Id = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]  # what JavaScript can count to

N_LISTED = 10  # names of models in an error


class Authentication(msgspec.Struct, rename="camel"):
    """The first packet. SDKs make up both texts; whoever has a key to send puts it into one of them."""

    auth_version: int
    client_identifier: str
    client_passkey: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Everything that may be the server's key; the last form is how LM Studio's own API tokens look."""
        return (
            self.client_passkey,
            self.client_identifier,
            f"sk-lm-{self.client_identifier}:{self.client_passkey}",
        )


class Packet(msgspec.Struct, rename="camel"):
    """Any later packet; which members it has depends on its type."""

    type: str
    endpoint: str = ""
    call_id: Id | None = None
    channel_id: Id | None = None
    subscribe_id: Id | None = None
    ack_id: Id | None = None
    parameter: Any = None
    creation_parameter: Any = None
    message: Any = None
    warning: Any = None


class Query(msgspec.Struct, rename="camel", omit_defaults=True):
    """Which of the models; nothing means any."""

    domain: str | None = None
    identifier: str | None = None
    path: str | None = None
    vision: bool | None = None


class Specifier(msgspec.Struct, rename="camel"):
    """A model by query, or by the reference of one that was loaded. Our references are the models' ids."""

    type: str = "query"
    query: Query | None = None
    instance_reference: str | None = None

    @property
    def name(self) -> str:
        """Empty: any."""
        if self.query is not None:
            return self.query.identifier or self.query.path or ""
        return self.instance_reference or ""

    def check_kind(self) -> None:
        """Raise ApiError when it asks for what no model of ours is."""
        if self.query is not None and (self.query.vision or self.query.domain not in {None, "llm"}):
            wanted = "that reads images" if self.query.vision else f"for {str(self.query.domain)[:40]}"
            raise ApiError(f"There is no model {wanted} here.", status=404, code="model_not_found", param="model")


@contextmanager
def naming(query: Query, models: ModelState) -> Iterator[None]:
    """Errors about a model that isn't here carry what SDKs make their own error of."""
    try:
        yield
    except ApiError as error:
        if error.code == "model_not_found":
            loaded = [models.served.model_id] if models.served is not None else []
            error.extra["displayData"] = {
                "code": "generic.noModelMatchingQuery",
                "query": msgspec.to_builtins(query),
                "loadedModelsSample": loaded[:N_LISTED],
                "totalLoadedModels": len(loaded),
            }
        raise


def error_body(error: ApiError) -> dict[str, Any]:
    """An error as SDKs read it. They show the title; `displayData` they turn into an error class of their own."""
    body: dict[str, Any] = {"title": error.message, "rootTitle": error.message}
    if error.code:
        body["errorData"] = {"code": error.code, "status": error.status}
    if "displayData" in error.extra:
        body["displayData"] = error.extra["displayData"]
    return body
