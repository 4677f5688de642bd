/**
 * One of several processes that serve one PML together. The client keeps a sealed copy of an
 * approval request, so that any process can accept the answer. Started work stays in its process:
 * the others forward requests to it.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";
import { isObject, objectOf, textOf } from "../../core/json.ts";
import type { ApprovalReply, OfferedAnswer } from "../../protocol/answers.ts";
import { otherRequest } from "../../protocol/failures.ts";
import { EVENTS_TYPE } from "../../io/event_stream.ts";
import { listen, type Listener } from "../../io/listener.ts";
import {
  isSharedMode,
  readPrivate,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../../io/private_files.ts";
import {
  type AnswerLimits,
  AnswerSender,
  asResponse,
  eventBytes,
  leaving,
  rejection,
  type TextAnswer,
} from "../http/_answer.ts";
import type { HttpRequest } from "../http/_route.ts";
import { readBody } from "../http/_body.ts";
import { type Forwarded, type Head, OtherProcess, type Pass, sealedLines } from "./_link.ts";
import { Sealer } from "./_sealer.ts";
import { removeAnswered, unknownEnds } from "../_unknown_end.ts";
import { nonceOf, type Once, SKEW_MS, UsedAnswers } from "./_used_answers.ts";
import type { EndpointLimits, HttpEndpoint } from "../http/endpoint.ts";
import type { HttpHost } from "../http/http.ts";

/** An approval request in the form that the client keeps. */
export interface ReplicaQuestion {
  readonly digest: string;
  readonly answers: readonly OfferedAnswer[];
  readonly setKeys: Readonly<Partial<Record<ApprovalReply, string>>>;
  readonly at: number;
}

/** The open approval requests of an identity. */
export interface Questions {
  /** Removes an approval request from memory, for sealing; undefined if there is none. */
  send(handle: string): ReplicaQuestion | undefined;
  /**
   * Restores an approval request, and returns its handle. `claim` throws if it was answered before.
   */
  takeBack(question: ReplicaQuestion, claim: () => Promise<void>): string;
}

/** Options of `Replica`. */
export interface ReplicaOptions {
  /** The PML home, which all processes share. */
  readonly home: string;
  /** The key, which all processes share. */
  readonly secret: Uint8Array<ArrayBuffer>;
  /** The address for the other processes; port 0 selects a free one. */
  readonly host: string;
  readonly port: number;
  /** How long an approval request can be answered, in milliseconds. */
  readonly ttl: number;
}

/** Answers requests that other processes forward. */
export interface ReplicaHost extends Pick<HttpHost, "refused" | "failed"> {
  /** Returns the endpoint of the identity whose token has this hash; null means the user. */
  endpointOf(identity: string | null): Promise<HttpEndpoint | undefined>;
}

const BEAT_MS = 5_000;
/** A process without a heartbeat for this time is considered gone. */
const GONE_MS = 30_000;
/** The ids of objects in another process: waiting work, a session, or a task. */
const ELSEWHERE = /^(?:run-)?([0-9a-f]{32})\./;

/** One process of several. */
export class Replica {
  /** The name of this process, which is the prefix of the ids that it creates. */
  readonly prefix: string;
  readonly #id = crypto.randomUUID().replaceAll("-", "");
  readonly #options: ReplicaOptions;
  readonly #log: WarningLog;
  readonly #questions: Sealer;
  readonly #link: Sealer;
  readonly #used: UsedAnswers;
  readonly #looks = new Set<() => void>();
  /** The forwarded requests that were answered recently. */
  readonly #recentRequests = new Map<string, number>();

  /** Creates a process from the shared options. */
  constructor(options: ReplicaOptions, log: WarningLog) {
    this.#options = options;
    this.#log = log;
    this.prefix = `${this.#id}.`;
    this.#questions = new Sealer(options.secret, "pml questions");
    this.#link = new Sealer(options.secret, "pml replicas");
    this.#used = new UsedAnswers(options.home, this.#id);
  }

  /**
   * Returns functions that seal and open the approval requests of an identity or the user. `look`
   * is called every five seconds, for changes that the system does not report.
   */
  for(
    identity: string | null,
    { questions, look }: {
      readonly questions: () => Promise<Questions>;
      readonly look: () => void;
    },
  ) {
    this.#looks.add(look);
    const boundTo = (request: string) => [identity, sha256(request)];
    return {
      prefix: this.prefix,
      seal: async (handle: string, request: string) => {
        const sent = (await questions()).send(handle);
        const expires = (sent?.at ?? 0) + this.#options.ttl;
        const question = { ...sent, expires, nonce: nonceOf(identity) };
        return `q.${await this.#questions.seal(question, boundTo(request))}`;
      },
      open: async (state: string, request: string) => {
        const opened = await this.#questions.open(state.slice(2), boundTo(request));
        if (!isObject(opened)) throw otherRequest();
        const question = opened as unknown as ReplicaQuestion & Once; // it was sealed here, see above
        const remaining = question.expires - Date.now();
        // This handle is unknown, so PML asks the user again. A clock may have been set back.
        // guard: sealed-late
        if (remaining <= 0 || remaining > this.#options.ttl + SKEW_MS) return crypto.randomUUID();
        return (await questions()).takeBack(question, () => this.#used.use(question));
      },
    };
  }

  /** Answers a request, or forwards it to the process that owns its session, task or work. */
  async answer(endpoint: HttpEndpoint, request: HttpRequest): Promise<Response | TextAnswer> {
    const here = async () => await endpoint.answer(request);
    const { method, headers, body, signal } = request;
    const to = ownerOf(request);
    const address = to && to !== this.#id ? this.#addressOf(to) : "";
    if (!address) return await here();
    const other = new OtherProcess(to, address, this.#link);
    const parts = other.send({ identity: endpoint.identity, method, headers, body }, signal);
    try {
      const { value } = await parts.next();
      const head = value as Head; // it was sealed by another process
      const answer = new Headers(head.headers).get("content-type") === EVENTS_TYPE
        ? ReadableStream.from(events(parts, body))
        : (await Array.fromAsync(parts)).join("");
      return new Response(answer || null, head);
    } catch (error) {
      if (signal.aborted) throw error;
      const why = String(Object(error).cause ?? error);
      this.#log.warn(`Cannot reach the process at ${address}: ${why}`);
      // The outcome in the other process is unknown, which the answer reports to the client.
      return await (why.includes("(Connect)") ? here() : lost(here, body));
    }
  }

  /** Starts to answer requests that other processes forward. */
  async listen(here: ReplicaHost, limits: EndpointLimits & AnswerLimits): Promise<Listener> {
    const answers = new AnswerSender(limits);
    const failed = (error: Error) => here.failed(error);
    const { host, port } = this.#options;
    const listener = await listen({
      ...limits,
      host,
      port,
      what: "other processes",
      answer: (request, response) => {
        const { inputBytes } = limits;
        void this.#received(request, { here, inputBytes, response })
          .then((made) => answers.send(response, made)).catch(failed);
      },
      onRefused: (status, why) => here.refused(status, why),
    });
    const path = this.#path(this.#id);
    const register = () => writePrivate(path, { address: new URL(listener.origin).host });
    await register();
    await this.#sweep();
    const beat = () => {
      for (const look of this.#looks) look();
      const now = new Date();
      Deno.utime(path, now, now).catch(register).catch(failed);
    };
    const timer = setInterval(beat, BEAT_MS);
    Deno.unrefTimer(timer);
    return {
      ...listener,
      drain: async (ms) => {
        clearInterval(timer);
        await Deno.remove(path).catch(unlessGone);
        await listener.drain(ms);
      },
    };
  }

  async #received(
    request: IncomingMessage,
    { here, inputBytes, response }: {
      readonly here: ReplicaHost;
      readonly inputBytes: number;
      readonly response: ServerResponse;
    },
  ): Promise<Response> {
    const pass = await this.#link.open(`${request.headers.authorization}`, [this.#id]);
    // Sealed values come from another process of the same type, so their shape is known.
    const { nonce, at } = objectOf(pass) as unknown as Pass;
    // Without the key, a sender must not be able to fill the memory of this process.
    const { json } = this.#isNew(nonce, at)
      ? await readBody(request, { inputBytes: 2 * inputBytes })
      : {};
    const answer = await this.#link.open(`${json}`, [nonce]) as Forwarded | undefined;
    if (answer === undefined) {
      const why = "it is not sealed";
      here.refused(403, why);
      return rejection(403, { why });
    }
    const { identity, method, headers, body } = answer;
    const endpoint = await here.endpointOf(identity);
    const made = await endpoint?.answer({ method, headers, body, signal: leaving(response) }) ??
      rejection(401, { why: "its identity is gone" });
    // On a reused connection, a failure before the request was sent would look like one in the
    // middle.
    return new Response(
      ReadableStream.from(sealedLines(asResponse(made), { sealer: this.#link, nonce })),
      {
        headers: { connection: "close" },
      },
    );
  }

  #isNew(nonce: string, at: number): boolean {
    const now = performance.now();
    for (const [other, until] of this.#recentRequests) {
      if (until > now) break;
      this.#recentRequests.delete(other);
    }
    // Rejects a missing time, too.
    // guard: passed-on-once
    if (!(Math.abs(Date.now() - at) <= SKEW_MS) || this.#recentRequests.has(nonce)) return false;
    this.#recentRequests.set(nonce, now + 2 * SKEW_MS);
    return true;
  }

  /** Returns the address of a live process, as recorded in the PML home. */
  #addressOf(id: string): string | undefined {
    const path = this.#path(id);
    if (!isLive(path)) return undefined;
    return readPrivate(path, (json) => String(objectOf(json).address), this.#log);
  }

  async #sweep(): Promise<void> {
    const folder = this.#path();
    for await (const { name } of Deno.readDir(folder)) {
      const path = join(folder, name);
      if (!isLive(path)) await Deno.remove(path).catch(unlessGone);
    }
  }

  #path(name = ""): string {
    return join(this.#options.home, "replicas", name);
  }
}

/** Returns the process that owns the object of a request; empty if there is none. */
function ownerOf({ headers, body }: HttpRequest): string {
  const { requestState, taskId } = objectOf(objectOf(body).params);
  return ELSEWHERE.exec(textOf(headers["mcp-session-id"] ?? requestState ?? taskId))?.[1] ?? "";
}

/** Returns the answer to a request that was forwarded to a process that has ended since. */
async function lost(
  here: () => Promise<Response | TextAnswer>,
  body: unknown,
): Promise<Response | TextAnswer> {
  const ends = unknownEnds(body);
  return ends.length === 0 ? await here() : Response.json(Array.isArray(body) ? ends : ends[0]);
}

/**
 * Forwards whole events. If the stream breaks, the last events report an unknown outcome for each
 * unanswered request.
 */
async function* events(parts: AsyncGenerator<unknown>, body: unknown): AsyncGenerator<Uint8Array> {
  const utf8 = new TextEncoder();
  const chunks = [body].flat();
  let text = "";
  try {
    for await (const part of parts) {
      text += part;
      // guard: passed-on-whole
      if (!text.endsWith("\n\n")) continue;
      // guard: passed-on-answered
      removeAnswered(chunks, text);
      yield utf8.encode(text);
      text = "";
    }
  } catch (error) {
    if (unknownEnds(body).length === 0) throw error;
    for (const one of unknownEnds(chunks)) yield eventBytes(JSON.stringify(one));
  }
}

/** Returns whether a file belongs to a live process, and only this user can write it. */
function isLive(path: string): boolean {
  try {
    const info = Deno.lstatSync(path);
    return info.isFile && !isSharedMode(info) &&
      Date.now() - (info.mtime?.getTime() ?? 0) < GONE_MS;
  } catch (error) {
    return unlessGone(error) ?? false;
  }
}
