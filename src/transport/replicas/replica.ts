/**
 * One of several processes that serve one PML together. A question of PML travels sealed with its
 * client, so that any of them can take the answer. What one of them has begun stays with it: the
 * others pass on what comes for it.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";
import { isObject, objectOf, textOf } from "../../core/json.ts";
import { otherRequest } from "../../protocol/failures.ts";
import { EVENTS_TYPE } from "../../io/event_stream.ts";
import { listen, type Listener } from "../../io/listener.ts";
import {
  isShared,
  readPrivate,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../../io/private_files.ts";
import {
  type AnswerLimits,
  Answers,
  asResponse,
  frameOf,
  leaving,
  rejection,
  type TextAnswer,
} from "../http/_answer.ts";
import type { HttpRequest } from "../http/_route.ts";
import { readBody } from "../http/_body.ts";
import { type Forwarded, type Head, linesOf, OtherProcess, type Pass } from "./_link.ts";
import { Sealer } from "./_sealer.ts";
import { removeAnswered, unknownEnds } from "../_unknown_end.ts";
import { type Once, SKEW_MS, UsedAnswers } from "./_used_answers.ts";
import type { FaceLimits, HttpFace } from "../http/endpoint.ts";
import type { HttpHost } from "../http/http.ts";

/** A question as its client keeps it. */
export interface SentQuestion {
  readonly digest: string;
  readonly always: boolean;
  readonly at: number;
}

/** What knows the open questions of an identity. */
export interface Questions {
  /** Takes a question out of memory; undefined if there is none. */
  send(handle: string): SentQuestion | undefined;
  /** Takes a question back, and returns its handle. `claim` throws if it was answered before. */
  takeBack(question: SentQuestion, claim: () => Promise<void>): string;
}

/** The options of `Replica`. */
export interface ReplicaOptions {
  /** The PML home, which all have in common. */
  readonly home: string;
  /** The key, which all have in common. */
  readonly secret: Uint8Array<ArrayBuffer>;
  /** Where the others reach this one; the port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** How long a question can be answered, in milliseconds. */
  readonly ttl: number;
}

/** Answers requests that other processes pass on. */
export interface ReplicaHost extends Pick<HttpHost, "refused" | "failed"> {
  /** Returns what answers the identity whose token has this hash, or the person for null. */
  faceOf(identity: string | null): Promise<HttpFace | undefined>;
}

const BEAT_MS = 5_000;
/** A process that was not heard of for so long is gone. */
const GONE_MS = 30_000;
/** What stands for something in another process: work that waits, a session, or a task. */
const ELSEWHERE = /^(?:run-)?([0-9a-f]{32})\./;

/** A process among several. */
export class Replica {
  /** The name of this process, as the names of what it has begun start. */
  readonly prefix: string;
  readonly #id = crypto.randomUUID().replaceAll("-", "");
  readonly #options: ReplicaOptions;
  readonly #log: WarningLog;
  readonly #questions: Sealer;
  readonly #link: Sealer;
  readonly #used: UsedAnswers;
  readonly #looks = new Set<() => void>();
  /** The requests of others that were answered lately. */
  readonly #seen = new Map<string, number>();

  /** Takes what all have in common. */
  constructor(options: ReplicaOptions, log: WarningLog) {
    this.#options = options;
    this.#log = log;
    this.prefix = `${this.#id}.`;
    this.#questions = new Sealer(options.secret, "pml questions");
    this.#link = new Sealer(options.secret, "pml replicas");
    this.#used = new UsedAnswers(options.home, this.#id);
  }

  /**
   * Returns what seals the questions to an identity, or to the person. `look` is called every five
   * seconds, for what no system tells.
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
        const question = { ...sent, expires, nonce: crypto.randomUUID() };
        return `q.${await this.#questions.seal(question, boundTo(request))}`;
      },
      open: async (state: string, request: string) => {
        const opened = await this.#questions.open(state.slice(2), boundTo(request));
        if (!isObject(opened)) throw otherRequest();
        const question = opened as unknown as SentQuestion & Once; // it was sealed here, see above
        const left = question.expires - Date.now();
        // Nobody knows this handle, so the person is asked again. A clock may have gone back.
        // guard: sealed-late
        if (left <= 0 || left > this.#options.ttl + SKEW_MS) return crypto.randomUUID();
        return (await questions()).takeBack(question, () => this.#used.use(question));
      },
    };
  }

  /** Answers a request, or has the process answer it that has begun what it is about. */
  async answer(face: HttpFace, request: HttpRequest): Promise<Response | TextAnswer> {
    const here = async () => await face.answer(request);
    const { method, headers, body, signal } = request;
    const to = ownerOf(request);
    const address = to && to !== this.#id ? this.#addressOf(to) : "";
    if (!address) return await here();
    const other = new OtherProcess(to, address, this.#link);
    const parts = other.send({ identity: face.identity, method, headers, body }, signal);
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
      // What it had begun is unknown here, and the client is told so.
      return await (why.includes("(Connect)") ? here() : lost(here, body));
    }
  }

  /** Begins to answer what other processes pass on. */
  async listen(here: ReplicaHost, limits: FaceLimits & AnswerLimits): Promise<Listener> {
    const answers = new Answers(limits);
    const failed = (error: Error) => here.failed(error);
    const { host, port } = this.#options;
    const listener = await listen({
      ...limits,
      ...{ host, port },
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
    // What another process sealed has the form that this one gives it.
    const { nonce, at } = objectOf(pass) as unknown as Pass;
    // Whoever has no key can have nothing kept here.
    const { json } = this.#isNew(nonce, at)
      ? await readBody(request, { inputBytes: 2 * inputBytes })
      : {};
    const asked = await this.#link.open(`${json}`, [nonce]) as Forwarded | undefined;
    if (asked === undefined) {
      const why = "it is not sealed";
      here.refused(403, why);
      return rejection(403, { why });
    }
    const { identity, method, headers, body } = asked;
    const face = await here.faceOf(identity);
    const made = await face?.answer({ method, headers, body, signal: leaving(response) }) ??
      rejection(401, { why: "its identity is gone" });
    // A connection that is kept could not be told from one that broke in the middle of a request.
    return new Response(
      ReadableStream.from(linesOf(asResponse(made), { sealer: this.#link, nonce })),
      {
        headers: { connection: "close" },
      },
    );
  }

  #isNew(nonce: string, at: number): boolean {
    const now = performance.now();
    for (const [other, until] of this.#seen) {
      if (until > now) break;
      this.#seen.delete(other);
    }
    // Without a time it is none.
    // guard: passed-on-once
    if (!(Math.abs(Date.now() - at) <= SKEW_MS) || this.#seen.has(nonce)) return false;
    this.#seen.set(nonce, now + 2 * SKEW_MS);
    return true;
  }

  /** Returns the address of a process that lives, as it wrote it into the PML home. */
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

/** Returns the process that has begun what a request is about; nothing if it is about none. */
function ownerOf({ headers, body }: HttpRequest): string {
  const { requestState, taskId } = objectOf(objectOf(body).params);
  return ELSEWHERE.exec(textOf(headers["mcp-session-id"] ?? requestState ?? taskId))?.[1] ?? "";
}

/** Returns the answer to what was passed on to a process that has ended since. */
async function lost(
  here: () => Promise<Response | TextAnswer>,
  body: unknown,
): Promise<Response | TextAnswer> {
  const ends = unknownEnds(body);
  return ends.length === 0 ? await here() : Response.json(Array.isArray(body) ? ends : ends[0]);
}

/**
 * Passes whole events on. If they break off, the last ones say so of each request that has no
 * answer.
 */
async function* events(parts: AsyncGenerator<unknown>, body: unknown): AsyncGenerator<Uint8Array> {
  const utf8 = new TextEncoder();
  const left = [body].flat();
  let text = "";
  try {
    for await (const part of parts) {
      text += part;
      // guard: passed-on-whole
      if (!text.endsWith("\n\n")) continue;
      // guard: passed-on-answered
      removeAnswered(left, text);
      yield utf8.encode(text);
      text = "";
    }
  } catch (error) {
    if (unknownEnds(body).length === 0) throw error;
    for (const one of unknownEnds(left)) yield frameOf(JSON.stringify(one));
  }
}

/** Returns whether the file is that of a process which lives, and only this person can write it. */
function isLive(path: string): boolean {
  try {
    const info = Deno.lstatSync(path);
    return info.isFile && !isShared(info) &&
      Date.now() - (info.mtime?.getTime() ?? 0) < GONE_MS;
  } catch (error) {
    return unlessGone(error) ?? false;
  }
}
