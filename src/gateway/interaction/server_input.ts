/**
 * Passes on the requests of servers for input of the user or of the client's model.
 *
 * @module
 */

import type { CallClient, CallTool, Question, ServerRequest } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import { declaresExtensionOf } from "../../protocol/extension_methods.ts";
import {
  indentLines,
  isObject,
  type JsonObject,
  memberOf,
  objectOf,
  quoted,
  textOf,
  withoutUndefined,
} from "../../core/json.ts";
import { methodRuleName } from "../../core/pattern.ts";
import { withoutNamed, withoutPmlMeta } from "../../protocol/result_members.ts";
import { safeSchema, safeTexts } from "../../protocol/safe_text.ts";
import { toolId } from "../../core/tool_id.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { type DefinedMethod, isDefinedMethod } from "../../protocol/revisions.ts";
import { canOpenPage, canShowForm } from "./capabilities.ts";
import type { RequestInput } from "./request_client.ts";
import type { GatewayHost } from "../options.ts";

/** Matches words that ask for a secret. */
const SECRET_WORDS =
  /pass(?:word|phrase|code)|secret|token|credential|private.?key|api.?key|\bpin\b|one.?time/i;
/** The maximum length of a message to the user, in characters. */
const MESSAGE_MAX = 4_000;
/** The params of an elicitation in MCP. PML drops `task`. */
const KNOWN_PARAMS = ["message", "mode", "url", "elicitationId", "requestedSchema", "task"];
/** The keys of `_meta` that only concern the server and PML. */
const SERVER_META = /^(?:progressToken$|io\.modelcontextprotocol\/)/i;
/** More than one blank line. */
const BLANK_LINES = /(?:\n\p{Zs}*){3,}/gu;
/** The maximum length of the schema of a form, in characters. */
const FORM_MAX = 64_000;
/** The hint for a client without a model. */
const SET_MODEL = "name a model in `sampling` of config.yaml";

/** The names in rules for the requests of servers that MCP defines. */
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
  host: Pick<GatewayHost, "storeQuestion">,
): (request: ServerRequest) => Promise<JsonObject> {
  return async (request) => {
    const { key, server, method, params, members: message, signal, onProgress } = request;
    const onServerRequest = (checked: ServerRequest) =>
      requestInput({ ...checked, key, onProgress, params: toShownParams(checked) });
    const ruleName = memberOf(RULE_NAMES, method) ?? extensionRuleName(method, capabilities);
    assertClientCan(request, capabilities);
    assertSafeAddress(request);
    const id = toolId(server, ruleName);
    using cancellation = Cancellation.of(signal);
    const client = { onServerRequest, onQuestion };
    const members = message && { message };
    const call = { id, method, arguments: params, members, cancellation, client };
    const origin = { via: "server", isNested: true, actor: "local", callId: crypto.randomUUID() };
    const { callWithApproval } = await import("../../workflow/run.ts");
    const storeQuestion = (question: Question) => host.storeQuestion(question);
    const result = await callWithApproval({ ...call, ...origin }, { callTool, storeQuestion });
    // The result of the client, unchanged.
    return result as unknown as JsonObject;
  };
}

/**
 * Returns the name in rules for a method of an extension. Throws if the client did not declare it.
 */
function extensionRuleName(method: string, capabilities: JsonObject): string {
  if (isDefinedMethod(method)) {
    throw new RpcError(ERROR.methodNotFound, "servers cannot request it from clients");
  }
  const ruleName = methodRuleName(method);
  // guard: extension-declared
  if (ruleName === undefined || !declaresExtensionOf(method, capabilities)) {
    throw new RpcError(ERROR.methodNotFound, "the client did not declare its extension");
  }
  return ruleName;
}

/** Throws if the client cannot serve the request of a server. */
function assertClientCan(
  { server, method, params }: ServerRequest,
  capabilities: JsonObject,
): void {
  if (memberOf(RULE_NAMES, method) === undefined) return;
  const another = "another tool";
  const [isAble, what, instead] = method === "sampling/createMessage"
    ? [isObject(capabilities.sampling), "answer with its model", SET_MODEL]
    : params.mode === "url"
    ? [canOpenPage(capabilities), "open a page", another]
    : [canShowForm(capabilities), "ask its user", another];
  if (isAble) return;
  const message = `Cannot pass on the request of ${quoted(server)}: the client cannot ${what}`;
  throw new PmlError("BAD_REQUEST", message, { hint: `Use a client that can, or ${instead}` });
}

/** Throws for a page unless its address is https:, or http: with a host name of this machine. */
function assertSafeAddress({ server, method, params: { mode, url } }: ServerRequest): void {
  if (method !== "elicitation/create" || mode !== "url" && url === undefined) return;
  const parsed = URL.parse(textOf(url));
  const isSafe = parsed?.protocol === "https:" ||
    parsed?.protocol === "http:" && isLoopback(parsed.hostname);
  if (isSafe) return;
  const message = `Cannot open what ${quoted(server)} asks for: ${quoted(textOf(url), 200)} is ` +
    "neither an https: address nor an http: address of this machine";
  throw new PmlError("BAD_REQUEST", message, { hint: "Report it to the server's author" });
}

/** Returns whether a host name, as URLs write it, is this machine. */
function isLoopback(host: string): boolean {
  return /^(?:(?:.*\.)?localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);
}

/**
 * Returns the params for the client. Their text names the server, and cannot look like a text of
 * PML.
 */
function toShownParams({ server, method, params }: ServerRequest): JsonObject {
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
  const warning = SECRET_WORDS.test(text)
    ? "\n(PML notes: this seems to ask for a secret. The server gets what you type.)"
    : "";
  // All lines but the first are indented, and blank lines are removed, so that no part of the text
  // can look like an approval request of PML.
  const shown = indentLines(textOf(message), MESSAGE_MAX).replace(BLANK_LINES, "\n\n    ");
  const known = { mode, url, elicitationId, requestedSchema };
  return {
    ...unknownMembers(params),
    ...withoutUndefined(known),
    message: `Server ${server} asks: ${shown}${warning}`,
  } as JsonObject;
}

/**
 * Removes the server's progress token. PML adds its own, which is unique for all servers.
 */
function withoutToken(params: JsonObject): JsonObject {
  const { progressToken, ...meta } = objectOf(params._meta);
  if (progressToken === undefined) return params;
  const { _meta, ...others } = params;
  return Object.keys(meta).length === 0 ? others : { ...params, _meta: meta };
}

/**
 * Returns the members of an elicitation that MCP does not define. Leaves out names that differ from
 * a known one only in case, because a client could confuse them.
 */
function unknownMembers(params: JsonObject): JsonObject {
  const unknown = safeTexts(withoutNamed(params, KNOWN_PARAMS));
  if (unknown._meta === undefined) return unknown;
  const meta = objectOf(unknown._meta);
  const names = Object.keys(meta).filter((name) => SERVER_META.test(name));
  return { ...unknown, _meta: withoutNamed(meta, names) };
}
