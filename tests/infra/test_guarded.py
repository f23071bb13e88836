"""The server's door: no path without the key."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from infra.guarded import OnlyWithKey


@pytest.mark.parametrize(
    ("header", "status"), [({}, 401), ({"Authorization": "Bearer guess"}, 401), ({"Authorization": "Bearer k"}, 200)]
)
async def test_every_path_answers_who_has_the_key_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, header: dict[str, str], status: int
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "k")

    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse("in")

    app = OnlyWithKey(Starlette(routes=[Route("/collective_rpc", answer, methods=["POST"])]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as http:
        assert (await http.post("/collective_rpc", headers=header)).status_code == status
