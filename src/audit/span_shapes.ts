/**
 * The parts that many spans share: names and attributes. PML computes them once, because computing
 * them for each span took longer than the remaining work for the span.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import type { ErrorType } from "../protocol/trace.ts";

/** The value of an attribute. */
export type AttributeValue = string | number;

/** Removes secrets from a text. */
export interface TextCleaner {
  redact(text: string): string;
}

/** The facts that many spans share. */
export interface SpanFacts {
  /** The number of the kind in OpenTelemetry's API, which is one less than the number in OTLP. */
  readonly kind: number;
  readonly method: string;
  /** The name of the tool or prompt. */
  readonly target: string | undefined;
  /** The URI of the resource. */
  readonly uri: string | undefined;
  /** Whether the span is of a request. If false, PML ran the call itself. */
  readonly isRequest: boolean;
  readonly revision: string | undefined;
  readonly session: string | undefined;
  /** Whether the request comes or goes over the network. */
  readonly isRemote: boolean;
  readonly server: string | undefined;
  /** The address of a remote server. */
  readonly address: URL | undefined;
}

/** The longest text of an attribute. */
const TEXT_MAX = 200;
/** The maximum number of cached shapes. */
const SHAPES_MAX = 1_000;

/** The facts of spans and their error. */
export class SpanShape {
  readonly facts: SpanFacts;
  /** The `error.type`; undefined if the request succeeded. */
  readonly error: ErrorType;
  /** The index of this shape in `batch`. A map from shapes to indexes would be slower. */
  index = 0;
  /** Identifies the batch, until it is cleared, for which `index` is valid. */
  batch: object | undefined;
  /** The cached shapes with the same facts and an error. */
  #failed: SpanShape[] | undefined;

  /** Takes the facts and the error. */
  constructor(facts: SpanFacts, error?: ErrorType) {
    this.facts = facts;
    this.error = error;
  }

  /** Returns the shape of spans with the same facts and an error. */
  failed(error: ErrorType): SpanShape {
    const cached = this.#failed?.find((shape) => shape.error === error);
    if (cached !== undefined) return cached;
    const shape = new SpanShape(this.facts, error);
    // A server chooses the codes of its errors, so their number must be limited.
    if (this.#failed === undefined || this.#failed.length >= SHAPES_MAX) this.#failed = [];
    this.#failed.push(shape);
    return shape;
  }

  /** Returns the name of the span. */
  name(cleaner: TextCleaner): string {
    const { method, target } = this.facts;
    return cleanText(target === undefined ? method : `${method} ${target}`, cleaner);
  }

  /** Returns all attributes except the id of the request. */
  attributes(cleaner: TextCleaner): Readonly<Record<string, AttributeValue>> {
    return attributesOf(this.facts, this.error, cleaner);
  }

  /** Returns whether the shape has these facts. */
  matches(facts: SpanFacts): boolean {
    const own = this.facts;
    return facts.method === own.method && facts.kind === own.kind &&
      facts.server === own.server && facts.revision === own.revision &&
      facts.target === own.target && facts.uri === own.uri && facts.session === own.session &&
      facts.isRemote === own.isRemote && facts.isRequest === own.isRequest &&
      (facts.address === own.address || facts.address?.host === own.address?.host);
  }
}

/** The cached shapes of spans. */
export class SpanShapes {
  readonly #shapes = new Map<string, SpanShape[]>();
  #size = 0;

  /** Returns the shape of these facts, without an error. Copies the facts for a new shape. */
  of(facts: SpanFacts): SpanShape {
    const key = facts.target ?? facts.uri ?? facts.method;
    const shapes = this.#shapes.get(key);
    if (shapes !== undefined) {
      for (const shape of shapes) if (shape.matches(facts)) return shape;
    }
    if (this.#size >= SHAPES_MAX) {
      this.#shapes.clear();
      this.#size = 0;
    }
    const shape = new SpanShape({ ...facts });
    this.#size++;
    this.#shapes.set(key, [...this.#shapes.get(key) ?? [], shape]);
    return shape;
  }
}

function attributesOf(
  facts: SpanFacts,
  error: ErrorType,
  cleaner: TextCleaner,
): Record<string, AttributeValue> {
  const { method, target, isRequest, uri, revision, session, isRemote, server, address } = facts;
  const attributes: Record<string, AttributeValue> = {};
  if (isRequest) {
    attributes["mcp.method.name"] = cleanText(method, cleaner);
    attributes["network.transport"] = isRemote ? "tcp" : "pipe";
  }
  if (revision !== undefined) attributes["mcp.protocol.version"] = cleanText(revision, cleaner);
  if (target !== undefined) {
    const isTool = method !== "prompts/get";
    attributes[isTool ? "gen_ai.tool.name" : "gen_ai.prompt.name"] = cleanText(target, cleaner);
    if (isTool) attributes["gen_ai.operation.name"] = "execute_tool";
  }
  if (uri !== undefined) attributes["mcp.resource.uri"] = cleanText(uri, cleaner);
  // The id of a session is a credential, so only its hash is exported.
  if (session !== undefined) attributes["mcp.session.id"] = sha256(session).slice(0, 32);
  if (server !== undefined) attributes["pml.server"] = server;
  if (address !== undefined) {
    const { hostname, port, protocol } = address;
    attributes["server.address"] = cleanText(hostname, cleaner);
    attributes["server.port"] = Number(port || (protocol === "https:" ? 443 : 80));
  }
  if (error !== undefined) {
    attributes["error.type"] = `${error}`;
    if (typeof error === "number") attributes["rpc.response.status_code"] = `${error}`;
  }
  return attributes;
}

/**
 * Removes secrets from a text, then shortens it. In the other order, a part of a secret could
 * remain at the end.
 */
export function cleanText(text: string, cleaner: TextCleaner): string {
  const whole = cleaner.redact(text);
  return whole.length > TEXT_MAX ? `${whole.slice(0, TEXT_MAX)}…` : whole;
}
