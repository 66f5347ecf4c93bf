// The TypeScript client of the newer line (`@modelcontextprotocol/client`): both eras.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

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
  const mode = ["legacy", "auto"].includes(plan.mode) ? plan.mode : { pin: plan.mode };
  const capabilities = plan.answers ? { elicitation: { form: {} } } : {};
  const options = { capabilities, versionNegotiation: { mode } };
  const client = new Client({ name: "plan", version: "1.0.0" }, options);
  if (plan.answers) {
    client.setRequestHandler("elicitation/create", answered);
  }
  let note;
  const change = new Promise((done) => (note = done));
  client.setNotificationHandler("notifications/tools/list_changed", note);
  await client.connect(transport());
  const version = client.getNegotiatedProtocolVersion() ?? null;
  const listen = async () => {
    if (version >= "2026-07-28") {
      await client.listen({ toolsListChanged: true });
    }
  };
  return { client, version, listen, change };
});
