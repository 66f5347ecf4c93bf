"""Walks through a plan with the official Python client and tells each step as a line of JSON.

The plan is the first argument; README.md says what may stand in it.
"""

import asyncio
import json
import sys

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

WAIT_SECONDS = 30


def tell(**event):
    print(json.dumps(event), flush=True)


def server(plan):
    if "command" in plan:
        program, *arguments = plan["command"]
        return StdioServerParameters(command=program, args=arguments, env=plan.get("environment"))
    headers = {"Authorization": f"Bearer {plan['token']}"} if "token" in plan else {}
    timeout = httpx2.Timeout(WAIT_SECONDS, read=300)
    http = httpx2.AsyncClient(headers=headers, timeout=timeout)
    return streamable_http_client(plan["url"], http_client=http)


def filled_in(schema, wanted):
    """An answer to every field: the wanted one where it is on offer, else the first."""
    content = {}
    for name, field in schema.get("properties", {}).items():
        choices = field.get("enum") or [each["const"] for each in field.get("oneOf", [])]
        if choices:
            content[name] = wanted if wanted in choices else choices[0]
        else:
            content[name] = {"boolean": True, "integer": 1, "number": 1}.get(field.get("type"), "word")
    return content


def person(plan, asked):
    """Somebody at the client, who takes a while to read; nobody if the plan has no answers."""
    answers = plan.get("answers")
    if answers is None:
        return None

    async def elicitation(_context, params):
        schema = getattr(params, "requested_schema", None) or {}
        # The last answer holds for every further question.
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append({"message": params.message, "schema": schema})
        await asyncio.sleep(answer.get("afterMs", 0) / 1000)
        if answer["action"] != "accept":
            return types.ElicitResult(action=answer["action"])
        content = answer.get("content") or filled_in(schema, answer.get("choice"))
        return types.ElicitResult(action="accept", content=content)

    return elicitation


async def listed(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def called(client, step):
    heard = []

    async def progress(done, total, message):
        heard.append({"progress": done, "total": total, "message": message})

    callback = progress if step.get("progress") else None
    try:
        result = await client.call_tool(step["name"], step.get("arguments"), progress_callback=callback)
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}, "progress": heard}
    words = [block.text for block in result.content if block.type == "text"]
    return {
        "isError": bool(result.is_error),
        "text": "\n".join(words),
        "structured": result.structured_content,
        "progress": heard,
    }


async def heard(client, number, changes):
    """Says that it listens, and then what it sees once the list has changed."""
    if client.protocol_version >= "2026-07-28":
        async with client.listen(tools_list_changed=True) as subscription:
            tell(step=number, listening=True)
            async for _event in subscription:
                break
    else:
        tell(step=number, listening=True)
        await changes.get()
    return await listed(client)


async def walk(plan):
    asked, changes = [], asyncio.Queue()

    async def message(message):
        if isinstance(message, types.ToolListChangedNotification):
            changes.put_nowait(True)

    options = {"mode": plan["mode"], "message_handler": message, "elicitation_callback": person(plan, asked)}
    async with Client(server(plan), **options) as client:
        tell(connected=True, version=client.protocol_version)
        for number, step in enumerate(plan["steps"]):
            match step["do"]:
                case "list":
                    tell(step=number, tools=await listed(client))
                case "call":
                    tell(step=number, **await called(client, step))
                case "hear":
                    tools = await asyncio.wait_for(heard(client, number, changes), WAIT_SECONDS)
                    tell(step=number, tools=tools)
    tell(end=True, asked=asked)


def causes(error):
    """Everything that went wrong, out of the groups it comes in."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in causes(each)]
    return [error]


def main():
    try:
        asyncio.run(walk(json.loads(sys.argv[1])))
    except BaseException as error:
        tell(failed=[f"{type(each).__name__}: {each}" for each in causes(error)])
        sys.exit(1)


main()
