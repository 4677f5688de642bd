/**
 * One of several processes that serve one PML together. The client keeps a sealed copy of an
 * approval request, so that any process can accept the answer. Started work stays in its process,
 * and all other processes forward the requests about the work to that process.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";
import { isObject, objectOf, textOf } from "../../core/json.ts";
import type { ApprovalReply, OfferedAnswer } from "../../protocol/answers.ts";
import { differentRequestError } from "../../protocol/failures.ts";
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
  disconnectSignal,
  eventBytes,
  rejection,
  type TextAnswer,
} from "../http/_answer.ts";
import type { HttpRequest } from "../http/_route.ts";
import { readBody } from "../http/body.ts";
import {
  type AnswerHead,
  type ForwardedHttpRequest,
  OtherProcess,
  type RequestProof,
  sealedLines,
} from "./_link.ts";
import { Sealer } from "./_sealer.ts";
import { removeAnswered, unknownOutcomes } from "../_unknown_outcomes.ts";
import { createNonce, SKEW_MS, type UsableAnswer, UsedAnswers } from "./_used_answers.ts";
import type { EndpointLimits, HttpEndpoint } from "../http/endpoint.ts";
import type { HttpHost } from "../http/http.ts";

/** An approval request in the form that the client keeps. */
export interface ReplicaQuestion {
  readonly digest: string;
  readonly answers: readonly OfferedAnswer[];
  /** For each answer that covers several tools, the key of its set of tools. */
  readonly setKeys: Readonly<Partial<Record<ApprovalReply, string>>>;
  /** When PML asked, in milliseconds since 1970. */
  readonly at: number;
}

/** The open approval requests of an identity. */
export interface Questions {
  /** Removes an approval request from memory, for sealing; undefined if there is none. */
  send(handle: string): ReplicaQuestion | undefined;
  /**
   * Restores an approval request, and returns its handle. `claim` throws if the approval request was
   * answered before.
   */
  restore(question: ReplicaQuestion, claim: () => Promise<void>): string;
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
export interface ReplicaHost extends Pick<HttpHost, "reportRefused" | "reportError"> {
  /** Returns the endpoint of the identity whose token has this hash; null means the user. */
  endpointOf(identity: string | null): Promise<HttpEndpoint | undefined>;
}

/** How often a process shows that it runs, in milliseconds. */
const HEARTBEAT_MS = 5_000;
/** A process without a heartbeat for this time, in milliseconds, counts as ended. */
const ENDED_MS = 30_000;
/** Matches the ids of waiting work, sessions and tasks. They begin with the id of their process. */
const PROCESS_ID = /^(?:run-)?([0-9a-f]{32})\./;

/** One process of several. */
export class Replica {
  /** The name of this process, which is the prefix of the ids that it creates. */
  readonly prefix: string;
  readonly #id = crypto.randomUUID().replaceAll("-", "");
  readonly #options: ReplicaOptions;
  readonly #log: WarningLog;
  readonly #questionSealer: Sealer;
  readonly #linkSealer: Sealer;
  readonly #used: UsedAnswers;
  readonly #changeChecks = new Set<() => void>();
  /** The forwarded requests that were answered recently. */
  readonly #recentRequests = new Map<string, number>();

  /** Creates a process from the shared options. */
  constructor(options: ReplicaOptions, log: WarningLog) {
    this.#options = options;
    this.#log = log;
    this.prefix = `${this.#id}.`;
    this.#questionSealer = new Sealer(options.secret, "pml questions");
    this.#linkSealer = new Sealer(options.secret, "pml replicas");
    this.#used = new UsedAnswers(options.home, this.#id);
  }

  /**
   * Returns functions that seal and open the approval requests of an identity or the user. Calls
   * `checkForChanges` every five seconds, because the system does not report all changes of files.
   */
  statesFor(
    identity: string | null,
    { questions, checkForChanges: checkForChanges }: {
      readonly questions: () => Promise<Questions>;
      readonly checkForChanges: () => void;
    },
  ) {
    this.#changeChecks.add(checkForChanges);
    const boundTo = (request: string) => [identity, sha256(request)];
    return {
      prefix: this.prefix,
      seal: async (handle: string, request: string) => {
        const sentQuestion = (await questions()).send(handle);
        const expires = (sentQuestion?.at ?? 0) + this.#options.ttl;
        const question = { ...sentQuestion, expires, nonce: createNonce(identity) };
        return `q.${await this.#questionSealer.seal(question, boundTo(request))}`;
      },
      open: async (state: string, request: string) => {
        const opened = await this.#questionSealer.open(state.slice(2), boundTo(request));
        if (!isObject(opened)) throw differentRequestError();
        const question = opened as unknown as ReplicaQuestion & UsableAnswer; // `seal` above created it
        const remaining = question.expires - Date.now();
        // This handle is unknown, so PML asks the user again. A clock may have been set back.
        // guard: sealed-late
        if (remaining <= 0 || remaining > this.#options.ttl + SKEW_MS) return crypto.randomUUID();
        return (await questions()).restore(question, () => this.#used.use(question));
      },
    };
  }

  /** Answers a request, or forwards it to the process that owns its session, task or work. */
  async answer(endpoint: HttpEndpoint, request: HttpRequest): Promise<Response | TextAnswer> {
    const answerHere = async () => await endpoint.answer(request);
    const { method, headers, body, signal } = request;
    const ownerId = processOf(request);
    const address = ownerId && ownerId !== this.#id ? this.#addressOf(ownerId) : "";
    if (!address) return await answerHere();
    const other = new OtherProcess(ownerId, address, this.#linkSealer);
    const parts = other.send({ identity: endpoint.identity, method, headers, body }, signal);
    try {
      const { value } = await parts.next();
      const head = value as AnswerHead; // it was sealed by another process
      const answer = new Headers(head.headers).get("content-type") === EVENTS_TYPE
        ? ReadableStream.from(forwardEvents(parts, body))
        : (await Array.fromAsync(parts)).join("");
      return new Response(answer || null, head);
    } catch (error) {
      if (signal.aborted) throw error;
      const why = String(Object(error).cause ?? error);
      this.#log.warn(`Cannot reach the process at ${address}: ${why}`);
      // The answer reports to the client that the outcome in the other process is unknown.
      return await (why.includes("(Connect)") ? answerHere() : answerAfterLoss(answerHere, body));
    }
  }

  /** Starts to answer requests that other processes forward. */
  async listen(here: ReplicaHost, limits: EndpointLimits & AnswerLimits): Promise<Listener> {
    const answers = new AnswerSender(limits);
    const reportError = (error: Error) => here.reportError(error);
    const { host, port } = this.#options;
    const listener = await listen({
      ...limits,
      host,
      port,
      what: "other processes",
      answer: (request, response) => {
        const { inputBytes } = limits;
        void this.#answerForwarded(request, { here, inputBytes, response })
          .then((answer) => answers.send(response, answer)).catch(reportError);
      },
      onRefused: (status, why) => here.reportRefused(status, why),
    });
    const path = this.#path(this.#id);
    const register = () => writePrivate(path, { address: new URL(listener.origin).host });
    await register();
    await this.#sweep();
    const sendHeartbeat = () => {
      for (const look of this.#changeChecks) look();
      const now = new Date();
      Deno.utime(path, now, now).catch(register).catch(reportError);
    };
    const timer = setInterval(sendHeartbeat, HEARTBEAT_MS);
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

  async #answerForwarded(
    request: IncomingMessage,
    { here, inputBytes, response }: {
      readonly here: ReplicaHost;
      readonly inputBytes: number;
      readonly response: ServerResponse;
    },
  ): Promise<Response> {
    const proof = await this.#linkSealer.open(`${request.headers.authorization}`, [this.#id]);
    // Sealed values come from another process of the same type, so their shape is known.
    const { nonce, at } = objectOf(proof) as unknown as RequestProof;
    // Without the key, a sender must not be able to fill the memory of this process.
    const { json } = this.#isNew(nonce, at)
      ? await readBody(request, { inputBytes: 2 * inputBytes })
      : {};
    const forwarded = await this.#linkSealer.open(`${json}`, [nonce]) as
      | ForwardedHttpRequest
      | undefined;
    if (forwarded === undefined) {
      const why = "it is not sealed";
      here.reportRefused(403, why);
      return rejection(403, { why });
    }
    const { identity, method, headers, body } = forwarded;
    const endpoint = await here.endpointOf(identity);
    const ownAnswer =
      await endpoint?.answer({ method, headers, body, signal: disconnectSignal(response) }) ??
        rejection(401, { why: "its identity is gone" });
    // Do not reuse the connection: on a reused connection, the other process cannot tell a failure
    // before it sent the request from a failure after that.
    return new Response(
      ReadableStream.from(sealedLines(asResponse(ownAnswer), { sealer: this.#linkSealer, nonce })),
      {
        headers: { connection: "close" },
      },
    );
  }

  #isNew(nonce: string, sentAt: number): boolean {
    const now = performance.now();
    for (const [other, until] of this.#recentRequests) {
      if (until > now) break;
      this.#recentRequests.delete(other);
    }
    // The negated comparison also rejects a missing time.
    // guard: passed-on-once
    if (!(Math.abs(Date.now() - sentAt) <= SKEW_MS) || this.#recentRequests.has(nonce)) {
      return false;
    }
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

/** Returns the process of the session, work or task that a request names; "" if it names none. */
function processOf({ headers, body }: HttpRequest): string {
  const { requestState, taskId } = objectOf(objectOf(body).params);
  return PROCESS_ID.exec(textOf(headers["mcp-session-id"] ?? requestState ?? taskId))?.[1] ?? "";
}

/** Returns the answer to a request that PML forwarded to a process that has ended since. */
async function answerAfterLoss(
  here: () => Promise<Response | TextAnswer>,
  body: unknown,
): Promise<Response | TextAnswer> {
  const unknownAnswers = unknownOutcomes(body);
  return unknownAnswers.length === 0
    ? await here()
    : Response.json(Array.isArray(body) ? unknownAnswers : unknownAnswers[0]);
}

/**
 * Forwards whole events. If the stream breaks, the last events report an unknown outcome for each
 * unanswered request.
 */
async function* forwardEvents(
  parts: AsyncGenerator<unknown>,
  body: unknown,
): AsyncGenerator<Uint8Array> {
  const utf8 = new TextEncoder();
  const unanswered = [body].flat();
  let text = "";
  try {
    for await (const part of parts) {
      text += part;
      // guard: passed-on-whole
      if (!text.endsWith("\n\n")) continue;
      // guard: passed-on-answered
      removeAnswered(unanswered, text);
      yield utf8.encode(text);
      text = "";
    }
  } catch (error) {
    if (unknownOutcomes(body).length === 0) throw error;
    for (const unknownAnswer of unknownOutcomes(unanswered)) {
      yield eventBytes(JSON.stringify(unknownAnswer));
    }
  }
}

/** Returns whether a file belongs to a live process, and only this user can write it. */
function isLive(path: string): boolean {
  try {
    const info = Deno.lstatSync(path);
    return info.isFile && !isSharedMode(info) &&
      Date.now() - (info.mtime?.getTime() ?? 0) < ENDED_MS;
  } catch (error) {
    return unlessGone(error) ?? false;
  }
}
