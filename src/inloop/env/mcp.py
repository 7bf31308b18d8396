"""The tools over MCP: what an agent that speaks it gets. No reset among them: an agent can't start over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inloop.env.models import InloopAction
from inloop.harness.tools import SCHEMAS


def tool_server(env: Any) -> Any:
    """A FastMCP server whose tools are those of an `InloopEnvironment`, with the harness's own schemas."""
    from fastmcp import FastMCP
    from fastmcp.tools import FunctionTool

    server: Any = FastMCP("inloop")
    for name in env.hall.place.harness.tools:
        spec = SCHEMAS[name]["function"]
        tool = FunctionTool(
            name=name, description=spec["description"], parameters=spec["parameters"], fn=_caller(env, name)
        )
        server.add_tool(tool)
    return server


def _caller(env: Any, name: str) -> Callable[..., Any]:
    async def call(**arguments: Any) -> dict[str, Any]:
        seen = await env.step_async(InloopAction(tool=name, **arguments))
        told = {"reward": seen.reward, "done": seen.done, "stop": seen.stop, **seen.metadata}
        content = [{"type": "text", "text": seen.text}]
        return {"content": content, "isError": seen.is_error, "structuredContent": told, "data": seen.text}

    return call
