/**
 * Questions to the person through the client: PML's own, and those of servers.
 *
 * @module
 */

import type {
  Answer,
  CallClient,
  CallTool,
  Page,
  Question,
  Reply,
  ServerRequest,
} from "../core/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import {
  defined,
  inset,
  isObject,
  type JsonObject,
  objectOf,
  quoted,
  textOf,
} from "../core/json.ts";
import { safeSchema } from "../core/safe_text.ts";
import { toolId } from "../core/tool_id.ts";
import type { Client } from "./_clients.ts";
import type { Peer, RequestContext } from "../protocol/connection.ts";
import { APPROVAL_KEY, type AskClient, type Pause } from "./_runs.ts";

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const CLIENT = "io.modelcontextprotocol/clientInfo";
const SECRET =
  /pass(?:word|phrase|code)|secret|token|credential|private.?key|api.?key|\bpin\b|one.?time/i;
const MESSAGE_MAX = 4_000;
/** More than one blank line. */
const BLANK_LINES = /(?:\n\p{Zs}*){3,}/gu;
const FORM_MAX = 64_000;
/** What answers in place of a client that has no model. */
const MODEL = "name a model in `sampling` of config.yaml";
/** Puts a question to the person; the handle travels as the state that the answer must carry. */
export function ask(question: Question): Pause {
  const approval = { method: "elicitation/create", params: formOf(question) };
  return {
    resultType: "input_required",
    inputRequests: { [APPROVAL_KEY]: approval },
    requestState: question.handle,
  };
}

/** Asks a client of the older protocol, whose request waits meanwhile. */
export function askNow(context: RequestContext, ms: () => number): AskClient {
  return ({ method, params, signal }) => context.ask(method, params, { signal, ms: ms() });
}

/** Asks the person while a request waits; gives nothing where the client fails to ask. */
export async function askMeanwhile(
  question: Question,
  from: { readonly askClient: AskClient; readonly signal: AbortSignal },
): Promise<Answer | undefined> {
  const { signal, askClient } = from;
  try {
    const params = formOf(question);
    const said = await askClient({ method: "elicitation/create", params, signal });
    return { handle: question.handle, reply: replyOf(said) };
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

/** Reads the answer that a request carries; undefined for a first request. */
export function answerOf(
  { requestState: handle, inputResponses }: RequestContext,
): Answer | undefined {
  if (typeof handle !== "string") return undefined;
  const said: unknown = inputResponses?.[APPROVAL_KEY];
  return { handle, reply: isObject(said) ? replyOf(objectOf(said)) : "cancelled" };
}

/** Gives what the client that sent a request can do. */
export function capabilitiesOf(
  { envelope }: Pick<RequestContext, "envelope">,
  declared: unknown,
): JsonObject {
  return objectOf(envelope?.[CAPABILITIES] ?? declared);
}

/** Returns the name that the client which sent a request says it has. */
export function clientNameOf(
  { envelope }: Pick<RequestContext, "envelope">,
  peer: Peer,
): string {
  return textOf(objectOf(envelope?.[CLIENT] ?? peer.getClientVersion()).name);
}

/** Tells whether a client can put a form to its person. */
export function canAsk({ elicitation }: JsonObject): boolean {
  if (!isObject(elicitation)) return false;
  const modes = Object.keys(elicitation);
  // An empty object is how clients said "forms" before there were modes.
  return modes.length === 0 || modes.includes("form");
}

/** Returns whether a client can open a page for its person. */
export function canOpen({ elicitation }: JsonObject): boolean {
  return isObject(elicitation) && "url" in elicitation;
}

/** Has a client open a page, and tells one of an older revision when the person is done with it. */
export async function openPage(
  { url, text: message, done }: Page,
  { client, askClient, signal }: {
    readonly client: Client;
    readonly askClient: AskClient;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const elicitationId = crypto.randomUUID();
  const { isModern, peer } = client;
  const over = { method: "notifications/elicitation/complete", params: { elicitationId } };
  // A page that was given up is never complete.
  if (!isModern) done.then(() => peer.notification(over)).catch(() => {});
  const id: JsonObject = isModern ? {} : { elicitationId };
  const params = { mode: "url", message, url, ...id };
  return (await askClient({ method: "elicitation/create", params, signal })).action === "accept";
}

/** What puts a server's request to the client needs. */
export interface RelayOptions {
  readonly callTool: CallTool;
  readonly askClient: AskClient;
  readonly capabilities: JsonObject;
  /** Asks PML's own questions about it. */
  readonly onQuestion?: CallClient["onQuestion"];
  /** Leaves a question that nobody can be asked, and gives the error that says so. */
  readonly leave: (question: Question) => Promise<PmlError>;
}

/** Has what a server asks judged as any call is, and puts it to the client. */
export function relay(options: RelayOptions): (asked: ServerRequest) => Promise<JsonObject> {
  const { capabilities, onQuestion } = options;
  return async (asked) => {
    const { key, server, method, params, signal } = asked;
    const onAsk = (judged: ServerRequest) =>
      options.askClient({ ...judged, key, params: worded(judged) });
    refuseUnable(asked, capabilities);
    refuseAddress(asked);
    const id = toolId(server, method === "elicitation/create" ? "@elicitation" : "@sampling");
    using cancellation = Cancellation.of(signal);
    const client = { onAsk, onQuestion };
    const call = { id, method, arguments: params, cancellation, client };
    const by = { via: "server", isNested: true, actor: "local", callId: crypto.randomUUID() };
    const { answeredResult } = await import("../workflow/run.ts");
    // What the client said, as it is.
    return await answeredResult({ ...call, ...by }, options) as unknown as JsonObject;
  };
}

function refuseUnable({ server, method, params }: ServerRequest, can: JsonObject): void {
  const another = "another tool";
  const [isAble, what, instead] = method === "sampling/createMessage"
    ? [isObject(can.sampling), "have its model asked", MODEL]
    : params.mode === "url"
    ? [canOpen(can), "open a page", another]
    : [canAsk(can), "ask its person", another];
  if (isAble) return;
  const message = `Cannot do what ${quoted(server)} asks: the client cannot ${what}`;
  throw new PmlError("BAD_REQUEST", message, { hint: `Use a client that can, or ${instead}` });
}

/** Refuses a page that is not at an https: address, or at an http: address of this machine. */
function refuseAddress({ server, method, params: { mode, url } }: ServerRequest): void {
  if (method !== "elicitation/create" || mode !== "url" && url === undefined) return;
  const parsed = URL.parse(textOf(url));
  const isOpen = parsed?.protocol === "https:" ||
    parsed?.protocol === "http:" && isLoopback(parsed.hostname);
  if (isOpen) return;
  const message = `Cannot open what ${quoted(server)} asks for: ${quoted(textOf(url), 200)} is ` +
    "neither an https: address nor an http: address of this machine";
  throw new PmlError("BAD_REQUEST", message, { hint: "Report it to the server's author" });
}

/** Returns whether a host name, as URLs write it, is this machine. */
function isLoopback(host: string): boolean {
  return /^(?:(?:.*\.)?localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);
}

/** A server's question says whose it is, and can be taken for none of PML's. */
function worded({ server, method, params }: ServerRequest): JsonObject {
  if (method !== "elicitation/create") return params;
  const { message, mode, elicitationId } = params;
  const requestedSchema = safeSchema(params.requestedSchema);
  // Characters that are hidden in an address are written as escapes.
  const url = params.url === undefined ? undefined : URL.parse(textOf(params.url))?.href;
  const form = JSON.stringify(requestedSchema) ?? "";
  if (form.length > FORM_MAX) {
    const what = `its form has more than ${FORM_MAX} characters`;
    throw new PmlError("BAD_REQUEST", `Cannot ask what ${quoted(server)} asks: ${what}`);
  }
  const text = `${textOf(message)} ${form}`;
  const warning = SECRET.test(text)
    ? "\n(PML notes: this seems to ask for a secret. The server gets what you type.)"
    : "";
  // Further lines are indented, and blank ones are few: none can look like a question of PML.
  const said = inset(textOf(message), MESSAGE_MAX).replace(BLANK_LINES, "\n\n    ");
  const known = { mode, url, elicitationId, requestedSchema };
  return { ...defined(known), message: `Server ${server} asks: ${said}${warning}` } as JsonObject;
}

function formOf(question: Question): JsonObject {
  const replies = question.always ? ["Yes", "Always", "No"] : ["Yes", "No"];
  const answer = { type: "string", title: "Your answer", enum: replies };
  return {
    mode: "form",
    message: question.text,
    requestedSchema: { type: "object", properties: { answer }, required: ["answer"] },
  };
}

function replyOf({ action, content }: JsonObject): Reply {
  if (action === "cancel") return "cancelled";
  const { answer } = objectOf(content);
  return action === "accept" && (answer === "Yes" || answer === "Always") ? answer : "No";
}
