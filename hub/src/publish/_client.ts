/**
 * Sends publications to a hub.
 *
 * @module
 */

import { isObject, parseJson, PmlError, quoted, textOf, visible } from "@casys/pml/registry";

/** A hub that is written to. */
export interface Target {
  /** The URL that clients configure. */
  readonly registry: string;
  readonly key: string;
}

/** A change. */
export interface Sent {
  readonly method: "PUT" | "POST" | "DELETE";
  /** The path below the registry. */
  readonly path: string;
  readonly body: object;
}

/** The answer of a hub. */
export type Members = Readonly<Record<string, unknown>>;

const TRIES = 4;
const TIMEOUT_MS = 60_000;
const WAIT_MS = { least: 500, most: 30_000 };
const MOST = 1_000_000;

/**
 * Sends a change, and again where the hub does not answer: changes are idempotent. Throws the hub's
 * error if it refuses.
 */
export async function send(message: Sent, target: Target): Promise<Members> {
  for (let tried = 1;; tried++) {
    const answer = await attempt(message, target);
    if (answer instanceof Response) return await accepted(answer, target);
    if (tried === TRIES) throw offline(answer.why, target);
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, Math.min(answer.waitMs ?? WAIT_MS.least * 2 ** tried, WAIT_MS.most));
    await promise;
  }
}

/** A try that may be made again. */
interface Later {
  readonly why: string;
  readonly waitMs?: number;
}

async function attempt(
  { method, path, body }: Sent,
  { registry, key }: Target,
): Promise<Response | Later> {
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
    // The platform's message may have the address, and never the header.
    return {
      why: error instanceof Error && error.name === "TimeoutError"
        ? "it is silent"
        : "it cannot be reached",
    };
  }
}

async function accepted(response: Response, { registry }: Target): Promise<Members> {
  const answer = await jsonOf(response);
  if (response.ok && isObject(answer)) return answer;
  const { status } = response;
  const message = messageOf(answer);
  if (status >= 400 && message !== "") {
    const issued = response.headers.get("x-pml-issued");
    throw new PmlError("REGISTRY_BAD_RESPONSE", `The hub refuses it (${status}): ${message}`, {
      hint: hintOf(status),
      ...issued !== null && { detail: { issued } },
    });
  }
  throw new PmlError(
    "REGISTRY_BAD_RESPONSE",
    `Cannot use the answer of ${quoted(registry, 200)}: status ${status}, and no JSON of a hub`,
    { hint: "Check --to: it is the URL that clients name under registries" },
  );
}

function messageOf(answer: unknown): string {
  return isObject(answer) ? visible(textOf(answer.message), 600) : "";
}

function hintOf(status: number): string {
  switch (status) {
    case 401:
      return "Set PML_HUB_KEY to a key that is valid";
    case 409:
      return "Raise the version, and publish again";
    case 413:
      return "Publish less at once";
    default:
      return "Change the named part, and publish again";
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  try {
    for await (const part of response.body ?? []) {
      length += part.length;
      if (length > MOST) return undefined;
      parts.push(part);
    }
    return parseJson(await new Blob(parts).text());
  } catch {
    return undefined; // it is cut, or no JSON
  }
}

function offline(why: string, { registry }: Target): PmlError {
  const message = `Cannot publish at ${quoted(registry, 200)}: ${why}, ${TRIES} times`;
  return new PmlError("REGISTRY_OFFLINE", message, {
    hint: "Check the address and the network, and run it again: the same version twice is one",
  });
}
