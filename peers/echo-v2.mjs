// The echo of the bench on the TypeScript SDK of the newer line, one request at a time. The
// first line says where it is. With `--stdio` it speaks over pipes.

import { createServer } from "node:http";

import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function echo() {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  const inputSchema = z.object({ text: z.string() });
  server.registerTool("echo", { description: "Gives back a text.", inputSchema }, ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

if (process.argv.includes("--stdio")) {
  serveStdio(echo);
} else {
  const handler = createMcpHandler(echo);
  const listener = createServer(getRequestListener((request) => handler.fetch(request)));
  listener.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}/mcp` }));
  });
}
