/**
 * Passes on notifications whose methods PML does not know, in both directions.
 *
 * @module
 */

import type { CallClient, CallTool, MethodNotification } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { declaresExtensionOf } from "../protocol/extension_methods.ts";
import { defined, type JsonObject, quoted } from "../core/json.ts";
import { methodRuleName } from "../core/pattern.ts";
import { withoutPmlMeta } from "../protocol/result_members.ts";
import { toolId } from "../core/tool_id.ts";
import { LimitedLog } from "../io/limited_log.ts";
import { BoundedQueue, type QueueLimits } from "../io/bounded_queue.ts";
import { isDefined } from "../protocol/revisions.ts";
import { metaOf } from "./_call_members.ts";
import type { Client, Clients, Party } from "./_clients.ts";
import type { GatewayHost } from "./options.ts";
import { type Owners, serverOfRequest } from "./_unknown_methods.ts";

/** A notification of a server. */
export interface ServerNotification extends MethodNotification {
  /** The client of the request that it belongs to, if that is known. */
  readonly client: CallClient | undefined;
}

/** A notification of a client. */
export interface ClientNotification extends MethodNotification {
  readonly client: Client;
  /** The capabilities of the client. */
  readonly capabilities: JsonObject;
  /** Returns the tools that exist for it now; undefined for all. */
  readonly toolset: CallClient["toolset"];
}

/** The limits for each client, and for each server. */
const LIMITS: QueueLimits = { waiting: 64, perMinute: 600, bytesPerMinute: 4_000_000 };

/** Passes notifications on, each as a call through all checks. Logs each that is dropped. */
export class UnknownNotifications {
  readonly #host: GatewayHost;
  readonly #callTool: CallTool;
  readonly #clients: Clients;
  readonly #owners: Owners;
  readonly #ofParties = new WeakMap<Party, BoundedQueue>();
  readonly #ofServers = new Map<string, BoundedQueue>();
  /** The notifications of clients that are on their way. */
  readonly #pending = new Set<Promise<void>>();
  readonly #log = new LimitedLog();

  /** Takes the collaborators. Passes nothing on yet. */
  constructor(
    host: GatewayHost,
    callTool: CallTool,
    { clients, owners }: { readonly clients: Clients; readonly owners: Owners },
  ) {
    this.#host = host;
    this.#callTool = callTool;
    this.#clients = clients;
    this.#owners = owners;
  }

  /**
   * Passes a notification of a client on to the server that it belongs to. Resolves when the server
   * has it, or it was refused.
   */
  fromClient(notification: ClientNotification): Promise<void> {
    const { method, params, members, client: { party } } = notification;
    const queue = this.#ofParties.get(party) ?? new BoundedQueue(LIMITS);
    this.#ofParties.set(party, queue);
    const full = queue.take(sizeOf(params, members), async () => {
      try {
        await this.#toOwner(notification);
      } catch (error) {
        this.#refused(method, { why: reasonOf(error) });
      }
    });
    if (full !== undefined) this.#refused(method, { why: full });
    const earlier = queue.busy ?? Promise.resolve();
    this.#pending.add(earlier);
    return earlier.finally(() => this.#pending.delete(earlier));
  }

  /** Resolves when the notifications that clients have sent are passed on. */
  async passedOn(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Passes a notification of a server on to the clients that declared its extension. */
  fromServer(server: string, one: ServerNotification): void {
    const { method, params, members } = one;
    const refused = (why: string, level?: "info") => this.#refused(method, { why, server, level });
    const ruleName = ruleNameOf(method);
    if (ruleName === undefined) return refused("PML does not know it", "info");
    const to = this.#receiversOf(one);
    if (to.length === 0) return refused("no client here declared its extension", "info");
    const queue = this.#ofServers.get(server) ?? new BoundedQueue(LIMITS);
    this.#ofServers.set(server, queue);
    const full = queue.take(sizeOf(params, members), async () => {
      try {
        const onNotify = (message: MethodNotification) =>
          to.map((notify) => notify(message)).includes(true);
        const client = { onNotify };
        const id = toolId(server, ruleName);
        const others = members && { members: { message: members } };
        const call = { id, method, via: "server", isNested: true, client, ...others };
        await this.#pass({ ...call, arguments: withoutPmlMeta(params), actor: "local" });
      } catch (error) {
        refused(reasonOf(error));
      }
    });
    if (full !== undefined) refused(full);
  }

  /** Resolves when the notifications that a server has sent are passed on; undefined if they are. */
  pendingOf(server: string): Promise<void> | undefined {
    return this.#ofServers.get(server)?.busy;
  }

  async #toOwner(
    { method, params, members: message, client, capabilities: able, toolset }: ClientNotification,
  ) {
    const problem = this.#host.problem();
    if (problem !== undefined) throw problem;
    const ruleName = ruleNameOf(method);
    if (ruleName === undefined) throw new Error("no server can have it");
    const target = await serverOfRequest({ method, params, client }, this.#owners);
    const { _meta, ...args } = target.params;
    const { clientMeta, actor } = this.#host.settings();
    await this.#pass({
      id: toolId(target.server, ruleName),
      method,
      via: method,
      actor,
      arguments: args,
      client: { able, isOlder: !client.isStateless, toolset },
      ...metaOf(_meta, clientMeta, message),
    });
  }

  async #pass(call: Omit<Parameters<CallTool>[0], "callId" | "cancellation" | "isNotification">) {
    const cancellation = new Cancellation();
    const callId = crypto.randomUUID();
    const { kind } = await this.#callTool({ ...call, isNotification: true, callId, cancellation });
    if (kind === "ask") throw new Error("no rule allows it");
  }

  /** Returns functions that notify the clients that may get a notification of a server. */
  #receiversOf({ method, client }: ServerNotification) {
    const onNotify = client?.onNotify;
    if (onNotify === undefined) return this.#clients.declaring(method);
    return declaresExtensionOf(method, client?.able) ? [onNotify] : [];
  }

  #refused(
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

/** Returns the name that rules have for a method; undefined if it is not one of an extension. */
function ruleNameOf(method: string): string | undefined {
  return isDefined(method) ? undefined : methodRuleName(method);
}

function sizeOf(params: JsonObject, members: JsonObject | undefined): number {
  const others = members === undefined ? 0 : JSON.stringify(members).length;
  return JSON.stringify(params).length + others;
}

function reasonOf(error: unknown): string {
  const { message, hint } = error instanceof PmlError || !(error instanceof Error)
    ? asPmlError(error)
    : defined({ message: error.message, hint: undefined });
  return hint === undefined ? message : `${message}. ${hint}`;
}
