# SPDX-License-Identifier: MIT
"""The story of story.test.mjs, told by the Python SDK (1.x or 2.x)."""
import asyncio
import sqlite3
import sys
import urllib.request
from contextlib import asynccontextmanager
from datetime import timedelta

URL, MODE, DB = sys.argv[1:4]
ID = "python-" + MODE


@asynccontextmanager
async def first(transport):
    from mcp import ClientSession

    async with transport as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            yield session


def connect():
    if MODE.startswith("v2"):
        from mcp.client import Client

        mode = MODE.split("-", 1)[1]
        return Client(URL, mode=mode) if mode != "default" else Client(URL)
    if MODE == "v1-sse":
        from mcp.client.sse import sse_client

        return first(sse_client(URL))
    from mcp.client.streamable_http import streamablehttp_client

    return first(streamablehttp_client(URL))


def say(shell):
    return {
        "identifier": ID,
        "commands": [{"shell": shell}],
        "options": {"await_completion": True, "await_timeout_ms": 100000},
    }


def structured(result):
    found = getattr(result, "structuredContent", None)
    return found if found is not None else result.structured_content


def is_error(result):
    return result.isError if hasattr(result, "isError") else result.is_error


def ok(step):
    print("ok", step, flush=True)


async def call(c, shell, **more):
    if not MODE.startswith("v2"):
        more.setdefault("read_timeout_seconds", timedelta(seconds=120))
    return await c.call_tool("run_sandbox", say(shell), **more)


def runs(state):
    db = sqlite3.connect(f"file:{DB}?mode=ro", uri=True)
    try:
        rows = db.execute("SELECT run_id FROM runs WHERE identifier = ? AND state = ?", (ID, state))
        return [row[0] for row in rows]
    finally:
        db.close()


async def until(what, check):
    for _ in range(2400):
        found = check()
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(what)


async def cancel(c):
    waiting = asyncio.create_task(call(c, "echo here; sleep 300"))
    run_id = (await until("the run to cancel", lambda: runs("running")))[0]
    if MODE.startswith("v2"):
        waiting.cancel()  # to abandon a request is to cancel it
    else:
        from mcp import types

        # This one has no call for it; its own ids are counted.
        params = types.CancelledNotificationParams(requestId=c._request_id - 1, reason="enough")
        note = types.CancelledNotification(method="notifications/cancelled", params=params)
        await c.send_notification(types.ClientNotification(note))
    await until("its end", lambda: run_id in runs("canceled"))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def story(c):
    tools = await c.list_tools()
    assert any(t.name == "run_sandbox" for t in tools.tools)
    ok("list")
    made = await call(c, "echo hello; echo data > /artifacts/data.txt")
    final = structured(made)["final"]
    assert final["state"] == "completed", made
    ok("run")
    url = final["artifacts"][0]["url"]
    assert urllib.request.urlopen(url).read() == b"data\n", url
    ok("artifact")
    slow = await call(c, "sleep 6; echo slept")
    assert structured(slow)["final"] is None and not is_error(slow)
    ok("handle")
    seen = []

    async def progress(done, total, message):
        seen.append((done, message))

    await call(c, "for i in $(seq 12); do echo line $i; sleep 0.5; done", progress_callback=progress)
    assert len(seen) >= 2 and seen[0][0] < seen[1][0], seen
    ok("progress")
    await cancel(c)
    ok("cancel")
    bad = await c.call_tool("run_sandbox", {"identifier": ID, "commands": []})
    assert is_error(bad)
    ok("refusal")
    print("restart?", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def rest(c):
    for _ in range(30):
        try:
            again = await call(c, "cat /artifacts/data.txt")
            break
        except Exception:
            await asyncio.sleep(1)
    assert structured(again)["final"]["commands"][0]["stdout"] == "data\n"
    ok("restart")
    gone = await c.call_tool("delete_sandbox", {"identifier": ID})
    assert structured(gone)["deleted"] is True
    ok("delete")


async def main():
    # The client of the old transport does not come back by itself.
    comes_back = MODE != "v1-sse"
    async with connect() as c:
        await story(c)
        if comes_back:
            await rest(c)
    if not comes_back:
        async with connect() as c:
            await rest(c)
    ok("close")


asyncio.run(main())
