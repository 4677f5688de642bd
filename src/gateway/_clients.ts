/**
 * The clients that are connected, and the streams on which clients without a session receive
 * notifications.
 *
 * @module
 */

import type { MethodNotification, OtherMembers } from "../protocol/call.ts";
import { declaresExtensionOf } from "../protocol/extension_methods.ts";
import { type JsonObject, objectOf, sortedJsonText } from "../core/json.ts";
import { type ListName, LISTS } from "../protocol/lists.ts";
import type { DroppedMembers } from "./_dropped_members.ts";
import type { ServerItem } from "./_offers.ts";
import { isAtLeast, LEVELS } from "../protocol/levels.ts";
import { canOpenPage } from "./interaction/capabilities.ts";
import type { ClientPeer, SentNotification } from "../protocol/connection.ts";

/**
 * The owner of tasks, approval requests and pending requests. Other owners cannot see them. An owner
 * is a session, a process, or the user if requests have no session.
 */
export type RequestOwner = object;

/** A client or a stream that follows resources. */
export interface Follower {
  /**
   * Sends a notification. `members` are the unknown members next to `method` and `params`, which
   * the client gets if it accepts them.
   */
  readonly notify: (method: string, params: JsonObject, members?: JsonObject) => void;
  /** The followed resources, by the URIs that the client uses. */
  readonly followed: Map<string, ServerItem>;
  /** Resolves when the last change of the followed resources is done. */
  turn: Promise<void>;
}

/** A client. Over HTTP in the stateless revision, a client lives for one request. */
export interface Client extends Follower {
  readonly peer: ClientPeer;
  readonly owner: RequestOwner;
  /** Whether the client uses the stateless revision, which has no sessions. */
  readonly isStateless: boolean;
  /** The least serious level of log messages that the client wants. */
  level: string;
  /** The capabilities that the client declared last. */
  capabilities: JsonObject;
  /** Aborts when the client disconnects; undefined if the client lives for one request. */
  readonly connection: AbortController | undefined;
  /** The name and the version that the client stated last; undefined before its first request. */
  info: JsonObject | undefined;
  /** Whether `GatewayHost.notes` has recorded this client. */
  isReported: boolean;
  /** When the client connected, in milliseconds since 1970; 0 if it lives for one request. */
  readonly since: number;
}

/** A stream of HTTP, or a process, that receives notifications for a client without a session. */
export interface ClientListener extends Follower {
  readonly owner: RequestOwner;
  /** The ids of the tasks whose changes it receives. */
  tasks: readonly string[];
}

/** Sends notifications to the streams of HTTP clients that asked for their type. */
export interface NotificationStreams {
  notify(notification: SentNotification): void;
}

/** The log level of a client that has not set one. */
const DEFAULT_LEVEL = "info";

/** Keeps the clients, and notifies them. */
export class Clients {
  /** The streams of clients over HTTP, which receive changes of lists. */
  streams: NotificationStreams | undefined;
  /** The streams that receive changes of resources and tasks. */
  readonly listeners: Set<ClientListener> = new Set();
  readonly #all = new Set<Client>();
  readonly #onError: (error: Error) => void;
  readonly #dropped: DroppedMembers | undefined;

  /** `onError` gets the errors of notifications. `dropped` reports members that are not sent. */
  constructor(onError: (error: Error) => void, dropped?: DroppedMembers) {
    this.#onError = onError;
    this.#dropped = dropped;
  }

  /** Adds a client. */
  add(peer: ClientPeer, isStateless: boolean, owner: RequestOwner = peer): Client {
    const client: Client = {
      peer,
      owner,
      isStateless,
      notify: (method, params, members) => this.#notify(peer, { method, params, members }),
      level: DEFAULT_LEVEL,
      capabilities: {},
      info: undefined,
      isReported: false,
      since: peer.isBrief === true ? 0 : Date.now(),
      connection: peer.isBrief === true ? undefined : new AbortController(),
      followed: new Map(),
      turn: Promise.resolve(),
    };
    this.#all.add(client);
    return client;
  }

  /** Removes a client. */
  remove(client: Client): void {
    this.#all.delete(client);
    client.connection?.abort();
  }

  /** Returns whether a client or a stream is still connected. */
  has(one: Follower): boolean {
    return this.#all.has(one as Client) || this.listeners.has(one as ClientListener);
  }

  /** Sends a notification to all clients of an owner that use the stateless revision. */
  notifyStateless(owner: RequestOwner, ...notification: Parameters<Follower["notify"]>): void {
    for (const client of this.#all) {
      if (client.isStateless && client.owner === owner) client.notify(...notification);
    }
  }

  /** The clients that are connected, without those that live for one request. */
  get connected(): readonly Client[] {
    return [...this.#all].filter(({ connection }) => connection !== undefined);
  }

  /** The name and the version of each client, without duplicates. */
  get infos(): readonly JsonObject[] {
    const all = [...this.#all].map(({ info, peer }) => info ?? objectOf(peer.getClientVersion()));
    return [...new Map(all.map((info) => [sortedJsonText(info), info])).values()];
  }

  /** Returns the least serious log level that any client wants. */
  level(): string {
    const levels = [...this.#all].map(({ level }) => level);
    return LEVELS.find((level) => levels.includes(level)) ?? DEFAULT_LEVEL;
  }

  /** Notifies all clients that a list has changed. */
  notifyListChanged(list: ListName, { params, message }: OtherMembers = {}): void {
    const notification: SentNotification = {
      method: `notifications/${LISTS[list].capability}/list_changed`,
      ...params && { params },
      ...message && { members: message },
    };
    this.streams?.notify(notification);
    for (const { peer } of this.#all) this.#notify(peer, notification);
  }

  /** Notifies the followers of a resource that it has changed. */
  notifyUpdated(changed: ServerItem, { params, message }: OtherMembers = {}): void {
    const method = "notifications/resources/updated";
    for (const { notify, followed } of [...this.#all, ...this.listeners]) {
      for (const uri of urisOf(followed, changed)) notify(method, { ...params, uri }, message);
    }
  }

  /**
   * Sends the state of a task to the client that began the task. If that client has no session, the
   * streams of the same owner get the state.
   */
  notifyTaskChanged(
    { client, params }: { readonly client: Client; readonly params: JsonObject },
  ): void {
    if (!client.isStateless) {
      if (this.#all.has(client)) client.notify("notifications/tasks/status", params);
      return;
    }
    for (const { owner, tasks, notify } of this.listeners) {
      const isFor = owner === client.owner && tasks.includes(String(params.taskId));
      if (isFor) notify("notifications/tasks", params);
    }
  }

  /** Returns functions that notify the clients which declared the extension of a method. */
  notifiersFor(method: string): readonly ((one: MethodNotification) => boolean)[] {
    return [...this.#all]
      .filter(({ peer, isStateless, capabilities }) => {
        const declared = isStateless ? capabilities : objectOf(peer.getClientCapabilities());
        return peer.isBrief !== true && declaresExtensionOf(method, declared);
      })
      .map((client) => (one) => {
        this.#notify(client.peer, one);
        return this.#all.has(client);
      });
  }

  /** Notifies the clients that can open pages: the user has finished a page. */
  notifyElicited(params: JsonObject, members?: JsonObject): void {
    for (const { notify, isStateless, capabilities } of this.#all) {
      if (isStateless || !canOpenPage(capabilities)) continue;
      notify("notifications/elicitation/complete", params, members);
    }
  }

  /** Passes a log message of a server on to the clients that want it. */
  notifyLog(message: JsonObject, members?: JsonObject): void {
    for (const { notify, isStateless, level } of this.#all) {
      const isWanted = !isStateless && isAtLeast(message.level, level);
      if (isWanted) notify("notifications/message", message, members);
    }
  }

  /** Reports the members of a message that a client does not take. */
  reportDropped(method: string, members: JsonObject): void {
    this.#dropped?.reportServerMembers(method, members);
  }

  #notify(peer: ClientPeer, one: SentNotification): void {
    const { method, members } = one;
    // A client that lives for one request gets no notification here, so nothing is dropped for it.
    const isDropped = members !== undefined && peer.isBrief !== true &&
      peer.takesMembers?.() !== true;
    if (isDropped) this.reportDropped(method, members);
    // A client that has just disconnected needs no notification.
    peer.notification(one).catch(this.#onError);
  }
}

/**
 * Returns the addresses with which a follower is notified of a change. For a followed resource this
 * is the follower's own address, even if the server spells it in another way. For a part of a
 * followed resource it is the address of the part.
 */
function urisOf(followed: Follower["followed"], { server, name }: ServerItem): ReadonlySet<string> {
  const changed = normalize(name);
  const uris = [...followed].flatMap(([uri, place]) => {
    if (place.server !== server) return [];
    const whole = normalize(place.name);
    if (whole === changed) return [uri];
    const prefix = uri.slice(0, uri.length - place.name.length);
    return isPart(changed, whole) && uri.endsWith(place.name) ? [prefix + name] : [];
  });
  return new Set(uris);
}

function normalize(uri: string): string {
  return URL.parse(uri)?.href ?? uri;
}

/** Returns whether an address is below another one. */
function isPart(uri: string, whole: string): boolean {
  if (!uri.startsWith(whole)) return false;
  return whole.endsWith("/") || /^[/?#]/.test(uri.slice(whole.length));
}
