"""The lock on every door of a model server: ASGI middleware that runs inside it."""

import os
import secrets

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class OnlyWithKey:
    """Answers who has the API key, whatever the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._key = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(given, self._key):
                await JSONResponse({"error": "Unauthorized"}, status_code=401)(scope, receive, send)
                return
        await self._app(scope, receive, send)
