"""A server on FastMCP over pipes: notes.py [MARK]. MARK only tells its process from others."""

from fastmcp import Context, FastMCP

server = FastMCP("notes")
kept: list[str] = []


@server.tool
def add_note(text: str) -> int:
    """Keeps a note and returns how many there are."""
    kept.append(text)
    return len(kept)


@server.tool
async def count_slowly(ctx: Context) -> str:
    """Counts to three and tells of each."""
    for step in range(1, 4):
        await ctx.report_progress(step, 3)
    return "three"


@server.prompt
def summarise(topic: str) -> str:
    """Asks for a summary of the notes on a topic."""
    return f"Summarise the notes on {topic}."


@server.resource("notes://all")
def all_notes() -> str:
    """Every note."""
    return "\n".join(kept) or "no notes"


server.run(show_banner=False)
