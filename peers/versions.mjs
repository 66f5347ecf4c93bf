// A server on the TypeScript SDK of the older line whose list of tools is a file, read at
// every list: versions.mjs FILE. The first line says where it is.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const sessions = new Map();

async function begun() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  const server = new Server({ name: "versions", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: JSON.parse(readFileSync(process.argv[2], "utf8")) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: JSON.stringify(params.arguments) }],
  }));
  await server.connect(transport);
  return transport;
}

const listener = createServer(async (request, response) => {
  const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await begun());
  await transport.handleRequest(request, response);
});
listener.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}/mcp` }));
});
