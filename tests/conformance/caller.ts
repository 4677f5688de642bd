/**
 * The client of the conformance suite of MCP for scenarios without sign-in: PML with the suite's
 * server behind it. It requests all lists, calls each tool, reads each resource and gets each
 * prompt, as a client of PML.
 *
 * @module
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Era, Message } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import { makeWorkspace } from "../kit/workspace.ts";
import type { ClientRun } from "./forwarding.ts";
import type { Json } from "./words.ts";

/** How long a list may stay empty, in milliseconds. */
const LIST_MS = 1_000;

/** Answers a form with its defaults. */
function accepted(_method: string, { requestedSchema }: Json): unknown {
  const properties = Object(Object(requestedSchema).properties) as Record<string, Json>;
  const content = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, schema.default ?? sampleOf(schema)]),
  );
  return { action: "accept", content };
}

function sampleOf({ type, properties, required = [] }: Json): unknown {
  switch (type) {
    case "string":
      return "text";
    case "number":
    case "integer":
      return 2;
    case "boolean":
      return true;
    case "object":
      return Object.fromEntries(
        (required as readonly string[]).map((name) => [
          name,
          sampleOf(Object(Object(properties)[name])),
        ]),
      );
  }
  return null;
}

/** Removes arguments that are null: their schemas forbid null, so PML would refuse the call. */
function withoutNulls({ name, arguments: args }: Json): Json {
  const given = Object.entries(Object(args)).filter(([, value]) => value !== null);
  return { name, arguments: Object.fromEntries(given) };
}

/** Returns the calls to make: those of the scenario, or one of each tool. */
function callsOf(tools: readonly Json[], context: string): readonly Json[] {
  const { toolCalls } = JSON.parse(context);
  if (toolCalls !== undefined) return (toolCalls as readonly Json[]).map(withoutNulls);
  const [first] = tools;
  return tools.map(({ name, inputSchema }) => {
    // The scenario expects the received schema as an argument.
    if (name === "json_schema_echo") return { name, arguments: { schema: first?.inputSchema } };
    return { name, arguments: sampleOf(inputSchema as Json) };
  });
}

/** Runs the client. Returns its exit code. */
export async function callingClient({ context, revision, url, log }: ClientRun): Promise<number> {
  // A client of an older revision would use a session of the suite's server.
  const era: Era = revision < "2026-07-28" ? "2025-11-25" : "2026-07-28";
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["suite:*"] },
      gateway: { tools_exposure: "full_proxy", prefix: false, meta_tools: [] },
      mcpServers: { suite: { type: "http", url } },
    },
  });
  // The suite's server may be slow on a busy machine, and its tools are listed once.
  await writeFile(join(ws.home, "config.yaml"), "limits:\n  first_list_ms: 60000\n");
  await using pml = new RawStdio(ws, {
    era,
    ownProcess: false,
    answer: accepted,
    capabilities: { elicitation: {}, sampling: {} },
  });
  await pml.open();
  const ask = async (method: string, params: Json = {}): Promise<Json> => {
    const answer: Message = method === "tools/call"
      ? await pml.callTool(String(params.name), Object(params.arguments))
      : await pml.request(method, params);
    log(`${method} ${JSON.stringify(params).slice(0, 200)}`);
    log(`  ${JSON.stringify(answer.result ?? answer.error).slice(0, 500)}`);
    return Object(answer.result);
  };
  const listed = async (method: string, name: string): Promise<readonly Json[]> => {
    let items: readonly Json[] = [];
    // PML answers these lists at once, and a server may have none.
    await waitUntil(async () => {
      items = ((await ask(method))[name] ?? []) as readonly Json[];
      return items.length > 0;
    }, LIST_MS);
    return items;
  };
  const calls = callsOf(await listed("tools/list", "tools"), context);
  // Simultaneous calls test more than consecutive ones.
  await Promise.all(calls.map((call) => ask("tools/call", call)));
  for (const { uri } of await listed("resources/list", "resources")) {
    await ask("resources/read", { uri });
  }
  for (const { name } of await listed("prompts/list", "prompts")) {
    await ask("prompts/get", { name });
  }
  return (await pml.close()).code;
}
