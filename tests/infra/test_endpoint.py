import json
import time

import pytest

from infra.endpoint import (
    NotAModelServer,
    ServerDown,
    ServerSlow,
    Unauthorized,
    UnknownModel,
    attach,
    behind_proxy,
)
from tests.infra.servers import (
    DribblingServer,
    LockedServer,
    ModelServer,
    RefusingServer,
    SayingServer,
    down,
    hanging,
    running,
)


def test_attaching_learns_what_the_server_says_of_its_model() -> None:
    with running(ModelServer()) as url:
        endpoint = attach(url + "/", "echo")
        assert (endpoint.url, endpoint.model, endpoint.vllm, endpoint.max_model_len) == (url, "echo", True, 64)
        assert endpoint.revision == attach(url, "echo").revision


def test_a_server_that_is_not_vllm_gives_text_only() -> None:
    with running(SayingServer(b'{"object": "list", "data": [{"id": "m", "owned_by": "someone"}]}')) as url:
        endpoint = attach(url, "m")
    assert (endpoint.vllm, endpoint.max_model_len) == (False, None)


def test_a_key_opens_a_locked_server_and_is_never_shown() -> None:
    with running(LockedServer()) as url:
        with pytest.raises(Unauthorized, match="set TOUCHSTONE_API_KEY"):
            attach(url, "echo", "wrong")
        assert "sesame" not in repr(attach(url, "echo", "sesame"))


def test_a_server_that_is_down_is_named() -> None:
    with down() as url, pytest.raises(ServerDown, match=f"^{url}: no server answers .*refused.*; start one"):
        attach(url, "echo")


def test_a_server_that_does_not_answer_is_slow() -> None:
    with hanging() as url, pytest.raises(ServerSlow, match=r"no answer within 0\.2 s"):
        attach(url, "echo", timeout_s=0.2)


def test_a_server_that_sends_one_byte_at_a_time_is_slow() -> None:
    started = time.monotonic()
    with running(DribblingServer(b" ", pause_s=0.05)) as url, pytest.raises(ServerSlow):
        attach(url, "echo", timeout_s=0.3)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    "server",
    [
        SayingServer(b"<html>It works!</html>"),
        SayingServer(b'{"status": "ok"}'),
        SayingServer(b'{"data": "models"}'),
        SayingServer(b""),
        SayingServer(b'{"data": [' + b'{"id": "m"}, ' * 1_000_000),
        DribblingServer(b"x" * 1_000_000, pause_s=0),
        RefusingServer(404, "Not Found"),
        RefusingServer(500, "oops"),
    ],
    ids=["html", "json", "no list", "nothing", "a huge list", "a flood", "404", "500"],
)
def test_what_is_no_model_server_is_named_with_the_address_to_give(server: ModelServer) -> None:
    with running(server) as url, pytest.raises(NotAModelServer, match=r"usually ending in /v1$"):
        attach(url, "echo")


def test_an_unknown_model_is_told_what_there_is() -> None:
    body = json.dumps({"data": [{"id": "b"}, {"id": "a"}]}).encode()
    with (
        running(SayingServer(body)) as url,
        pytest.raises(UnknownModel, match=r"^c: .* serves a, b; name one of these"),
    ):
        attach(url, "c")
    with running(SayingServer(b'{"data": []}')) as url, pytest.raises(UnknownModel, match="serves no model"):
        attach(url, "c")


def test_a_server_of_many_models_is_told_in_a_line() -> None:
    body = json.dumps({"data": [{"id": f"m{i:03}"} for i in range(300)]}).encode()
    with running(SayingServer(body)) as url, pytest.raises(UnknownModel, match=r"m008, m009 and 290 more; name one"):
        attach(url, "c")


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "http://", "http:///v1", "http://[/v1", "http://a:b/"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(NotAModelServer, match="is no http address"):
        attach(url, "echo")


def test_proxies_are_for_other_machines() -> None:
    assert [behind_proxy(f"http://{host}/v1") for host in ("127.0.0.1:80", "localhost", "[::1]:80")] == [False] * 3
    assert behind_proxy("https://models.example.org/v1") and behind_proxy("http://10.0.0.5:8000/v1")
