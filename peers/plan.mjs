// What both TypeScript clients share: the plan, the person, and telling each step as a line of JSON.

export const plan = JSON.parse(process.argv[2]);

export function tell(event) {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** What the person was asked. */
export const asked = [];

/** An answer to every field: the wanted one where it is on offer, else the first. */
function filledIn(schema, wanted) {
  const content = {};
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const choices = field.enum ?? field.oneOf?.map((each) => each.const) ?? [];
    if (choices.length > 0) {
      content[name] = choices.includes(wanted) ? wanted : choices[0];
    } else {
      content[name] = { boolean: true, integer: 1, number: 1 }[field.type] ?? "word";
    }
  }
  return content;
}

/** Somebody at the client, who takes a while to read. The last answer holds for every further question. */
export async function answered(request) {
  const { message, requestedSchema } = request.params;
  const answer = plan.answers[Math.min(asked.length, plan.answers.length - 1)];
  asked.push({ message, schema: requestedSchema });
  await new Promise((done) => setTimeout(done, answer.afterMs ?? 0));
  if (answer.action !== "accept") {
    return { action: answer.action };
  }
  return { action: "accept", content: answer.content ?? filledIn(requestedSchema, answer.choice) };
}

/**
 * Connects and takes the steps. `connect` answers with a client, its protocol version, what to do
 * before changes can be heard of, and the promise of the first.
 */
export async function walk(connect) {
  try {
    const connection = await connect();
    const { client, version } = connection;
    tell({ connected: true, version });
    for (const [number, step] of plan.steps.entries()) {
      tell({ step: number, ...(await taken(connection, step, number)) });
    }
    await client.close();
    tell({ end: true, asked });
  } catch (error) {
    tell({ failed: [`${error.name}: ${error.message}`], status: error.code ?? null });
    process.exitCode = 1;
  }
  // A stream that is still open must not keep the process.
  process.exit();
}

async function taken({ client, listen, change }, step, number) {
  switch (step.do) {
    case "list":
      return { tools: (await client.listTools()).tools };
    case "call":
      return called(client, step);
    case "hear": {
      await listen();
      tell({ step: number, listening: true });
      await change;
      return { tools: (await client.listTools()).tools };
    }
  }
}

async function called(client, step) {
  const progress = [];
  const options = { timeout: 120_000 };
  if (step.progress) {
    options.onprogress = (each) => progress.push(each);
  }
  try {
    const result = await client.callTool({ name: step.name, arguments: step.arguments }, ...(client.options ?? []), options);
    const words = result.content.filter((block) => block.type === "text").map((block) => block.text);
    return { isError: result.isError ?? false, text: words.join("\n"), structured: result.structuredContent ?? null, progress };
  } catch (error) {
    return { error: { code: error.code, message: error.message }, progress };
  }
}
