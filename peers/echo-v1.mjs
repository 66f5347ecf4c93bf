// The echo of the bench on the TypeScript SDK of the older line, with sessions. The first
// line says where it is. With `--stdio` it speaks over pipes.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const sessions = new Map();

function echo() {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  server.registerTool("echo", { description: "Gives back a text.", inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

async function begun() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await echo().connect(transport);
  return transport;
}

const listener = createServer(async (request, response) => {
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await begun());
  await transport.handleRequest(request, response);
});
if (process.argv.includes("--stdio")) {
  await echo().connect(new StdioServerTransport());
} else {
  listener.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}/mcp` }));
  });
}
