/**
 * Sends publications to a hub.
 *
 * @module
 */

import { isObject, parseJson, PmlError, quoted, textOf, visible } from "@casys/pml/registry";

/** A hub to which publications are sent. */
export interface Target {
  /** The URL that clients configure. */
  readonly registry: string;
  /** The key of the publisher. */
  readonly key: string;
}

/** A change that is sent to a hub. */
export interface ChangeRequest {
  readonly method: "PUT" | "POST" | "DELETE";
  /** The path below the registry. */
  readonly path: string;
  readonly body: object;
}

/** The JSON object in the answer of a hub. */
export type HubAnswer = Readonly<Record<string, unknown>>;

const MAX_ATTEMPTS = 4;
const TIMEOUT_MS = 60_000;
/**
 * Without a time from the hub, the wait after attempt N is `least * 2 ** N`. No wait is longer than
 * `most`.
 */
const WAIT_MS = { least: 500, most: 30_000 };
const MAX_BYTES = 1_000_000;

/**
 * Sends a change in at most `MAX_ATTEMPTS` attempts. Sends it again if the hub cannot be reached, or
 * answers with status 429 or with 500 and above; this is safe, because changes are idempotent. Throws
 * the error of the hub if the hub refuses the change.
 */
export async function send(message: ChangeRequest, target: Target): Promise<HubAnswer> {
  for (let attempts = 1;; attempts++) {
    const answer = await attempt(message, target);
    if (answer instanceof Response) return await readAnswer(answer, target);
    if (attempts === MAX_ATTEMPTS) throw offlineError(answer.why, target);
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, Math.min(answer.waitMs ?? WAIT_MS.least * 2 ** attempts, WAIT_MS.most));
    await promise;
  }
}

/** A failed attempt that can be repeated. */
interface Retry {
  readonly why: string;
  readonly waitMs?: number;
}

async function attempt(
  { method, path, body }: ChangeRequest,
  { registry, key }: Target,
): Promise<Response | Retry> {
  try {
    const response = await fetch(`${registry}/${path}`, {
      method,
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { "authorization": `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (response.status !== 429 && response.status < 500) return response;
    const message = messageOf(await jsonOf(response));
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    const why = `it answered ${response.status}${message === "" ? "" : ` (${message})`}`;
    return Number.isFinite(seconds) && seconds >= 0 ? { why, waitMs: seconds * 1_000 } : { why };
  } catch (error) {
    // The platform's error may contain the address, so it is not part of the message.
    return {
      why: error instanceof Error && error.name === "TimeoutError"
        ? `it has not answered for ${TIMEOUT_MS / 1_000} s`
        : "it cannot be reached",
    };
  }
}

async function readAnswer(response: Response, { registry }: Target): Promise<HubAnswer> {
  const answer = await jsonOf(response);
  if (response.ok && isObject(answer)) return answer;
  const { status } = response;
  const message = messageOf(answer);
  if (status >= 400 && message !== "") {
    const issued = response.headers.get("x-pml-issued");
    throw new PmlError(
      "REGISTRY_BAD_RESPONSE",
      `The hub refused the change (${status}): ${message}`,
      {
        hint: hintOf(status),
        ...issued !== null && { detail: { issued } },
      },
    );
  }
  throw new PmlError(
    "REGISTRY_BAD_RESPONSE",
    `Cannot use the answer of ${
      quoted(registry, 200)
    }: status ${status}, without the JSON of a hub`,
    { hint: "Check --to: it is the URL that clients name under registries" },
  );
}

function messageOf(answer: unknown): string {
  return isObject(answer) ? visible(textOf(answer.message), 600) : "";
}

function hintOf(status: number): string {
  switch (status) {
    case 401:
      return "Set PML_HUB_KEY to a valid publisher key";
    case 409:
      return "Raise the version, and publish again";
    case 413:
      return "Make the entry smaller, and publish again";
    default:
      return "Correct the entry as the message says, and publish again";
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  try {
    for await (const part of response.body ?? []) {
      length += part.length;
      if (length > MAX_BYTES) return undefined;
      parts.push(part);
    }
    return parseJson(await new Blob(parts).text());
  } catch {
    return undefined; // incomplete, or not JSON
  }
}

function offlineError(why: string, { registry }: Target): PmlError {
  const message = `Cannot publish at ${quoted(registry, 200)} in ${MAX_ATTEMPTS} attempts: ${why}`;
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint:
      "Check the address and the network, and run the command again; a repeated version is published once",
  });
}
