/**
 * Compares PML's types and names of MCP with those of the SDK. `deno check` fails where a type
 * differs, so an update of the SDK shows each change.
 *
 * @module
 */

import assert from "node:assert/strict";
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  isSpecType,
  LOG_LEVEL_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  ProtocolErrorCode,
  SERVER_INFO_META_KEY,
  SUBSCRIPTION_ID_META_KEY,
} from "@modelcontextprotocol/server";
import type * as Sdk from "@modelcontextprotocol/server";
import type { ContentBlock, Progress, ToolResult } from "./call.ts";
import { Cancellation } from "../core/cancellation.ts";
import type { JsonObject } from "../core/json.ts";
import { LEVELS } from "./levels.ts";
import type { ListName } from "./lists.ts";
import type { ALL_CHANGES } from "../servers/client/_meta.ts";
import type { Hello } from "./connection.ts";
import { META } from "./envelope.ts";
import { ERROR, type ErrorObject, RpcError } from "./errors.ts";
import { initializeResult } from "./initialize.ts";
import { classify, type Message, messageOfServer, refusalMessage } from "./message.ts";
import { ResultTexts } from "./open_request.ts";
import type { DefinedMethod, RevisionKind } from "./revisions.ts";
import { type RequestId, RpcPeer } from "./rpc_peer.ts";
import { type Notification, SUBSCRIPTION_KEY } from "./subscriptions.ts";

/** Compiles if each value of `From` is a `To`. */
function fits<To, _From extends To>(): void {}

/** Compiles if both types have the same values. */
function equals<One extends Other, Other extends Whole, Whole = One>(): void {}

/** PML never changes received values, so its arrays are read-only. */
type ReadOnly<T> = T extends readonly (infer E)[] ? readonly ReadOnly<E>[]
  : T extends object ? { readonly [K in keyof T]: ReadOnly<T[K]> }
  : T;

/** The members that a type names, without those of its index signature. */
type NamedKey<T> = keyof { [K in keyof T as string extends K ? never : K]: T[K] };

type SdkMethod =
  | Sdk.ClientRequest["method"]
  | Sdk.ServerRequest["method"]
  | Sdk.GetTaskRequest["method"]
  | Sdk.GetTaskPayloadRequest["method"]
  | Sdk.ListTasksRequest["method"]
  | Sdk.CancelTaskRequest["method"];
/** The members that the result of every list has. */
type OfLists = NamedKey<Sdk.Result> | "nextCursor" | "ttlMs" | "cacheScope";
type SdkList = Exclude<
  | NamedKey<Sdk.ListToolsResult>
  | NamedKey<Sdk.ListResourcesResult>
  | NamedKey<Sdk.ListResourceTemplatesResult>
  | NamedKey<Sdk.ListPromptsResult>,
  OfLists
>;

Deno.test("the types of messages are those of the SDK", () => {
  equals<{ handshake: "legacy"; stateless: "modern" }[RevisionKind], Sdk.ProtocolEra>();
  equals<ErrorObject, ReadOnly<Sdk.JSONRPCErrorResponse["error"]>>();
  equals<Progress, ReadOnly<Sdk.Progress>>();
  equals<Notification["method"], Sdk.JSONRPCNotification["method"]>();
  equals<Exclude<ListName, "skills">, SdkList>();
  equals<DefinedMethod, SdkMethod>();
  fits<Sdk.RequestId, RequestId>();
  fits<Sdk.Implementation, Hello["serverInfo"]>();
  fits<Sdk.SubscriptionFilter, typeof ALL_CHANGES>();
  // PML takes more than the SDK: content and members that no revision defines.
  fits<ToolResult, ReadOnly<Sdk.CallToolResult>>();
  fits<ContentBlock, ReadOnly<Sdk.ContentBlock>>();
});

Deno.test("the codes of errors and the reserved members of _meta are those of the SDK", () => {
  const { requestTimeout: _, headerMismatch: _h, ...codes } = ERROR;
  assert.deepEqual(codes, {
    parse: ProtocolErrorCode.ParseError,
    invalidRequest: ProtocolErrorCode.InvalidRequest,
    methodNotFound: ProtocolErrorCode.MethodNotFound,
    invalidParams: ProtocolErrorCode.InvalidParams,
    internalError: ProtocolErrorCode.InternalError,
    resourceNotFound: ProtocolErrorCode.ResourceNotFound,
    missingClientCapability: ProtocolErrorCode.MissingRequiredClientCapability,
    unsupportedProtocolVersion: ProtocolErrorCode.UnsupportedProtocolVersion,
    urlElicitationRequired: ProtocolErrorCode.UrlElicitationRequired,
  });
  const all = Object.values(ProtocolErrorCode).filter((one) => typeof one === "number");
  assert.deepEqual(new Set<number>(Object.values(codes)), new Set<number>(all));
  assert.deepEqual({ ...META, subscription: SUBSCRIPTION_KEY }, {
    version: PROTOCOL_VERSION_META_KEY,
    client: CLIENT_INFO_META_KEY,
    capabilities: CLIENT_CAPABILITIES_META_KEY,
    level: LOG_LEVEL_META_KEY,
    server: SERVER_INFO_META_KEY,
    subscription: SUBSCRIPTION_ID_META_KEY,
  });
  for (const level of LEVELS) assert.ok(isSpecType.LoggingLevel(level), level);
});

Deno.test("PML and the SDK read a message as the same kind", () => {
  const kinds: Record<string, Message["kind"]> = {
    '{"id":1,"method":"ping"}': "request",
    '{"id":"a","method":"tools/call","params":{"name":"x"}}': "request",
    '{"method":"notifications/initialized"}': "notification",
    '{"method":"notifications/cancelled","params":{"requestId":1}}': "cancel",
    '{"id":1,"result":{}}': "response",
    '{"id":1,"error":{"code":-32603,"message":"no"}}': "response",
  };
  for (const [text, kind] of Object.entries(kinds)) {
    const message = { jsonrpc: "2.0", ...JSON.parse(text) };
    assert.equal(classify(message).kind, kind, text);
    assert.equal(messageOfServer(message)?.kind, kind, text);
    const bySdk = isSpecType.JSONRPCRequest(message)
      ? "request"
      : isSpecType.JSONRPCNotification(message)
      ? isSpecType.CancelledNotification(message) ? "cancel" : "notification"
      : isSpecType.JSONRPCResponse(message) && "response";
    assert.equal(bySdk, kind, text);
  }
});

Deno.test("the SDK reads the messages that PML makes", () => {
  const sent: JsonObject[] = [];
  const peer = new RpcPeer({
    send: (message) => void sent.push({ jsonrpc: "2.0", ...message }),
    onRequest() {},
    onNotification() {},
  });
  const cancellation = new Cancellation();
  const client = { onProgress() {} };
  peer.request("tools/list", {}, { cancellation, client }).catch(() => {});
  cancellation.cancel(new RpcError(ERROR.requestTimeout, "too late"));
  const [request, cancelled] = sent;
  assert.ok(isSpecType.JSONRPCRequest(request) && isSpecType.ListToolsRequest(request));
  assert.ok(isSpecType.JSONRPCNotification(cancelled));
  assert.ok(isSpecType.CancelledNotification(cancelled));

  const refusal = refusalMessage({ kind: "refusal", id: 1, code: ERROR.parse, text: "no" });
  assert.ok(isSpecType.JSONRPCErrorResponse(refusal));
  const serverInfo = { name: "pml", title: "PML", version: "1.0.0" };
  const hello = { capabilities: { tools: { listChanged: true } }, serverInfo, instructions: "" };
  const clientInfo = { name: "t", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  assert.ok(isSpecType.InitializeResult(initializeResult({ method: "initialize", params }, hello)));
  assert.ok(isSpecType.DiscoverResult(new ResultTexts(() => hello).discoverResult()));
});
