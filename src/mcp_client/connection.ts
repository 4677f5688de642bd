/**
 * A connection to an MCP server, whatever carries it: the handshake, requests, and what the server
 * asks and tells.
 *
 * @module
 */

import type { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject, quoted, visible } from "../core/json.ts";
import { tooLarge } from "../core/json_bounds.ts";
import { type ListItem, type ListName, LISTS } from "../core/lists.ts";
import { aborted, pause } from "../io/waiting.ts";
import { StartTimer } from "./_start_timer.ts";
import type { Living } from "../io/pool.ts";
import { deniedTo } from "./_answers.ts";
import { type Agreement, shakeHands } from "./_handshake.ts";
import { ALL_CHANGES } from "./_meta.ts";
import { NewestRequests } from "./_newest.ts";
import { Answered, type Asked, Peer, type RequestOptions } from "./_peer.ts";
import { answerTo } from "./_questions.ts";
import { logMessage, readList } from "./_read.ts";
import type { Following } from "./_subscriptions.ts";
import { ASIDE, runsTasks } from "./_tasks.ts";
import { type Excess, type OpenWire, unusable, type Wire } from "./wire.ts";

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
const TAIL = 4_000;
/** After how long a server is asked anew to tell of changes. */
const LISTEN_MS = 5_000;

/** A server that answered the handshake. */
export class Connection implements Living {
  readonly #options: ConnectionOptions;
  readonly #wire: Wire;
  readonly #peer: Peer;
  readonly #newest: NewestRequests;
  readonly #over = new AbortController();
  readonly #retired = new AbortController();
  #stray = 0;
  #isLost = false;
  #isListening = false;
  #agreed: Agreement = { isModern: false, capabilities: {} };
  #dead: PmlError | undefined;

  /** Makes the error of a server that does not answer as it should. */
  readonly #broken = (why: string): PmlError =>
    this.#denied(why) ?? unusable(this.#options.name, why);

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
    const answer = (asked: Asked) => answerTo(asked, options);
    this.#peer = new Peer({
      send: (message) => wire.send(message),
      cancel: wire.cancel && ((id) => wire.cancel?.(id)),
      withoutSecrets: options.withoutSecrets,
      onRequest: answer,
      onNotification: (method, params, meant) => this.#notified(method, params, meant),
    });
    this.#newest = new NewestRequests(this.#peer, {
      able: options.capabilities,
      answer,
      broken: this.#broken,
      over: this.#over.signal,
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
    return this.#agreed.isModern;
  }

  /** Whether it runs tools as tasks where it is asked to, in the revision before the newest. */
  get runsTasks(): boolean {
    return runsTasks(this.#agreed.capabilities);
  }

  /** Whether it said that it can do something, such as `resources`. */
  can(capability: string): boolean {
    return isObject(this.#agreed.capabilities[capability]);
  }

  /**
   * Sends a request and gives its result as it is; an error that the server answers is thrown as
   * `Answered`. What the server wants to know first is asked meanwhile.
   */
  async request(method: string, params: JsonObject, options: RequestOptions): Promise<Json> {
    if (this.isModern) return await this.#newest.request(method, params, options);
    return await this.#peer.request(method, params, options);
  }

  /** Answers all that a result of the newest revision asks for. */
  answersTo(result: JsonObject, options: RequestOptions): Promise<JsonObject> {
    return this.#newest.answersTo(result, options);
  }

  /** Reads a list; one that the server does not have is empty. */
  async list(name: ListName, signal: AbortSignal): Promise<readonly ListItem[]> {
    // Tools are what servers are for: one that forgot to say so may still have some.
    if (name !== "tools" && !this.can(LISTS[name].capability)) return [];
    return await readList(name, {
      ask: (params) => this.request(LISTS[name].method, params, { signal }),
      broken: this.#broken,
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
    if (this.isModern) {
      onAgreed();
      const wanted: JsonObject = isTask ? { taskIds: [uri] } : { resourceSubscriptions: [uri] };
      return await this.#newest.listen(wanted, { ...options, takesTasks: isTask === true });
    }
    await this.#peer.request("resources/subscribe", { uri }, options);
    onAgreed();
    await aborted(options.signal);
    if (this.alive) this.#peer.request("resources/unsubscribe", { uri }, ASIDE).catch(() => {});
  }

  /** Says which log messages are wanted, where the server can be told. */
  setLevel(level: string): void {
    if (this.isModern || !this.can("logging")) return;
    // What it answers changes nothing.
    this.#peer.request("logging/setLevel", { level }, ASIDE).catch(() => {});
  }

  /** Ends it, and what carries it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(this.#wire.down("it was closed", false));
    await this.#wire.close();
  }

  async #greet(signal: AbortSignal): Promise<void> {
    const agreed = this.#agreed = await shakeHands({
      wire: this.#wire,
      peer: this.#peer,
      newest: this.#newest,
      able: this.#options.capabilities,
      broken: this.#broken,
      signal,
    });
    const { isModern, capabilities } = agreed;
    const tells = Object.values(capabilities).some((one) => isObject(one) && one.listChanged);
    if (isModern && tells) void this.#hearChanges();
  }

  /** Has the server tell of changes for as long as it is there, and wants to. */
  async #hearChanges(): Promise<void> {
    const { signal } = this.#over;
    while (this.alive) {
      this.#isListening = true;
      const end = await this.#newest.listen(ALL_CHANGES, ASIDE).catch((error) => error);
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

  #strayed(): void {
    if (++this.#stray <= STRAY_MAX) return;
    this.#fail(this.#broken(`it wrote over ${STRAY_MAX} lines that answer nothing`));
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
