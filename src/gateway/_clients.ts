/**
 * The clients that are connected: what they can do and want to be told, and how they are told.
 *
 * @module
 */

import type { Server } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { ListName } from "../core/lists.ts";
import type { Place } from "./_offers.ts";
import { isAtLeast, LEVELS } from "../core/levels.ts";

/** One client. */
export interface Client {
  readonly server: Server;
  /** Whether it speaks the revision without sessions. */
  readonly isModern: boolean;
  /** From which level on it wants log messages. */
  level: string;
  /** What it said last that it can do. */
  capabilities: JsonObject;
  /** The resources that it follows, by the URIs that it knows. */
  readonly followed: Map<string, Place>;
  /** Over when what was asked to follow or not is done. */
  turn: Promise<void>;
}

/** What a client gets that has not said which log messages it wants. */
const USUAL_LEVEL = "info";

/** Tells the streams of clients over HTTP that listen for it which list has changed. */
export interface ListListeners {
  toolsChanged(): void;
  promptsChanged(): void;
  resourcesChanged(): void;
}

/** Knows the clients, and tells them what changes. */
export class Clients {
  /** The streams of clients of the newest revision over HTTP. Each has a request of its own. */
  listeners: ListListeners | undefined;
  readonly #all = new Set<Client>();
  readonly #onError: (error: Error) => void;

  /** Makes an empty set; what cannot be told is told to `onError`. */
  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  /** Takes a client in. */
  add(server: Server, isModern: boolean): Client {
    const client = {
      server,
      isModern,
      level: USUAL_LEVEL,
      capabilities: {},
      followed: new Map<string, Place>(),
      turn: Promise.resolve(),
    };
    this.#all.add(client);
    return client;
  }

  /** Lets one go. */
  remove(client: Client): void {
    this.#all.delete(client);
  }

  /** Tells whether one is still here. */
  has(client: Client): boolean {
    return this.#all.has(client);
  }

  /** Those of the revision without sessions. */
  get modern(): readonly Client[] {
    return [...this.#all].filter(({ isModern }) => isModern);
  }

  /** The level from which on one of them wants log messages. */
  level(): string {
    const wanted = [...this.#all].map(({ level }) => level);
    return LEVELS.find((level) => wanted.includes(level)) ?? USUAL_LEVEL;
  }

  /** Tells all that a list is another one. */
  listChanged(list: ListName): void {
    if (list === "tools") this.listeners?.toolsChanged();
    else if (list === "prompts") this.listeners?.promptsChanged();
    else this.listeners?.resourcesChanged();
    for (const { server } of this.#all) {
      const told = list === "tools"
        ? server.sendToolListChanged()
        : list === "prompts"
        ? server.sendPromptListChanged()
        : server.sendResourceListChanged();
      // A client that is just going needs no word.
      told.catch(this.#onError);
    }
  }

  /** Tells who follows it that a resource has changed. */
  updated({ server: owner, name }: Place): void {
    for (const { server, followed } of this.#all) {
      for (const [uri, place] of followed) {
        if (place.server !== owner || place.name !== name) continue;
        server.sendResourceUpdated({ uri }).catch(this.#onError);
      }
    }
  }

  /** Tells the client that began a task how it stands; one of the newest revision has to listen for it. */
  taskChanged({ client, params }: { readonly client: Client; readonly params: JsonObject }): void {
    if (!this.#all.has(client)) return;
    const method = client.isModern ? "notifications/tasks" : "notifications/tasks/status";
    client.server.notification({ method, params: params as never }).catch(this.#onError);
  }

  /** Tells those that can open pages that one is done with. */
  elicited(params: JsonObject): void {
    for (const { server, isModern, capabilities } of this.#all) {
      if (isModern || !("url" in objectOf(capabilities.elicitation))) continue;
      server.notification({ method: "notifications/elicitation/complete", params: params as never })
        .catch(this.#onError);
    }
  }

  /** Tells what a server logs to those who get it whatever they are doing. */
  logged(message: JsonObject): void {
    for (const { server, isModern, level } of this.#all) {
      if (isModern || !isAtLeast(message.level, level)) continue;
      server.notification({ method: "notifications/message", params: message as never })
        .catch(this.#onError);
    }
  }
}
