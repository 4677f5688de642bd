/**
 * The parts of four APIs of models that clients need to call tools: Anthropic's Messages, OpenAI's
 * Responses and Chat Completions, and Gemini's generateContent.
 *
 * @module
 */

/** The name of a tool in a request; the Responses API has a namespace for the tools of a server. */
export interface ToolName {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** The parts of a request that the fake model reads. */
export interface ModelRequest {
  /** The tools that the client offers. */
  readonly tools: readonly ToolName[];
  /** The results of the tools that were called so far, as text or JSON. */
  readonly results: readonly string[];
}

/** One turn of the model: a text, or the call of one tool. */
export type Turn =
  | { readonly text: string }
  | { readonly tool: ToolName; readonly args: Readonly<Record<string, unknown>> };

/** An API of models. */
export interface ModelApi {
  /** Matches the path of its requests. */
  readonly path: RegExp;
  readonly read: (body: RequestBody) => ModelRequest;
  /** Returns the answer; `id` is unique. */
  readonly answer: (turn: Turn, id: string) => unknown;
  /** Returns the events of the same answer, each with its name where the API has names. */
  readonly events: (turn: Turn, id: string) => readonly unknown[];
}

/** The body of a request: the members of all four APIs. */
export interface RequestBody {
  readonly stream?: boolean;
  readonly tools?: readonly ListedTool[];
  /** Messages and Chat Completions. */
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
  /** Responses. */
  readonly input?: string | readonly { readonly type?: string; readonly output?: unknown }[];
  /** Gemini. */
  readonly contents?: readonly { readonly parts?: readonly GeminiPart[] }[];
}

interface ListedTool extends Partial<ToolName> {
  readonly type?: string;
  readonly function?: ToolName;
  readonly functionDeclarations?: readonly ToolName[];
  readonly tools?: readonly ToolName[];
}

interface GeminiPart {
  readonly functionResponse?: { readonly response?: unknown };
}

const MODEL = "stand-in";

const messages: ModelApi = {
  path: /\/messages$/,
  read: ({ tools = [], messages = [] }) => ({
    tools: tools.map(({ name = "" }) => ({ name })),
    results: messages.flatMap(({ content }) => partsOf(content))
      .filter(({ type }) => type === "tool_result")
      .map(({ content }) => textOf(content)),
  }),
  answer: (turn, id) => ({
    ...{ id, type: "message", role: "assistant", model: MODEL, stop_sequence: null },
    content: [blockOf(turn, id)],
    stop_reason: "tool" in turn ? "tool_use" : "end_turn",
    usage: { input_tokens: 10, output_tokens: 5 },
  }),
  events: (turn, id) => {
    const block = blockOf(turn, id);
    const isTool = "tool" in turn;
    const message = {
      ...{ id, type: "message", role: "assistant", model: MODEL, content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } },
    };
    return [
      { type: "message_start", message },
      {
        type: "content_block_start",
        index: 0,
        content_block: isTool ? { ...block, input: {} } : { ...block, text: "" },
      },
      {
        type: "content_block_delta",
        index: 0,
        delta: isTool
          ? { type: "input_json_delta", partial_json: JSON.stringify(turn.args) }
          : { type: "text_delta", text: turn.text },
      },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: isTool ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { output_tokens: 5 },
      },
      { type: "message_stop" },
    ];
  },
};

function blockOf(turn: Turn, id: string): Readonly<Record<string, unknown>> {
  return "tool" in turn
    ? { type: "tool_use", id: `toolu_${id}`, name: turn.tool.name, input: turn.args }
    : { type: "text", text: turn.text };
}

const chat: ModelApi = {
  path: /\/chat\/completions$/,
  read: ({ tools = [], messages = [] }) => ({
    tools: tools.flatMap((tool) => tool.function ?? []),
    results: messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)),
  }),
  answer: (turn, id) => ({
    ...{ id, object: "chat.completion", created: 1, model: MODEL, usage: CHAT_USAGE },
    choices: [{ index: 0, message: chatMessage(turn, id), finish_reason: finishOf(turn) }],
  }),
  events: (turn, id) => {
    const base = { id, object: "chat.completion.chunk", created: 1, model: MODEL };
    const choice = { index: 0, finish_reason: null };
    return [
      { ...base, choices: [{ ...choice, delta: chatMessage(turn, id) }] },
      { ...base, choices: [{ ...choice, delta: {}, finish_reason: finishOf(turn) }] },
      { ...base, choices: [], usage: CHAT_USAGE },
    ];
  },
};

const CHAT_USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

function chatMessage(turn: Turn, id: string): unknown {
  const role = "assistant";
  if (!("tool" in turn)) return { role, content: turn.text };
  const call = { name: turn.tool.name, arguments: JSON.stringify(turn.args) };
  const tool_calls = [{ index: 0, id: `call_${id}`, type: "function", function: call }];
  return { role, content: null, tool_calls };
}

function finishOf(turn: Turn): string {
  return "tool" in turn ? "tool_calls" : "stop";
}

const responses: ModelApi = {
  path: /\/responses$/,
  read: ({ tools = [], input = [] }) => ({
    tools: tools.flatMap(({ name = "", tools: own }) =>
      own?.map((tool) => ({ name: tool.name, namespace: name })) ?? [{ name }]
    ),
    results: (typeof input === "string" ? [] : input)
      .filter(({ type }) => type === "function_call_output")
      .map(({ output }) => textOf(output)),
  }),
  answer: (turn, id) => ({
    ...{ id: `resp_${id}`, object: "response", created_at: 1, model: MODEL, status: "completed" },
    output: [itemOf(turn, id)],
    usage: {
      ...{ input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    },
  }),
  events: (turn, id) => {
    const response = responses.answer(turn, id) as Readonly<Record<string, unknown>>;
    const item = itemOf(turn, id);
    const at = { output_index: 0, item_id: item.id };
    const empty = { ...item, ..."tool" in turn ? { arguments: "" } : { content: [] } };
    const delta = "tool" in turn
      ? [{ type: "response.function_call_arguments.delta", ...at, delta: item.arguments }]
      : [
        { type: "response.content_part.added", ...at, content_index: 0, part: partOf("") },
        { type: "response.output_text.delta", ...at, content_index: 0, delta: turn.text },
      ];
    const status = "in_progress";
    return [
      { type: "response.created", response: { ...response, status, output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...empty, status } },
      ...delta,
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response },
    ];
  },
};

function itemOf(turn: Turn, id: string): Readonly<Record<string, unknown>> {
  const status = "completed";
  if (!("tool" in turn)) {
    const content = [partOf(turn.text)];
    return { type: "message", id: `msg_${id}`, role: "assistant", status, content };
  }
  const call = { call_id: `call_${id}`, ...turn.tool, arguments: JSON.stringify(turn.args) };
  return { type: "function_call", id: `fc_${id}`, status, ...call };
}

function partOf(text: string): unknown {
  return { type: "output_text", text, annotations: [] };
}

const gemini: ModelApi = {
  path: /:(stream)?generateContent$/i,
  read: ({ tools = [], contents = [] }) => ({
    tools: tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations),
    results: contents.flatMap(({ parts = [] }) => parts)
      .flatMap(({ functionResponse }) =>
        functionResponse ? [textOf(functionResponse.response)] : []
      ),
  }),
  answer: (turn, id) => {
    const part = "tool" in turn
      ? { functionCall: { name: turn.tool.name, args: turn.args } }
      : { text: turn.text };
    return {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      ...{ modelVersion: MODEL, responseId: id },
    };
  },
  events: (turn, id) => [gemini.answer(turn, id)],
};

/** All APIs. */
export const MODEL_APIS: readonly ModelApi[] = [messages, chat, responses, gemini];

function partsOf(
  content: unknown,
): readonly { readonly type?: string; readonly content?: unknown }[] {
  return Array.isArray(content) ? content : [];
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content ?? null);
}
