/**
 * Requests of servers for input of the user or of the client's model.
 *
 * @module
 */

import type { CallClient, CallTool, Question, ServerRequest } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import { declaresExtensionOf } from "../../protocol/extension_methods.ts";
import {
  defined,
  inset,
  isObject,
  type JsonObject,
  memberOf,
  objectOf,
  quoted,
  textOf,
} from "../../core/json.ts";
import { methodRuleName } from "../../core/pattern.ts";
import { withoutNamed, withoutPmlMeta } from "../../protocol/result_members.ts";
import { safeSchema, safeTexts } from "../../protocol/safe_text.ts";
import { toolId } from "../../core/tool_id.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { type DefinedMethod, isDefined } from "../../protocol/revisions.ts";
import { canOpenPage, canShowForm } from "./capabilities.ts";
import type { RequestInput } from "./client_request.ts";
import type { GatewayHost } from "../options.ts";

const SECRET =
  /pass(?:word|phrase|code)|secret|token|credential|private.?key|api.?key|\bpin\b|one.?time/i;
const MESSAGE_MAX = 4_000;
/** The params of an elicitation in MCP. PML creates no task for one. */
const KNOWN_PARAMS = ["message", "mode", "url", "elicitationId", "requestedSchema", "task"];
/** The members of `_meta` that have a meaning between the server and PML only. */
const OF_SERVER = /^(?:progressToken$|io\.modelcontextprotocol\/)/i;
/** More than one blank line. */
const BLANK_LINES = /(?:\n\p{Zs}*){3,}/gu;
const FORM_MAX = 64_000;
/** The hint for a client without a model. */
const MODEL = "name a model in `sampling` of config.yaml";

/** The names that rules have for the requests of servers in MCP itself. */
const RULE_NAMES = {
  "elicitation/create": "@elicitation",
  "sampling/createMessage": "@sampling",
} as const satisfies Partial<Record<DefinedMethod, string>>;

/** A client that servers get input from. */
export interface InputClient {
  readonly requestInput: RequestInput;
  /** The capabilities of the client. */
  readonly capabilities: JsonObject;
  /** Asks the user for the approval of the server's request. */
  readonly onQuestion?: CallClient["onQuestion"];
}

/** Returns the function that passes requests of servers through the pipeline to a client. */
export function serverInput(
  { capabilities, requestInput, onQuestion }: InputClient,
  callTool: CallTool,
  host: Pick<GatewayHost, "leave">,
): (request: ServerRequest) => Promise<JsonObject> {
  return async (request) => {
    const { key, server, method, params, members: message, signal, onProgress } = request;
    const onAsk = (checked: ServerRequest) =>
      requestInput({ ...checked, key, onProgress, params: worded(checked) });
    const ruleName = memberOf(RULE_NAMES, method) ?? extensionRuleName(method, capabilities);
    refuseUnable(request, capabilities);
    refuseAddress(request);
    const id = toolId(server, ruleName);
    using cancellation = Cancellation.of(signal);
    const client = { onAsk, onQuestion };
    const members = message && { message };
    const call = { id, method, arguments: params, members, cancellation, client };
    const by = { via: "server", isNested: true, actor: "local", callId: crypto.randomUUID() };
    const { answeredResult } = await import("../../workflow/run.ts");
    // The client's result, unchanged.
    const leave = (question: Question) => host.leave(question);
    const result = await answeredResult({ ...call, ...by }, { callTool, leave });
    return result as unknown as JsonObject;
  };
}

/** Returns the name that rules have for a method of an extension that the client declared. */
function extensionRuleName(method: string, capabilities: JsonObject): string {
  if (isDefined(method)) {
    throw new RpcError(ERROR.methodNotFound, "servers cannot request it from clients");
  }
  const ruleName = methodRuleName(method);
  // guard: extension-declared
  if (ruleName === undefined || !declaresExtensionOf(method, capabilities)) {
    throw new RpcError(ERROR.methodNotFound, "the client did not declare its extension");
  }
  return ruleName;
}

function refuseUnable({ server, method, params }: ServerRequest, can: JsonObject): void {
  if (memberOf(RULE_NAMES, method) === undefined) return;
  const another = "another tool";
  const [isAble, what, instead] = method === "sampling/createMessage"
    ? [isObject(can.sampling), "answer with its model", MODEL]
    : params.mode === "url"
    ? [canOpenPage(can), "open a page", another]
    : [canShowForm(can), "ask its user", another];
  if (isAble) return;
  const message = `Cannot pass on the request of ${quoted(server)}: the client cannot ${what}`;
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

/** Returns the params as the user sees them: they name the server, and never look like PML's own. */
function worded({ server, method, params }: ServerRequest): JsonObject {
  if (method !== "elicitation/create") return withoutToken(withoutPmlMeta(params));
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
  // Further lines are indented, and blank ones are few: none can look like an approval request of
  // PML.
  const shown = inset(textOf(message), MESSAGE_MAX).replace(BLANK_LINES, "\n\n    ");
  const known = { mode, url, elicitationId, requestedSchema };
  return {
    ...unknownIn(params),
    ...defined(known),
    message: `Server ${server} asks: ${shown}${warning}`,
  } as JsonObject;
}

/**
 * Removes the progress token: the client gets one of PML, which is unique among those of all
 * servers.
 */
function withoutToken(params: JsonObject): JsonObject {
  const { progressToken, ...meta } = objectOf(params._meta);
  if (progressToken === undefined) return params;
  const { _meta, ...others } = params;
  return Object.keys(meta).length === 0 ? others : { ...params, _meta: meta };
}

/**
 * Returns the members of an elicitation that MCP does not define. A client could take one that
 * differs from a known one in case alone for that one.
 */
function unknownIn(params: JsonObject): JsonObject {
  const unknown = safeTexts(withoutNamed(params, KNOWN_PARAMS));
  if (unknown._meta === undefined) return unknown;
  const meta = objectOf(unknown._meta);
  const names = Object.keys(meta).filter((name) => OF_SERVER.test(name));
  return { ...unknown, _meta: withoutNamed(meta, names) };
}
