// The echo of the bench on the TypeScript SDK of the newer line, one request at a time. The
// first line says where it is.

import { createServer } from "node:http";

import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  const inputSchema = z.object({ text: z.string() });
  server.registerTool("echo", { description: "Gives back a text.", inputSchema }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
});

const listener = createServer(getRequestListener((request) => handler.fetch(request)));
listener.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}/mcp` }));
});
