/**
 * The tools, resources and prompts that the public conformance suite requires of a server, in
 * either revision, on stdio or over HTTP:
 *
 *     deno run -A fixture.ts ERA
 *
 * @module
 */

import {
  inputRequired,
  ProtocolError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { takeTasks, TASK_TOOLS, TASKS } from "./tasks.ts";
import { TOOLS } from "./tools.ts";
import {
  type Answers,
  type At,
  form,
  IMAGE,
  type Json,
  type Kind,
  object,
  PNG,
  type Requests,
  STATE,
  string,
  text,
  type Tool,
} from "./words.ts";

const RESOURCES = [
  { uri: "test://static-text", name: "Static text", mimeType: "text/plain" },
  { uri: "test://static-binary", name: "Static binary", mimeType: "image/png" },
  { uri: "test://watched-resource", name: "Watched resource", mimeType: "text/plain" },
].map((one) => ({ ...one, description: `${one.name} for testing` }));

function read(uri: string): Json {
  const [, id] = /^test:\/\/template\/(.+)\/data$/.exec(uri) ?? [];
  if (id !== undefined) {
    const json = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { uri, mimeType: "application/json", text: json };
  }
  switch (uri) {
    case "test://static-text":
      return {
        uri,
        mimeType: "text/plain",
        text: "This is the content of the static text resource.",
      };
    case "test://static-binary":
      return { uri, mimeType: "image/png", blob: PNG };
    case "test://watched-resource":
      return { uri, mimeType: "text/plain", text: "Watched resource content" };
  }
  throw new ProtocolError(-32602, "Resource not found", { uri });
}

const argument = (name: string) => ({ name, description: `The argument ${name}`, required: true });
const PROMPTS = [
  { name: "test_simple_prompt" },
  { name: "test_prompt_with_arguments", arguments: [argument("arg1"), argument("arg2")] },
  { name: "test_prompt_with_embedded_resource", arguments: [argument("resourceUri")] },
  { name: "test_prompt_with_image" },
  { name: "test_input_required_result_prompt" },
].map((one) => ({ ...one, description: `${one.name} for testing` }));

async function prompt(name: string, { args, ask }: At): Promise<unknown> {
  const messages = (...blocks: readonly object[]) => ({
    messages: blocks.map((content) => ({ role: "user", content })),
  });
  switch (name) {
    case "test_simple_prompt":
      return messages(text("This is a simple prompt for testing."));
    case "test_prompt_with_arguments":
      return messages(
        text(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`),
      );
    case "test_prompt_with_embedded_resource": {
      const resource = {
        uri: args.resourceUri,
        mimeType: "text/plain",
        text: "Embedded resource content for testing.",
      };
      return messages(
        { type: "resource", resource },
        text("Please process the embedded resource above."),
      );
    }
    case "test_prompt_with_image":
      return messages(IMAGE, text("Please analyze the image above."));
    case "test_input_required_result_prompt": {
      const schema = object({ context: string });
      const answers = await ask({
        user_context: form("What context should the prompt use?", schema),
      });
      return answers && messages(text(JSON.stringify(answers.user_context)));
    }
  }
  throw new ProtocolError(-32602, "Prompt not found");
}

/** The changes of a fixture in its lists. */
interface Changes {
  tools: number;
  prompts: number;
}

/** The options of a fixture. */
export interface FixtureOptions {
  readonly kind: Kind;
  /** Notifies clients of a changed list. Without it, the connection of the server does so. */
  readonly tell?: (list: "tools" | "prompts") => void;
}

/** Returns a function that creates the server, once for each connection or request. */
export function fixtureOf(options: FixtureOptions): () => Server {
  const changes: Changes = { tools: 0, prompts: 0 };
  return () => makeServer(options, changes);
}

function makeServer({ kind, tell }: FixtureOptions, changes: Changes): Server {
  const isModern = kind === "modern";
  const tools = isModern ? { ...TOOLS, ...TASK_TOOLS } : TOOLS;
  const server = new Server({ name: "fixture", version: "1.0.0" }, {
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
      ...isModern && { extensions: { [TASKS]: {} } },
    },
  });
  const changed: At["changed"] = async (list) => {
    changes[list]++;
    if (tell !== undefined) tell(list);
    else if (list === "tools") await server.sendToolListChanged();
    else await server.sendPromptListChanged();
  };
  server.removeRequestHandler("logging/setLevel");
  if (isModern) takeTasks(server, ableOf);
  server.fallbackRequestHandler = async ({ method, params = {} }, context) => {
    const questions: Json = {};
    const { name, arguments: args = {} } = params as Json;
    const able = isModern ? ableOf(context) : server.getClientCapabilities() ?? {};
    const ask = (requests: Requests) =>
      isModern ? answersInRequest(context, requests, questions) : askNow(context, requests);
    const at = { args: args as Json, able: able as Json, context, ask, changed };
    const result = method === "tools/call"
      ? await toolOf(tools, String(name)).run(at)
      : method === "prompts/get"
      ? await prompt(String(name), at)
      : resultOf(method, { params: params as Json, changes, tools });
    const state = () =>
      inputRequired({
        inputRequests: questions as never,
        requestState: stateOf(context),
      });
    return (result ?? state()) as never;
  };
  return server;
}

const ABLE = "io.modelcontextprotocol/clientCapabilities";

function ableOf({ mcpReq: { envelope } }: ServerContext): Json {
  return Object((envelope as Json | undefined)?.[ABLE]);
}

type Tools = Readonly<Record<string, Tool>>;

function toolOf(tools: Tools, name: string): Tool {
  const tool = tools[name];
  if (tool === undefined) throw new ProtocolError(-32602, `Unknown tool: ${name}`);
  return tool;
}

function shownTool([name, { does, inputSchema = EMPTY }]: readonly [string, Tool]): Json {
  return { name, description: does, inputSchema };
}

const EMPTY = { type: "object", properties: {} };

function addedItems(count: number): readonly Json[] {
  return Array.from({ length: count }, (_, at) => ({
    name: `added_${at}`,
    description: "It was added",
    inputSchema: EMPTY,
  }));
}

function resultOf(
  method: string,
  { params, changes, tools }: {
    readonly params: Json;
    readonly changes: Changes;
    readonly tools: Tools;
  },
): unknown {
  switch (method) {
    case "tools/list":
      return { tools: [...Object.entries(tools).map(shownTool), ...addedItems(changes.tools)] };
    case "prompts/list":
      return { prompts: [...PROMPTS, ...addedItems(changes.prompts)] };
    case "resources/list":
      return { resources: RESOURCES };
    case "resources/templates/list":
      return {
        resourceTemplates: [{
          uriTemplate: "test://template/{id}/data",
          name: "Template",
          description: "A template for testing",
          mimeType: "application/json",
        }],
      };
    case "resources/read":
      return { contents: [read(String(params.uri))] };
    case "completion/complete":
      return { completion: { values: ["paris", "park", "party"], total: 3, hasMore: false } };
    case "resources/subscribe":
    case "resources/unsubscribe":
    case "logging/setLevel":
      return {};
  }
  throw new ProtocolError(-32601, "Method not found");
}

async function askNow(context: ServerContext, requests: Requests): Promise<Answers> {
  const answers = Object.entries(requests).map(async ([key, request]) =>
    [key, await context.mcpReq.send(request as never) as Json] as const
  );
  return Object.fromEntries(await Promise.all(answers));
}

/** Returns the answers in the request. Collects the questions that are still open. */
function answersInRequest(
  context: ServerContext,
  requests: Requests,
  questions: Json,
): Promise<Answers | undefined> {
  const answers = { ...before(context), ...context.mcpReq.inputResponses } as Record<string, Json>;
  const missing = Object.entries(requests).filter(([key]) => typeof answers[key] !== "object");
  if (missing.length === 0) return Promise.resolve(answers);
  Object.assign(questions, Object.fromEntries(missing));
  return Promise.resolve(undefined);
}

/** Returns the answers of earlier rounds, which are in the state. */
function before(context: ServerContext): Json {
  const state = context.mcpReq.requestState<unknown>();
  if (typeof state !== "string") return {};
  const [mark, json = "{}"] = state.split(/\.(.*)/s);
  if (mark !== STATE) throw new ProtocolError(-32602, "The state is not ours");
  return JSON.parse(json) as Json;
}

function stateOf(context: ServerContext): string {
  return `${STATE}.${JSON.stringify({ ...before(context), ...context.mcpReq.inputResponses })}`;
}

if (import.meta.main) {
  const isModern = Deno.args[0] === "modern";
  const make = fixtureOf({ kind: isModern ? "modern" : "legacy" });
  serveStdio(make, isModern ? { legacy: "reject" } : {});
}
