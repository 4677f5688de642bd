/**
 * Sends one request to a provider, retries while the provider is busy, and reads the streamed
 * answer up to a size limit.
 *
 * @module
 */

import { type ErrorCode, keyHint, messageOf, PmlError } from "../core/errors.ts";
import type { Fetch } from "../core/fetch.ts";
import type { Redactor } from "../audit/redact.ts";
import { boundedJson } from "../core/json_bounds.ts";
import { isObject, type JsonObject, objectOf, quoted, textOf, visible } from "../core/json.ts";
import { contentType, eachEvent, EVENTS_TYPE, readStart } from "../io/event_stream.ts";
import { pause } from "../io/waiting.ts";
import type { SamplingSettings } from "../config/sampling.ts";
import { ANTHROPIC } from "./_anthropic.ts";
import { OPENAI } from "./_openai.ts";
import type { ModelAnswer, Turn } from "./_wire.ts";

/** Receives the progress of one request. */
export interface AnswerProgress {
  /** Reports the number of characters received so far. */
  onGrowth(characters: number): void;
  /** Reports that the request to a busy provider is retried. */
  onBusy(message: string): void;
}

/** The settings and collaborators of a request. */
export interface ProviderContext {
  readonly settings: SamplingSettings;
  readonly key: string;
  readonly fetch: Fetch;
  readonly signal: AbortSignal;
  /** Removes keys from the provider's error messages. */
  readonly redactor: Pick<Redactor, "clean">;
  readonly progress: AnswerProgress;
}

/** A request that the provider rejected. */
interface ProviderRefusal {
  readonly status: number;
  readonly message: string;
  /** The time from `Retry-After`, in milliseconds. */
  readonly waitMs?: number | undefined;
}

const FORMATS = { anthropic: ANTHROPIC, openai: OPENAI };
const ATTEMPTS = 3;
const BUSY_STATUSES = [408, 429, 500, 502, 503, 504, 529];
const [WAIT_MS, WAIT_MAX_MS] = [500, 20_000];
/**
 * The maximum size of an answer in bytes: per token, and in addition. An event with one token has
 * about 300 bytes.
 */
const [BYTES_A_TOKEN, BYTES_BESIDE] = [1_024, 256 * 1_024];
const TOO_LONG = /too (?:long|large)|context|maximum.{1,30}tokens/i;
/** The HTTP status that corresponds to an error inside a stream. */
const STATUS_BY_ERROR_TYPE = new Map(Object.entries({
  overloaded_error: 529,
  rate_limit_error: 429,
  api_error: 500,
  server_error: 500,
}));
/** Ends the reading of a stream when the answer is complete. */
const COMPLETE = new Error("the answer is whole");

/** Returns the host of a provider, with its port. */
export function providerHost({ baseUrl }: Pick<SamplingSettings, "baseUrl">): string {
  return new URL(baseUrl).host;
}

/** Sends a request and returns the answer. Throws a `PmlError` with a hint if there is none. */
export async function askProvider(turn: Turn, context: ProviderContext): Promise<ModelAnswer> {
  const { settings, signal, progress } = context;
  for (let attempt = 1;; attempt++) {
    const answer = await sendOnce(turn, context);
    if (!("status" in answer)) return answer;
    const { status, waitMs = WAIT_MS * 2 ** (attempt - 1) * (1 + Math.random()) } = answer;
    const isLast = attempt >= ATTEMPTS || waitMs > WAIT_MAX_MS;
    if (isLast || !BUSY_STATUSES.includes(status)) throw refusalError(answer, context);
    progress.onBusy(`${providerHost(settings)} is busy (${status}); trying again`);
    await pause(waitMs, signal);
    signal.throwIfAborted();
  }
}

async function sendOnce(
  turn: Turn,
  context: ProviderContext,
): Promise<ModelAnswer | ProviderRefusal> {
  const { settings: { provider, baseUrl, isCompatible }, key, fetch, signal } = context;
  const format = FORMATS[provider];
  const { hostname } = new URL(baseUrl);
  const response = await fetch(`${baseUrl}${format.path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "accept": EVENTS_TYPE,
      ...format.headers(key),
    },
    body: JSON.stringify(format.body(turn, isCompatible)),
    signal,
    // The user configured this host, so it may be private. The default address must be public.
    named: new Set(isCompatible ? [hostname] : []),
  });
  const { status } = response;
  if (status === 200 && contentType(response) === EVENTS_TYPE) {
    return await readAnswer(response, turn, context);
  }
  const text = await readStart(response.body);
  const message = status === 200
    ? `its answer is not a stream of events, but ${quoted(contentType(response))}`
    : status >= 300 && status < 400
    ? "it redirects to another address, and PML does not send your key there"
    : messageIn(text);
  return { status, message, waitMs: waitOf(response.headers) };
}

async function readAnswer(
  { body }: Response,
  turn: Turn,
  { settings, redactor, progress, signal }: ProviderContext,
): Promise<ModelAnswer | ProviderRefusal> {
  const reader = FORMATS[settings.provider].createReader();
  const most = turn.maxTokens * BYTES_A_TOKEN + BYTES_BESIDE;
  const limits = { lineBytes: most, resultBytes: most };
  let [bytes, characters] = [0, 0];
  let refusal: ProviderRefusal | undefined;
  const take = ({ data }: { readonly data: Uint8Array }) => {
    if ((bytes += data.length) > most) throw new Error(`it has more than ${most} bytes`);
    const event = boundedJson(data);
    if (event === undefined) {
      // OpenAI ends its streams with this text.
      if (new TextDecoder().decode(data) === "[DONE]") throw COMPLETE;
      if (data.length > 0) throw new Error("one of its events is not JSON");
    }
    const fields = objectOf(event);
    if (isObject(fields.error)) {
      refusal = refusalIn(fields.error as JsonObject);
      throw COMPLETE;
    }
    const addedLength = reader.take(fields);
    if (addedLength > 0) progress.onGrowth(characters += addedLength);
    if (fields.type === "message_stop") throw COMPLETE;
  };
  try {
    await eachEvent(body, { limits, take });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error !== COMPLETE) {
      throw unreadableAnswerError(settings, redactor.clean(visible(messageOf(error), 300)));
    }
  }
  // An answer that has begun is not retried.
  if (refusal !== undefined && characters === 0) return refusal;
  const answer = refusal === undefined ? reader.end() : undefined;
  if (answer === undefined) {
    throw unreadableAnswerError(
      settings,
      redactor.clean(refusal?.message ?? "it broke off before its end"),
    );
  }
  return answer;
}

function refusalIn(error: JsonObject): ProviderRefusal {
  const kind = textOf(error.type);
  return {
    status: STATUS_BY_ERROR_TYPE.get(kind) ?? 400,
    message: messageIn(JSON.stringify({ error })),
  };
}

/** Returns the message in the body of an error, in the format of either provider. */
function messageIn(text: string): string {
  const { error, message } = objectOf(boundedJson(new TextEncoder().encode(text)));
  const reason = textOf(objectOf(error).message ?? message ?? error);
  return visible(reason === "" ? text.replace(/\s+/g, " ") : reason, 300);
}

/** Returns the time from `Retry-After` in milliseconds; undefined without a valid one. */
function waitOf(headers: Headers): number | undefined {
  const after = headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(after) ? Number(after) * 1_000 : undefined;
}

function unreadableAnswerError(settings: SamplingSettings, why: string): PmlError {
  return new PmlError(
    "UPSTREAM_PROTOCOL",
    `Cannot read the answer of ${quoted(providerHost(settings))}: ${why}`,
    { hint: "Try again. The tokens of this request count as used", detail: { may_have_run: true } },
  );
}

/** Returns the error for a rejected request, with a hint for the user. */
function refusalError(
  { status, message: body, waitMs }: ProviderRefusal,
  context: ProviderContext,
): PmlError {
  const { settings: { key, model, baseUrl }, redactor } = context;
  const refusal = (code: ErrorCode, why: string, hint: string) =>
    new PmlError(
      code,
      `Cannot sample at ${quoted(providerHost({ baseUrl }))}: ${why} ` +
        `(${status}: ${redactor.clean(body)})`,
      { hint, detail: { status } },
    );
  switch (status) {
    case 401:
    case 403: {
      return refusal("KEY_MISSING", `it refuses ${key}`, keyHint(key));
    }
    case 404: {
      const hint = "Look at sampling.model and sampling.base_url in config.yaml";
      return refusal("UPSTREAM_PROTOCOL", `it has no ${quoted(model)}`, hint);
    }
    case 429: {
      const after = waitMs === undefined ? "" : ` in ${Math.ceil(waitMs / 1_000)} s`;
      return refusal("OVERLOADED", "the limit of your account is met", `Try again${after}`);
    }
  }
  if (status === 413 || status === 400 && TOO_LONG.test(body)) {
    return refusal("INPUT_TOO_LARGE", "the request is too long", "Send fewer and shorter messages");
  }
  return BUSY_STATUSES.includes(status)
    ? refusal("UPSTREAM_DOWN", "it is overloaded or down", `It was asked ${ATTEMPTS} times`)
    : refusal("UPSTREAM_PROTOCOL", "it refuses the request", "Look at `sampling` in config.yaml");
}
