"""LM Studio's SDK protocol, packet by packet, on a real socket: listings, predictions, loads, errors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.engine.events import JobFailed
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.requests import LoadPair
from dflash_desktop.server.events import ClientSeen, RequestArrived, RequestEnded, RequestRefused, RequestRendered
from dflash_desktop.server.shelf import Shelf
from support.api_server import Api, Start
from support.patience import LONG_S, until
from support.scripted_engine import Pace, ScriptedEngine
from support.sdk_socket import SdkSocket, prediction, specifier, stack, text_message, text_of

CALL = "Look.\n<tool_call>\n<function=read>\n<parameter=path>\n资料/a 😀.txt\n</parameter>\n</function>\n</tool_call>"
TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
SLOW = Pace(step_s=0.005)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "small.gguf").write_bytes(b"content")

    def inspect(path: Path) -> ModelFile:
        return ModelFile(
            path=path, role="target", can_run=True, reason="", architecture="llama", name="Small 135M",
            quantization="Q8_0", n_parameters=135_000_000, file_bytes=7, n_layers=1, n_embd=1, n_vocab=9,
            context_tokens=8192, block_size=0, mask_token=None, feature_layers=(),
        )  # fmt: skip

    made = Shelf([tmp_path], inspect, lambda target: ())
    made.refresh()
    return made


def test_downloaded_models_are_the_loaded_one_and_those_on_the_shelf(start: Start, shelf: Shelf) -> None:
    api = start(shelf=shelf)
    with SdkSocket(api.server.port, "/system") as system:
        assert system.admitted == {"success": True}
        loaded, small = system.result("listDownloadedModels")
        version = system.result("version")
    assert small == {
        "type": "llm", "modelKey": "small-135m", "format": "gguf", "displayName": "Small 135M", "path": "small-135m",
        "sizeBytes": 7, "paramsString": "135M", "architecture": "llama", "vision": False, "trainedForToolUse": True,
        "maxContextLength": 8192, "quantization": {"name": "Q8_0", "bits": 8},
    }  # fmt: skip
    assert loaded["path"] == loaded["modelKey"] == "qwen3.5-27b" and loaded["maxContextLength"] == 262144
    assert version["version"].count(".") == 2 and type(version["build"]) is int
    assert any(isinstance(event, ClientSeen) and event.client == "lm_studio" for event in api.events)


def test_the_loaded_model_by_every_name_it_has(api: Api) -> None:
    with SdkSocket(api.server.port) as llm:
        (instance,) = llm.result("listLoaded")
        assert (instance["identifier"], instance["contextLength"]) == ("qwen3.5-27b", 4096)
        by_reference = {"type": "instanceReference", "instanceReference": instance["instanceReference"]}
        for each in (by_reference, specifier(), specifier("qwen3.5-27b"), specifier("Qwen3.5-27B-Q4_K_M.gguf")):
            assert llm.result("getModelInfo", {"specifier": each, "throwIfNotFound": True}) == instance
        config = llm.result("getLoadConfig", {"specifier": specifier()})
        assert config == {"fields": [{"key": "llm.load.contextLength", "value": 4096}]}
        state = llm.result("getInstanceProcessingState", {"specifier": specifier()})
        assert state == {"status": "idle", "queued": 0}


def test_a_model_that_is_not_there_is_no_result_or_an_error_as_asked(api: Api) -> None:
    with SdkSocket(api.server.port) as llm:
        missing = llm.call("getModelInfo", {"specifier": specifier("nope"), "throwIfNotFound": False})
        assert missing["type"] == "rpcResult" and "result" not in missing
        error = llm.error("getModelInfo", {"specifier": specifier("nope"), "throwIfNotFound": True})
        assert error["title"] == "'nope' is not loaded."
        assert error["displayData"] == {
            "code": "generic.noModelMatchingQuery",
            "query": {"identifier": "nope"},
            "loadedModelsSample": ["qwen3.5-27b"],
            "totalLoadedModels": 1,
        }
        sees = {"specifier": {"type": "query", "query": {"vision": True}}, "throwIfNotFound": True}
        assert "images" in llm.error("getModelInfo", sees)["title"]
    with SdkSocket(api.server.port, "/embedding") as embedding:
        assert embedding.result("listLoaded") == []
        assert "embedding" in embedding.error("embedString", {"inputString": "a"})["title"]


def test_tokens_and_the_prompt_as_the_model_reads_it(api: Api) -> None:
    with SdkSocket(api.server.port) as llm:
        asked = {"specifier": specifier(), "inputString": "hello there"}
        tokens = llm.result("tokenize", asked)["tokens"]
        assert len(tokens) == 3 and llm.result("countTokens", asked) == {"tokenCount": 3}
        messages = [text_message("system", "Be kind."), text_message("user", "Hi")]
        body = {"specifier": specifier(), "history": {"messages": messages}, "predictionConfigStack": stack()}
        formatted = llm.result("applyPromptTemplate", {**body, "opts": {}})["formatted"]
    assert formatted.startswith("<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>")


def test_a_prediction_streams_and_ends_with_its_figures(api: Api) -> None:
    settings: dict[str, Any] = {
        "temperature": 0.5, "topKSampling": 7, "topPSampling": {"checked": True, "value": 0.9},
        "minPSampling": {"checked": False, "value": 0.4}, "maxPredictedTokens": {"checked": True, "value": 100},
        "stopStrings": ["###"], "speculativeDecoding__draftModel": "other",
    }  # fmt: skip
    with SdkSocket(api.server.port) as llm:
        messages = llm.stream("predict", prediction("Hi", **settings))
    done = messages[-1]
    assert done["type"] == "success" and text_of(messages) == "Hello from the script."
    shares = [each["progress"] for each in messages if each["type"] == "promptProcessingProgress"]
    assert shares == sorted(shares) and shares[-1] == 1.0
    fragments = [each["fragment"] for each in messages if each["type"] == "fragment"]
    assert all(each["reasoningType"] == "none" and each["isStructural"] is False for each in fragments)
    stats = done["stats"]
    assert sum(each["tokensCount"] for each in fragments) == stats["predictedTokensCount"] == 6
    assert stats["stopReason"] == "eosFound" and stats["promptTokensCount"] > 0 and stats["tokensPerSecond"] > 0
    assert stats["totalTokensCount"] == stats["promptTokensCount"] + 6 and stats["timeToFirstTokenSec"] > 0
    assert (stats["usedDraftModelKey"], stats["totalDraftTokensCount"]) == ("qwen3.5-27b-dflash", 24)
    assert done["modelInfo"]["identifier"] == "qwen3.5-27b" and done["loadModelConfig"]["fields"]
    assert {"key": "llm.prediction.temperature", "value": 0.5} in done["predictionConfig"]["fields"]
    (job,) = api.engine.jobs
    assert (job.sampling.temperature, job.sampling.top_k, job.sampling.top_p) == (0.5, 7, 0.9)
    assert job.sampling.min_p == 0.0 and job.max_tokens == 100 and job.stop == ("###",)


def test_a_prediction_is_in_the_list_of_requests_like_any_other(api: Api) -> None:
    with SdkSocket(api.server.port, headers=((b"User-Agent", b"roo-code/3"),)) as llm:
        llm.stream("predict", prediction("Hi", speculativeDecoding__draftModel="other"))
    (arrived,) = [event for event in api.events if isinstance(event, RequestArrived)]
    (rendered,) = [event for event in api.events if isinstance(event, RequestRendered)]
    (ended,) = [event for event in api.events if isinstance(event, RequestEnded)]
    assert arrived.request_id == rendered.request_id == ended.request_id
    assert (arrived.client, arrived.path, arrived.is_stream) == ("roo_code", "/llm", True)
    assert "Hi" in rendered.prompt_text and ended.reply_text == "Hello from the script."
    assert ended.outcome == "stop" and "ignored settings: speculativeDecoding.draftModel" in ended.notes


def test_thoughts_come_between_tags_of_their_own(start: Start) -> None:
    api = start(ScriptedEngine(script="<think>\nHm.\n</think>\n\nDone."))
    with SdkSocket(api.server.port) as llm:
        messages = llm.stream("predict", prediction())
    fragments = [each["fragment"] for each in messages if each["type"] == "fragment"]
    kinds = list(dict.fromkeys(each["reasoningType"] for each in fragments))
    assert kinds == ["reasoningStartTag", "reasoning", "reasoningEndTag", "none"]
    assert text_of(messages) == "<think>\nHm.\n</think>\n\nDone."


def test_a_tool_call_and_the_round_trip_of_its_result(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL))
    tools = {"type": "toolArray", "tools": [TOOL]}
    with SdkSocket(api.server.port) as llm:
        messages = llm.stream("predict", prediction("Read it", tools=tools))
        kinds = [each["type"] for each in messages if each["type"].startswith("toolCall")]
        assert kinds[:2] == ["toolCallGenerationStart", "toolCallGenerationNameReceived"]
        request = next(each["toolCallRequest"] for each in messages if each["type"] == "toolCallGenerationEnd")
        assert (request["type"], request["name"]) == ("function", "read")
        assert request["arguments"] == {"path": "资料/a 😀.txt"}
        assert text_of(messages) == "Look." and messages[-1]["stats"]["stopReason"] == "toolCalls"
        history = [
            text_message("user", "Read it"),
            {"role": "assistant", "content": [
                {"type": "text", "text": "Look."}, {"type": "toolCallRequest", "toolCallRequest": request}]},
            {"role": "tool", "content": [
                {"type": "toolCallResult", "content": "contents", "toolCallId": request["id"]}]},
        ]  # fmt: skip
        llm.stream("predict", prediction(history, tools=tools))
    assert CALL.partition("\n")[2] in api.engine.prompts[1] and "tool\ncontents" in api.engine.prompts[1]


def test_a_text_is_continued_as_it_is(api: Api) -> None:
    asked = prediction("Once upon")
    template = {"llm.prediction.promptTemplate": {"type": "jinja", "jinjaPromptTemplate": {"template": "x"}}}
    asked["predictionConfigStack"]["layers"] += stack("completeModeFormatting", **template)["layers"]
    with SdkSocket(api.server.port) as llm:
        assert text_of(llm.stream("predict", asked)) == "Hello from the script."
        refused = llm.stream("predict", prediction("Hi", promptTemplate={"type": "manual"}))
    assert api.engine.prompts == ["Once upon"]
    assert "promptTemplate" in refused[-1]["error"]["title"]


def test_a_json_schema_is_enforced_and_a_grammar_refused(start: Start) -> None:
    api = start(ScriptedEngine(script='{"a": 1}'))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with SdkSocket(api.server.port) as llm:
        messages = llm.stream("predict", prediction("Hi", structured={"type": "json", "jsonSchema": schema}))
        assert text_of(messages) == '{"a": 1}'
        refused = llm.stream("predict", prediction("Hi", structured={"type": "gbnf", "gbnfGrammar": "root"}))
    assert '"integer"' in api.engine.prompts[0] and "GBNF" in refused[-1]["error"]["title"]


def test_a_cancelled_prediction_ends_with_what_there_is_and_stops_the_engine(start: Start) -> None:
    api = start(ScriptedEngine(script="word " * 3000, pace=SLOW))
    with SdkSocket(api.server.port) as llm:
        channel = llm.open("predict", prediction())
        said: list[dict[str, Any]] = []
        for message in llm.messages(channel):
            said.append(message)
            if len(said) == 6:
                llm.cancel(channel)
        assert said[-1]["stats"]["stopReason"] == "userStopped"
        assert 0 < said[-1]["stats"]["predictedTokensCount"] < 3000
        assert api.engine.idle.wait(LONG_S)
        assert llm.result("listLoaded")
    (ended,) = [event for event in api.events if isinstance(event, RequestEnded)]
    assert ended.outcome == "cancelled" and ended.reply_text


def test_predictions_on_one_socket_wait_for_each_other_and_calls_do_not(start: Start) -> None:
    may_go_on = threading.Event()
    api = start(ScriptedEngine(script=lambda _: "word" if may_go_on.wait(LONG_S) else "never told to"))
    with SdkSocket(api.server.port) as llm:
        first, second = llm.open("predict", prediction()), llm.open("predict", prediction())
        llm.send({"type": "rpcCall", "endpoint": "listLoaded", "callId": 99})
        order: list[Any] = []
        while order.count("close") < 2:
            packet = llm.receive()
            if packet["type"] == "rpcResult":
                order.append("listed")
                may_go_on.set()
            elif packet["type"] == "channelClose":
                order.append("close")
            elif packet["message"]["type"] == "success":
                order.append(packet["channelId"])
    assert order == ["listed", first, "close", second, "close"]


def test_a_load_tells_its_progress_and_changes_what_is_loaded(start: Start, shelf: Shelf) -> None:
    api = start(ScriptedEngine(pace=Pace(load_s=0.6)), shelf=shelf)
    with SdkSocket(api.server.port) as llm:
        body = {"identifier": "qwen3.5-27b", "loadConfigStack": {"layers": []}}
        (there,) = llm.stream("getOrLoad", body)
        assert there["type"] == "alreadyLoaded" and not api.engine.loads
        started, *progress, done = llm.stream("getOrLoad", {**body, "identifier": "small-135m", "loadTtlMs": 60000})
        assert started["type"] == "startLoading" and started["info"]["modelKey"] == "small-135m"
        assert progress and all(each["type"] == "loadProgress" and 0 <= each["progress"] <= 1 for each in progress)
        assert done["type"] == "loadSuccess" and done["info"]["contextLength"] == 8192
        assert api.engine.loads[0].target.name == "small.gguf"
        context = stack(llm__load__contextLength=2048)
        resolved, *_, same = llm.stream("loadModel", {"modelKey": done["info"]["modelKey"], "loadConfigStack": context})
        assert (resolved["type"], same["type"]) == ("resolved", "success") and len(api.engine.loads) == 1
        assert llm.call("unloadModel", {"identifier": same["info"]["identifier"]})["type"] == "rpcResult"
        assert llm.result("listLoaded") == []
        *_, again = llm.stream("predict", prediction(name="small-135m"))
        assert again["type"] == "success" and again["modelInfo"]["modelKey"] == done["info"]["modelKey"]


@pytest.mark.parametrize("endpoint", ["getOrLoad", "predict"])
def test_what_is_cancelled_during_a_load_ends_at_once_and_the_load_goes_on(
    start: Start, shelf: Shelf, endpoint: str
) -> None:
    may_go_on = threading.Event()

    def held(job: LoadPair) -> None:
        may_go_on.wait(LONG_S)

    api = start(ScriptedEngine(load_failure=held), shelf=shelf)
    load = {"identifier": "small-135m", "loadConfigStack": {"layers": []}}
    with SdkSocket(api.server.port) as llm:
        channel = llm.open(endpoint, load if endpoint == "getOrLoad" else prediction(name="small-135m"))
        until(lambda: api.engine.loads, "the load has begun")
        llm.cancel(channel)
        kinds = [each["type"] for each in llm.messages(channel)]
        assert not api.engine.idle.is_set() and not {"channelError", "loadSuccess"} & set(kinds)
        may_go_on.set()
        until(lambda: llm.result("listLoaded")[0]["modelKey"] == "small", "the load has come to its end")
        assert not api.engine.jobs


def test_a_load_that_fails_says_why(start: Start, shelf: Shelf) -> None:
    engine = ScriptedEngine(load_failure=lambda job: JobFailed(0, "the file is damaged", "bad_request"))
    api = start(engine, shelf=shelf)
    with SdkSocket(api.server.port) as llm:
        *_, failed = llm.stream("loadModel", {"modelKey": "small-135m", "loadConfigStack": {"layers": []}})
    assert failed["type"] == "channelError" and "the file is damaged" in failed["error"]["title"]


def test_failures_of_the_engine_and_of_the_request_are_channel_errors(start: Start) -> None:
    api = start(ScriptedEngine(failure=JobFailed(0, "no memory", "out_of_memory")))
    with SdkSocket(api.server.port) as llm:
        (error,) = [each for each in llm.stream("predict", prediction()) if each["type"] == "channelError"]
        assert error["error"]["title"] == "no memory"
        (long,) = llm.stream("predict", prediction("x" * 40_000))
        assert "context length exceeded" in long["error"]["title"]
        picture = [{"role": "user", "content": [{"type": "file", "fileType": "image", "name": "a", "identifier": "b"}]}]
        (image,) = llm.stream("predict", prediction(picture))
        assert "text only" in image["error"]["title"]
        (wrong,) = llm.stream("predict", prediction("Hi", topKSampling="many"))
        assert "top_k" in wrong["error"]["title"]
        (missing,) = llm.stream("predict", {"history": {"messages": []}})
        assert "modelSpecifier" in missing["error"]["title"]


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/system", "startHttpServer"), ("/system", "notify"), ("/llm", "preloadDraftModel"), ("/llm", "nonsense"),
        ("/files", "uploadFileBase64"), ("/repository", "searchModels"), ("/plugins", "reindexPlugins"),
        ("/diagnostics", "any"),
    ],
)  # fmt: skip
def test_what_is_not_served_is_answered_with_an_error_that_says_so(api: Api, path: str, endpoint: str) -> None:
    with SdkSocket(api.server.port, path) as sock:
        assert f"{endpoint} is not served here" in sock.error(endpoint, {})["title"]
        (error,) = sock.stream(endpoint)
        assert error["type"] == "channelError"
        for kind, answer in (("signal", "signalError"), ("writableSignal", "writableSignalError")):
            sock.send({"type": f"{kind}Subscribe", "endpoint": endpoint, "subscribeId": 3, "creationParameter": None})
            assert sock.receive()["type"] == answer
        sock.send({"type": "keepAlive"})
        assert sock.receive() == {"type": "keepAliveAck"}
    assert any(isinstance(event, RequestRefused) and event.path == path for event in api.events)


def test_a_silent_stretch_is_filled_so_that_sdks_do_not_give_up(start: Start) -> None:
    may_speak = threading.Event()
    api = start(ScriptedEngine(script=lambda _: "Hello" if may_speak.wait(LONG_S) else "never told to"))
    with SdkSocket(api.server.port) as llm:
        kinds: list[str] = []
        for message in llm.messages(llm.open("predict", prediction())):
            kinds.append(message["type"])
            if kinds.count("promptProcessingProgress") == 10:  # prefill itself has two chunks to tell of
                may_speak.set()
    assert kinds.count("promptProcessingProgress") >= 10 and kinds[-1] == "success"
