/**
 * Passes on notifications whose methods PML does not know, in both directions.
 *
 * @module
 */

import type { CallClient, CallTool, MethodNotification } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError, PmlError, withHint } from "../core/errors.ts";
import { declaresExtensionOf } from "../protocol/extension_methods.ts";
import { type JsonObject, quoted, withoutUndefined } from "../core/json.ts";
import { methodRuleName } from "../core/pattern.ts";
import { withoutPmlMeta } from "../protocol/result_members.ts";
import { toolId } from "../core/tool_id.ts";
import { LimitedLog } from "../io/limited_log.ts";
import { BoundedQueue, type QueueLimits } from "../io/bounded_queue.ts";
import { isDefinedMethod } from "../protocol/revisions.ts";
import { splitRequestMembers } from "./_call_members.ts";
import type { Client, Clients, RequestOwner } from "./_clients.ts";
import type { GatewayHost } from "./options.ts";
import { findTarget, type TargetSources } from "./_unknown_methods.ts";

/** A notification of a server. */
export interface ServerNotification extends MethodNotification {
  /** The client of the request that the notification belongs to, if it is known. */
  readonly client: CallClient | undefined;
}

/** A notification of a client. */
export interface ClientNotification extends MethodNotification {
  readonly client: Client;
  /** The capabilities of the client. */
  readonly capabilities: JsonObject;
  /** Returns the tools that the client may use now; undefined if it may use all. */
  readonly toolset: CallClient["toolset"];
}

/** The reason for the refusal of a method that MCP defines, or that no rule can name. */
const NO_EXTENSION = "its method is not one of an extension";
/** The limits for the notifications of each client, and of each server. */
const LIMITS: QueueLimits = { waiting: 64, perMinute: 600, bytesPerMinute: 4_000_000 };

/** Passes on notifications, each as a call through all checks. Logs each dropped notification. */
export class UnknownNotifications {
  readonly #host: GatewayHost;
  readonly #callTool: CallTool;
  readonly #clients: Clients;
  readonly #sources: TargetSources;
  readonly #queuesByOwner = new WeakMap<RequestOwner, BoundedQueue>();
  readonly #queuesByServer = new Map<string, BoundedQueue>();
  /** Each promise resolves when a client's notification is passed on, or refused. */
  readonly #pending = new Set<Promise<void>>();
  readonly #log = new LimitedLog();

  /** Takes the collaborators. Passes nothing on yet. */
  constructor(
    host: GatewayHost,
    callTool: CallTool,
    { clients, sources }: { readonly clients: Clients; readonly sources: TargetSources },
  ) {
    this.#host = host;
    this.#callTool = callTool;
    this.#clients = clients;
    this.#sources = sources;
  }

  /**
   * Passes on a notification of a client to the server that the notification belongs to. Resolves
   * when it is sent or refused.
   */
  passFromClient(notification: ClientNotification): Promise<void> {
    const { method, params, members, client: { owner } } = notification;
    const queue = this.#queuesByOwner.get(owner) ?? new BoundedQueue(LIMITS);
    this.#queuesByOwner.set(owner, queue);
    const exceeded = queue.take(sizeOf(params, members), async () => {
      try {
        await this.#sendToServer(notification);
      } catch (error) {
        this.#logRefusal(method, { why: reasonOf(error) });
      }
    });
    if (exceeded !== undefined) this.#logRefusal(method, { why: exceeded });
    const work = queue.busy ?? Promise.resolve();
    this.#pending.add(work);
    return work.finally(() => this.#pending.delete(work));
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async whenPassedOn(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Passes a notification of a server on to the clients that declared its extension. */
  passFromServer(server: string, notification: ServerNotification): void {
    const { method, params, members } = notification;
    const refuse = (why: string, level?: "info") =>
      this.#logRefusal(method, { why, server, level });
    const ruleName = ruleNameOf(method);
    if (ruleName === undefined) return refuse(NO_EXTENSION, "info");
    const receivers = this.#receiversOf(notification);
    if (receivers.length === 0) return refuse("no client here declared its extension", "info");
    const queue = this.#queuesByServer.get(server) ?? new BoundedQueue(LIMITS);
    this.#queuesByServer.set(server, queue);
    const exceeded = queue.take(sizeOf(params, members), async () => {
      try {
        const onNotify = (message: MethodNotification) =>
          receivers.map((notify) => notify(message)).includes(true);
        const client = { onNotify };
        const id = toolId(server, ruleName);
        const others = members && { members: { message: members } };
        const call = { id, method, via: "server", isNested: true, client, ...others };
        await this.#callWithoutApproval({
          ...call,
          arguments: withoutPmlMeta(params),
          actor: "local",
        });
      } catch (error) {
        refuse(reasonOf(error));
      }
    });
    if (exceeded !== undefined) refuse(exceeded);
  }

  /**
   * Returns a promise that resolves when all notifications of a server are passed on; undefined if
   * no notification waits.
   */
  pendingOf(server: string): Promise<void> | undefined {
    return this.#queuesByServer.get(server)?.busy;
  }

  async #sendToServer(
    { method, params, members: message, client, capabilities, toolset }: ClientNotification,
  ) {
    const problem = this.#host.configProblem();
    if (problem !== undefined) throw problem;
    const ruleName = ruleNameOf(method);
    if (ruleName === undefined) throw new Error(NO_EXTENSION);
    const target = await findTarget({ method, params, client }, this.#sources);
    const { _meta, ...args } = target.params;
    const { clientMeta, actor } = this.#host.settings();
    await this.#callWithoutApproval({
      id: toolId(target.server, ruleName),
      method,
      via: method,
      actor,
      arguments: args,
      client: { capabilities, usesOlderRevision: !client.isStateless, toolset },
      ...splitRequestMembers(_meta, clientMeta, message),
    });
  }

  async #callWithoutApproval(
    call: Omit<Parameters<CallTool>[0], "callId" | "cancellation" | "isNotification">,
  ) {
    const cancellation = new Cancellation();
    const callId = crypto.randomUUID();
    const { kind } = await this.#callTool({ ...call, isNotification: true, callId, cancellation });
    if (kind === "ask") throw new Error("no rule allows it");
  }

  /** Returns functions that send a notification of a server to the clients that may get it. */
  #receiversOf({ method, client }: ServerNotification) {
    const onNotify = client?.onNotify;
    if (onNotify === undefined) return this.#clients.notifiersFor(method);
    return declaresExtensionOf(method, client?.capabilities) ? [onNotify] : [];
  }

  #logRefusal(
    method: string,
    { why, server, level = "warn" }: {
      readonly why: string;
      readonly server?: string;
      readonly level?: "info" | "warn" | undefined;
    },
  ): void {
    const name = quoted(method, 100);
    const from = server === undefined ? "the client" : quoted(server);
    const text = `A notification ${name} of ${from} was not passed on: ${why}`;
    const key = JSON.stringify([server, method.slice(0, 200), why]);
    this.#log.write(key, text, (line) => this.#host.log[level](line, { server }));
  }
}

/** Returns the name of a method in rules; undefined if MCP defines the method. */
function ruleNameOf(method: string): string | undefined {
  return isDefinedMethod(method) ? undefined : methodRuleName(method);
}

function sizeOf(params: JsonObject, members: JsonObject | undefined): number {
  const others = members === undefined ? 0 : JSON.stringify(members).length;
  return JSON.stringify(params).length + others;
}

function reasonOf(error: unknown): string {
  const { message, hint } = error instanceof PmlError || !(error instanceof Error)
    ? asPmlError(error)
    : withoutUndefined({ message: error.message, hint: undefined });
  return withHint(message, hint);
}
