/**
 * A fake model on 127.0.0.1: it implements the APIs of `apis.ts` and follows a script.
 *
 * @module
 */

import {
  MODEL_APIS,
  type ModelApi,
  type ModelRequest,
  type RequestBody,
  type ToolName,
  type Turn,
} from "./apis.ts";

/** One step of a script: the call of a tool of PML. */
export interface Step {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** A running fake model. */
export interface Model extends AsyncDisposable {
  /** The address, without a slash at its end. */
  readonly url: string;
  /** The requests that offer tools, in order. */
  readonly requests: readonly ModelRequest[];
}

/** The text that ends a session. */
export const DONE = "All done.";

/**
 * The answer to requests without tools, in which clients ask for titles, the next speaker or the
 * best model.
 */
const ASIDE = JSON.stringify({
  ...{ title: "stand-in", isNewTopic: false },
  ...{ reasoning: "-", next_speaker: "user", model_choice: "flash", complexity_score: 1 },
});

/**
 * Starts a fake model that takes one step for each result it gets, and then ends. `nameOf` returns
 * the client's name of a tool of PML, for clients that do not list it.
 *
 * @example await using model = serveModel([{ tool: "search", args: { query: "files" } }], (name) =>
 * ({ name }));
 */
export function serveModel(
  script: readonly Step[],
  nameOf: (tool: string) => ToolName,
): Model {
  const requests: ModelRequest[] = [];
  let count = 0;
  const turnOf = (request: ModelRequest): Turn => {
    if (request.tools.length === 0) return { text: ASIDE };
    requests.push(request);
    // The number of results is in the request, so a repeated request gets the same answer.
    const step = script[request.results.length];
    return step === undefined ? { text: DONE } : { tool: nameOf(step.tool), args: step.args };
  };
  const handle = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (/count_?tokens/i.test(pathname)) return Response.json({ input_tokens: 9, totalTokens: 9 });
    if (pathname.endsWith("/models")) {
      return Response.json({ object: "list", data: [{ id: "stand-in", object: "model" }] });
    }
    const api = MODEL_APIS.find(({ path }) => path.test(pathname));
    if (api === undefined || request.method !== "POST") {
      await request.body?.cancel();
      return Response.json({ error: { message: "no such address" } }, { status: 404 });
    }
    const body = await request.json() as RequestBody;
    const streams = body.stream === true || pathname.includes(":stream");
    return answered(api, turnOf(api.read(body)), { id: `${++count}`, streams });
  };
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, handle);
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    requests,
    // A client that was killed may have left a connection open.
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function answered(
  api: ModelApi,
  turn: Turn,
  { id, streams }: { readonly id: string; readonly streams: boolean },
): Response {
  if (!streams) return Response.json(api.answer(turn, id));
  const events = api.events(turn, id).map((event) => {
    const { type } = event as { readonly type?: string };
    const name = type === undefined ? "" : `event: ${type}\n`;
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  // Chat Completions ends its stream with this word; the others have none.
  const end = api.path.test("/chat/completions") ? "data: [DONE]\n\n" : "";
  const headers = { "content-type": "text/event-stream" };
  return new Response(events.join("") + end, { headers });
}
