/**
 * The clients that are connected, and the streams on which clients without a session listen.
 *
 * @module
 */

import type { MethodNotification, OtherMembers } from "../protocol/call.ts";
import { declaresExtensionOf } from "../protocol/extension_methods.ts";
import { type JsonObject, objectOf, sorted } from "../core/json.ts";
import { type ListName, LISTS } from "../protocol/lists.ts";
import type { DroppedMembers } from "./_dropped_members.ts";
import type { ServerItem } from "./_offers.ts";
import { isAtLeast, LEVELS } from "../protocol/levels.ts";
import { canOpenPage } from "./interaction/capabilities.ts";
import type { ClientPeer, SentNotification } from "../protocol/connection.ts";

/**
 * The owner of tasks, approval requests and pending requests: a session, a process, or a user whose
 * requests have no session. Other parties cannot see them.
 */
export type Party = object;

/** A client or a stream that follows resources. */
export interface Follower {
  /**
   * Sends a notification. `members` are those next to `method` and `params` that PML does not know,
   * for a client that takes them.
   */
  readonly tell: (method: string, params: JsonObject, members?: JsonObject) => void;
  /** The followed resources, by the URIs that the client uses. */
  readonly followed: Map<string, ServerItem>;
  /** Resolves when the present change of the followed resources is done. */
  turn: Promise<void>;
}

/** A client. One over HTTP in the stateless revision lives for one request. */
export interface Client extends Follower {
  readonly peer: ClientPeer;
  readonly party: Party;
  /** Whether it uses the stateless revision, which has no sessions. */
  readonly isStateless: boolean;
  /** The least serious level of log messages that it wants. */
  level: string;
  /** The capabilities that it declared last. */
  capabilities: JsonObject;
  /** Aborts when it disconnects; undefined if it lives for one request. */
  readonly connection: AbortController | undefined;
  /** The name and the version that it stated last; undefined before its first request. */
  info: JsonObject | undefined;
  /** Whether the host has a report of this client. */
  isReported: boolean;
}

/** A stream, or a process, on which a client of the stateless revision listens. */
export interface ClientListener extends Follower {
  readonly party: Party;
  /** The ids of the tasks that it listens for. */
  tasks: readonly string[];
}

/** Sends notifications to the streams of HTTP clients that listen for them. */
export interface NotificationStreams {
  notify(notification: SentNotification): void;
}

/** The log level of a client that has not set one. */
const USUAL_LEVEL = "info";

/** Keeps the clients, and notifies them. */
export class Clients {
  /** The streams of clients over HTTP, which listen for changes of lists. */
  streams: NotificationStreams | undefined;
  /** The streams that listen for resources and tasks. */
  readonly listeners: Set<ClientListener> = new Set();
  readonly #all = new Set<Client>();
  readonly #onError: (error: Error) => void;
  readonly #dropped: DroppedMembers | undefined;

  /** Takes a function that gets the errors of notifications, and the report of dropped members. */
  constructor(onError: (error: Error) => void, dropped?: DroppedMembers) {
    this.#onError = onError;
    this.#dropped = dropped;
  }

  /** Adds a client. */
  add(peer: ClientPeer, isStateless: boolean, party: Party = peer): Client {
    const client: Client = {
      peer,
      party,
      isStateless,
      tell: (method, params, members) => this.#notify(peer, { method, params, members }),
      level: USUAL_LEVEL,
      capabilities: {},
      info: undefined,
      isReported: false,
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

  /** Sends a notification to all clients of a party that use the stateless revision. */
  tellStateless(party: Party, ...notification: Parameters<Follower["tell"]>): void {
    for (const client of this.#all) {
      if (client.isStateless && client.party === party) client.tell(...notification);
    }
  }

  /** The name and the version of each client, without duplicates. */
  get infos(): readonly JsonObject[] {
    const all = [...this.#all].map(({ info, peer }) => info ?? objectOf(peer.getClientVersion()));
    return [...new Map(all.map((info) => [sorted(info), info])).values()];
  }

  /** Returns the least serious log level that one of them wants. */
  level(): string {
    const levels = [...this.#all].map(({ level }) => level);
    return LEVELS.find((level) => levels.includes(level)) ?? USUAL_LEVEL;
  }

  /** Notifies all that a list has changed. */
  listChanged(list: ListName, { params, message }: OtherMembers = {}): void {
    const notification: SentNotification = {
      method: `notifications/${LISTS[list].capability}/list_changed`,
      ...params && { params },
      ...message && { members: message },
    };
    this.streams?.notify(notification);
    for (const { peer } of this.#all) this.#notify(peer, notification);
  }

  /** Notifies the followers of a resource of its change. */
  updated(changed: ServerItem, { params, message }: OtherMembers = {}): void {
    const method = "notifications/resources/updated";
    for (const { tell, followed } of [...this.#all, ...this.listeners]) {
      for (const uri of urisOf(followed, changed)) tell(method, { ...params, uri }, message);
    }
  }

  /** Notifies the client that began a task of its state, or the listeners of its party. */
  taskChanged({ client, params }: { readonly client: Client; readonly params: JsonObject }): void {
    if (!client.isStateless) {
      if (this.#all.has(client)) client.tell("notifications/tasks/status", params);
      return;
    }
    for (const { party, tasks, tell } of this.listeners) {
      const isFor = party === client.party && tasks.includes(String(params.taskId));
      if (isFor) tell("notifications/tasks", params);
    }
  }

  /** Returns functions that notify the clients which declared the extension of a method. */
  declaring(method: string): readonly ((one: MethodNotification) => boolean)[] {
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

  /** Notifies the clients that can open URLs that the user has finished a page. */
  elicited(params: JsonObject, members?: JsonObject): void {
    for (const { tell, isStateless, capabilities } of this.#all) {
      if (isStateless || !canOpenPage(capabilities)) continue;
      tell("notifications/elicitation/complete", params, members);
    }
  }

  /** Passes a log message of a server on to the clients that want it. */
  logged(message: JsonObject, members?: JsonObject): void {
    for (const { tell, isStateless, level } of this.#all) {
      const isWanted = !isStateless && isAtLeast(message.level, level);
      if (isWanted) tell("notifications/message", message, members);
    }
  }

  /** Reports the members of a message that a client does not take. */
  dropped(method: string, members: JsonObject): void {
    this.#dropped?.note(method, members);
  }

  #notify(peer: ClientPeer, one: SentNotification): void {
    const { method, members } = one;
    // A client of one request gets no such notification.
    const isDropped = members !== undefined && peer.isBrief !== true &&
      peer.takesMembers?.() !== true;
    if (isDropped) this.dropped(method, members);
    // A client that has just disconnected needs no notification.
    peer.notification(one).catch(this.#onError);
  }
}

/**
 * Returns the addresses by which a follower is notified of a change: its own for the resource, also
 * if the server writes it in another way, and that of the change for a part of the resource.
 */
function urisOf(followed: Follower["followed"], { server, name }: ServerItem): ReadonlySet<string> {
  const changed = normalized(name);
  const uris = [...followed].flatMap(([uri, place]) => {
    if (place.server !== server) return [];
    const whole = normalized(place.name);
    if (whole === changed) return [uri];
    const prefix = uri.slice(0, uri.length - place.name.length);
    return isPart(changed, whole) && uri.endsWith(place.name) ? [prefix + name] : [];
  });
  return new Set(uris);
}

function normalized(uri: string): string {
  return URL.parse(uri)?.href ?? uri;
}

/** Returns whether an address is below another one. */
function isPart(uri: string, whole: string): boolean {
  if (!uri.startsWith(whole)) return false;
  return whole.endsWith("/") || /^[/?#]/.test(uri.slice(whole.length));
}
