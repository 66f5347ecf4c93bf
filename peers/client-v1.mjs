// The TypeScript client of the older line (`@modelcontextprotocol/sdk`): sessions only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

import { answered, plan, walk } from "./plan.mjs";

function transport() {
  if (plan.command) {
    const [command, ...args] = plan.command;
    return new StdioClientTransport({ command, args, env: plan.environment });
  }
  const headers = plan.token ? { Authorization: `Bearer ${plan.token}` } : {};
  return new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers } });
}

await walk(async () => {
  const capabilities = plan.answers ? { elicitation: {} } : {};
  const client = new Client({ name: "plan", version: "1.0.0" }, { capabilities });
  // Its `callTool` takes a schema of the result before the options.
  client.options = [undefined];
  if (plan.answers) {
    client.setRequestHandler(ElicitRequestSchema, answered);
  }
  let note;
  const change = new Promise((done) => (note = done));
  client.setNotificationHandler(ToolListChangedNotificationSchema, note);
  let version;
  const wire = transport();
  const set = wire.setProtocolVersion?.bind(wire);
  wire.setProtocolVersion = (negotiated) => {
    version = negotiated;
    set?.(negotiated);
  };
  await client.connect(wire);
  return { client, version: version ?? null, listen: async () => {}, change };
});
