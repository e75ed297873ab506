"""Models as LM Studio's SDK lists them, and how the loaded one was loaded."""

from __future__ import annotations

from typing import Any

from dflash_desktop.engine.events import PairInfo
from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.shelf import ShelfModel


def model_info(model: ServedModel | ShelfModel) -> dict[str, Any]:
    """A model of this computer. `path` is its id: Roo Code sends it as the name, and no path leaves the server."""
    if isinstance(model, ServedModel):
        most_tokens, has_tools = max(model.trained_context_tokens, model.context_tokens), model.has_tools
    else:
        most_tokens, has_tools = model.trained_context_tokens or model.context_tokens, True
    info: dict[str, Any] = {
        "type": "llm",
        "modelKey": model.model_id,
        "format": "gguf",
        "displayName": model.display_name,
        "path": model.model_id,
        "sizeBytes": model.size_bytes,
        "architecture": model.architecture,
        "vision": False,
        "trainedForToolUse": has_tools,
        "maxContextLength": most_tokens,
    }
    if model.params_text:
        info["paramsString"] = model.params_text
    if model.bits_per_weight >= 1:
        info["quantization"] = {"name": model.quantization, "bits": int(model.bits_per_weight)}
    return info


def instance_info(served: ServedModel) -> dict[str, Any]:
    """The loaded model."""
    return {
        **model_info(served),
        "identifier": served.model_id,
        "instanceReference": served.model_id,
        "contextLength": served.context_tokens,
    }


def load_fields(served: ServedModel, pair: PairInfo | None) -> dict[str, Any]:
    """How it was loaded, as far as LM Studio has a word for it. `pair`: None when it is not loaded any more."""
    fields: list[dict[str, Any]] = [{"key": "llm.load.contextLength", "value": served.context_tokens}]
    if pair is not None:
        types = (("kCacheQuantizationType", pair.options.kv_k), ("vCacheQuantizationType", pair.options.kv_v))
        for key, chosen in types:
            if chosen != "auto":
                fields.append({"key": f"llm.load.llama.{key}", "value": {"checked": True, "value": chosen}})
    return {"fields": fields}
