/**
 * A connection to an MCP server, whatever carries it: the handshake, requests, and what the server
 * asks and tells.
 *
 * @module
 */

import type { ServerRequest } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  textOf,
  visible,
} from "../core/json.ts";
import { tooLarge } from "../core/json_bounds.ts";
import { type ListItem, type ListName, LISTS } from "../core/lists.ts";
import { aborted, pause } from "../io/waiting.ts";
import { StartTimer } from "./_start_timer.ts";
import type { Living } from "../io/pool.ts";
import { deniedTo } from "./_answers.ts";
import { ALL_CHANGES, CLIENT, withMeta } from "./_meta.ts";
import { Answered, type Asked, Peer, type RequestOptions } from "./_peer.ts";
import { logMessage, readList } from "./_read.ts";
import { isNewer, knowsNewest, LEGACY, mayBeOlder, MODERN, NO_SUCH_METHOD } from "./_revisions.ts";
import type { Following } from "./_subscriptions.ts";
import { ASIDE, runsTasks } from "./_tasks.ts";
import type { Excess, OpenWire, Wire } from "./wire.ts";

/** What a connection is made with, and who is told of what. */
export interface ConnectionOptions {
  readonly name: string;
  readonly open: OpenWire;
  /** The roots that the server may know. */
  readonly roots: () => readonly JsonObject[];
  /** What the client can do for a server. */
  readonly capabilities: () => JsonObject;
  /** Takes secrets out of what it says beside its results. */
  readonly withoutSecrets: <T>(said: T) => T;
  readonly limits: { readonly startMs: number; readonly catalogTools: number };
  /** The PML home. */
  readonly home: string;
  /** Gives up the start. */
  readonly closing: AbortSignal;
  readonly onLog: (level: "debug" | "warn", text: string) => void;
  /** Told of what belongs to no request: changes, and log messages. */
  readonly onNotification: (method: string, params: JsonObject) => void;
  readonly tool: (name: string) => ListItem | undefined;
  /** Told when it has ended, however. */
  readonly onEnd: (connection: Connection) => void;
}

const UPDATED = "notifications/resources/updated";
/** How many lines that mean nothing a server may write before it counts as broken. */
const STRAY_MAX = 10_000;
/** How much a server of the newest revision may ask in one answer. */
const ASKED_MAX = 64;
/** How often a server of the newest revision may ask before it answers. */
const ROUNDS_MAX = 20;
const TAIL = 4_000;
/** After how long a server is asked anew to tell of changes. */
const LISTEN_MS = 5_000;

/** A server that answered the handshake. */
export class Connection implements Living {
  readonly #options: ConnectionOptions;
  readonly #wire: Wire;
  readonly #peer: Peer;
  readonly #over = new AbortController();
  readonly #retired = new AbortController();
  #stray = 0;
  #isModern = false;
  #isLost = false;
  #isListening = false;
  #capabilities: JsonObject = {};
  #dead: PmlError | undefined;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    const wire = this.#wire = options.open({
      received: (message, request) => this.#take(message, request),
      excess: (ends, excess) => this.#refuse(new TextDecoder().decode(ends), excess),
      failed: (id, error, { isOver }) => {
        this.#isLost ||= isOver;
        this.#peer.fail(id, error);
      },
      broken: (why) => this.#fail(this.#broken(why)),
      ended: (error) => this.#fail(error),
      said: (text) => options.onLog("debug", visible(text.trimEnd(), TAIL)),
      missed: () => this.#missed(),
      tool: options.tool,
    });
    this.#peer = new Peer({
      send: (message) => wire.send(message),
      cancel: wire.cancel && ((id) => wire.cancel?.(id)),
      withoutSecrets: options.withoutSecrets,
      onRequest: (asked) => this.#asked(asked),
      onNotification: (method, params, meant) => this.#notified(method, params, meant),
    });
  }

  /** Reaches a server and shakes hands, in the revision that it wants. */
  static async start(options: ConnectionOptions): Promise<Connection> {
    const { name, limits, home, closing } = options;
    using late = new StartTimer(name, { ms: limits.startMs, home, closing });
    const connection = new Connection(options);
    try {
      await connection.#greet(late.signal);
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error === late.signal.reason ? connection.#denied("") ?? error : error;
    }
  }

  /** Whether it takes requests; one that ended never does again. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** How many requests are not answered yet, those that were given up among them. */
  get pending(): number {
    return this.#peer.pending;
  }

  /** Whether it answers nothing any more: neither what was given up, nor whether it is there. */
  get hung(): boolean {
    return this.#isLost || this.#peer.hung;
  }

  /** Whether it says of itself that something has changed. */
  get tells(): boolean {
    return this.#wire.tells || this.#isListening;
  }

  /** Whether it speaks the newest revision, in which each request says what the client can do. */
  get isModern(): boolean {
    return this.#isModern;
  }

  /** Whether it runs tools as tasks where it is asked to, in the revision before the newest. */
  get runsTasks(): boolean {
    return runsTasks(this.#capabilities);
  }

  /** Whether it said that it can do something, such as `resources`. */
  can(capability: string): boolean {
    return isObject(this.#capabilities[capability]);
  }

  /**
   * Sends a request and gives its result as it is; an error that the server answers is thrown as
   * `Answered`. What the server wants to know first is asked meanwhile.
   */
  async request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    let answers: JsonObject = {};
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const said = this.#withMeta({ ...params, ...answers }, options, method);
      const result = await this.#peer.request(method, said, options);
      if (!this.#isModern || !isObject(result) || result.resultType !== "input_required") {
        return result;
      }
      answers = await this.answersTo(result as JsonObject, options);
    }
    throw this.#broken(`it asked ${ROUNDS_MAX} times before it answered`);
  }

  /** Reads a list; one that the server does not have is empty. */
  async list(name: ListName, signal: AbortSignal): Promise<readonly ListItem[]> {
    // Tools are what servers are for: one that forgot to say so may still have some.
    if (name !== "tools" && !this.can(LISTS[name].capability)) return [];
    return await readList(name, {
      ask: (params) => this.request(LISTS[name].method, params, { signal }),
      broken: (why) => this.#broken(why),
      max: this.#options.limits.catalogTools,
    });
  }

  /** Ends what lasts as long as it does: another takes its place. */
  retire(): void {
    this.#retired.abort();
  }

  /** Has the server tell of a resource or a task, until the signal aborts, or another takes its place. */
  async tellOf({ uri, isTask, signal, onAgreed }: Omit<Following, "server">): Promise<void> {
    const { signal: over } = this.#over;
    const options = { signal: AbortSignal.any([signal, over, this.#retired.signal]) };
    if (this.#isModern) {
      onAgreed();
      const wanted: JsonObject = isTask ? { taskIds: [uri] } : { resourceSubscriptions: [uri] };
      return await this.#listen(wanted, { ...options, takesTasks: isTask === true });
    }
    await this.#peer.request("resources/subscribe", { uri }, options);
    onAgreed();
    await aborted(options.signal);
    if (this.alive) this.#peer.request("resources/unsubscribe", { uri }, ASIDE).catch(() => {});
  }

  /** Says which log messages are wanted, where the server can be told. */
  setLevel(level: string): void {
    if (this.#isModern || !this.can("logging")) return;
    // What it answers changes nothing.
    this.#peer.request("logging/setLevel", { level }, ASIDE).catch(() => {});
  }

  /** Ends it, and what carries it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(this.#wire.down("it was closed", false));
    await this.#wire.close();
  }

  async #greet(signal: AbortSignal): Promise<void> {
    try {
      if (this.#wire.newestFirst) await this.#discover(signal);
      else await this.#initialize(signal);
    } catch (error) {
      const { newestFirst } = this.#wire;
      if (!(newestFirst ? mayBeOlder(error) : isNewer(error))) {
        throw await this.#refused(error, signal);
      }
      this.#isModern = !newestFirst || knowsNewest(error);
      const other = this.#isModern ? this.#discover(signal) : this.#initialize(signal);
      await other.catch(async (cause) => {
        throw await this.#refused(cause, signal);
      });
    }
  }

  async #initialize(signal: AbortSignal): Promise<void> {
    const said = await this.#peer.request("initialize", {
      protocolVersion: LEGACY,
      capabilities: { roots: {}, ...this.#options.capabilities() },
      clientInfo: CLIENT,
    }, { signal });
    this.#capabilities = objectOf(objectOf(said).capabilities);
    this.#wire.send({ method: "notifications/initialized" });
  }

  async #discover(signal: AbortSignal): Promise<void> {
    this.#isModern = true;
    const { supportedVersions, capabilities } = objectOf(
      await this.request("server/discover", {}, { signal }),
    );
    // An older server may answer anything to what it does not know.
    if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN)) {
      throw new Answered(NO_SUCH_METHOD, `it does not speak ${MODERN}`);
    }
    this.#capabilities = objectOf(capabilities);
    const tells = Object.values(this.#capabilities).some((one) => isObject(one) && one.listChanged);
    if (tells) void this.#hearChanges();
  }

  /** Has the server tell of changes for as long as it is there, and wants to. */
  async #hearChanges(): Promise<void> {
    const { signal } = this.#over;
    while (this.alive) {
      this.#isListening = true;
      const end = await this.#listen(ALL_CHANGES, ASIDE).catch((error) => error);
      this.#isListening = false;
      // On the pipes of a process it ends with that.
      if (end instanceof Answered || this.#wire.tells) return;
      await pause(LISTEN_MS, signal);
      if (this.alive) this.#missed();
    }
  }

  /** What was told meanwhile may be that everything is another. */
  #missed(): void {
    for (const list of ["tools", "resources", "prompts"]) {
      this.#options.onNotification(`notifications/${list}/list_changed`, {});
    }
  }

  async #listen(notifications: JsonObject, options: RequestOptions): Promise<void> {
    const said = this.#withMeta({ notifications }, options);
    await this.#peer.request("subscriptions/listen", said, { ...options, lasts: true });
  }

  async #refused(error: unknown, signal: AbortSignal): Promise<unknown> {
    const better = mayBeOlder(error) ? await this.#wire.explain?.(signal) : undefined;
    if (better !== undefined || !(error instanceof Answered)) return better ?? error;
    return this.#broken(`it refused the handshake: ${error.message}`);
  }

  #withMeta(params: JsonObject, options: RequestOptions, method?: string): JsonObject {
    if (!this.#isModern) return params;
    return withMeta(params, { ...options, method, able: this.#options.capabilities() });
  }

  /** Has everything answered that a result of the newest revision asks for. */
  async answersTo(result: JsonObject, options: RequestOptions): Promise<JsonObject> {
    const { inputRequests, requestState } = result;
    const requests = Object.entries(objectOf(inputRequests));
    if (requests.length > ASKED_MAX) throw this.#broken("it asks too much at once");
    // Where one fails the others are taken back.
    const over = new AbortController();
    const signal = AbortSignal.any([options.signal, this.#over.signal, over.signal]);
    const asked = requests.map(async ([key, one]) => {
      const { method, params } = objectOf(one);
      const request = { method: textOf(method), params: objectOf(params), signal };
      try {
        return [key, await this.#asked({ ...request, during: options })] as const;
      } catch (error) {
        // What PML refuses is no error of the server.
        if (!(error instanceof Answered)) throw error;
        throw this.#broken(`it asked for ${quoted(request.method)}, but ${error.message}`);
      }
    });
    try {
      const inputResponses = Object.fromEntries(await Promise.all(asked));
      return { inputResponses, ...(typeof requestState === "string" && { requestState }) };
    } finally {
      over.abort(new Answered(NO_SUCH_METHOD, "another question failed"));
    }
  }

  #take(message: unknown, request: string | undefined): void {
    try {
      if (!this.#peer.receive(message, request)) this.#strayed();
    } catch (error) {
      this.#fail(this.#broken(`it wrote what cannot be taken: ${error}`));
    }
  }

  /** Ends the request that a message answers which is more than it may be. */
  #refuse(ends: string, excess: Excess): void {
    const { name, onLog } = this.#options;
    if (this.#peer.refuse(ends, tooLarge(`what ${quoted(name)} answered`, excess))) return;
    onLog("warn", `A message was passed over: ${excess.why}`);
    this.#strayed();
  }

  #notified(method: string, said: JsonObject, meant: string | undefined): void {
    const { name, withoutSecrets, onNotification, onLog } = this.#options;
    // The address of a resource is compared with those that are followed.
    const params = method === UPDATED ? said : withoutSecrets(said);
    if (method !== "notifications/message") return onNotification(method, params);
    onLog("debug", visible(JSON.stringify(params.data) ?? "", TAIL));
    const message = logMessage(name, params);
    this.#peer.latest("onMessage", meant)?.onMessage?.(message);
    onNotification(method, message);
  }

  /** Answers what a server may ask: whether we are there, for its roots, and for the client. */
  async #asked({ method, params, signal, during }: Asked): Promise<JsonObject> {
    switch (method) {
      case "ping":
        return {};
      case "roots/list":
        return { roots: this.#options.roots() };
      case "elicitation/create":
      case "sampling/createMessage":
        return await this.#ask({ server: this.#options.name, method, params, signal }, during);
      default:
        throw new Answered(NO_SUCH_METHOD, `PML has no ${visible(method, 100)}`);
    }
  }

  async #ask(asked: ServerRequest, during: RequestOptions | undefined): Promise<JsonObject> {
    if (during?.onAsk === undefined) {
      throw new Answered(NO_SUCH_METHOD, "no request is open whose client could be asked");
    }
    const { url, ...said } = asked.params; // an address without its key leads elsewhere
    const params = { ...this.#options.withoutSecrets(said), ...(url !== undefined && { url }) };
    const signal = AbortSignal.any([asked.signal, during.signal]);
    return await during.onAsk({ ...asked, params, signal });
  }

  #strayed(): void {
    if (++this.#stray <= STRAY_MAX) return;
    this.#fail(this.#broken(`it wrote over ${STRAY_MAX} lines that answer nothing`));
  }

  #broken(why: string): PmlError {
    const denied = this.#denied(why);
    if (denied !== undefined) return denied;
    return new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(this.#options.name)}: ${why}`, {
      hint: "It does not speak MCP as PML knows it",
    });
  }

  #denied(text: string): PmlError | undefined {
    const denial = this.#wire.denial?.(text);
    return denial && deniedTo(this.#options.name, denial);
  }

  /** Ends it for good; what waits is told, and nothing is sent again. */
  #fail(error: PmlError): void {
    if (this.#dead) return;
    this.#dead = error;
    this.#peer.end(error);
    this.#over.abort(error);
    this.#options.onEnd(this);
    if (error.code === "UPSTREAM_PROTOCOL") this.#wire.kill();
  }
}
