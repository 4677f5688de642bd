/**
 * Validates the bodies of publications. The hub does not run, bundle or resolve their code.
 *
 * @module
 */

import {
  capabilityIn,
  entryName,
  type Fqdn,
  integrityOf,
  isObject,
  type Json,
  type JsonObject,
  parseExact,
  publishedKind,
  quoted,
  textOf,
  visible,
  whyRefused,
} from "@casys/pml/registry";
import { upstreamOf } from "../mcp/upstream.ts";
import type { OfferedVersion } from "../store/store.ts";
import { findInvisible, findLookAlike } from "./_look_alikes.ts";

/** A name with the version under which it is published. */
export interface Target extends Fqdn {
  readonly version: string;
}

/** The maximum size of the code and of the manifest, in bytes. */
const MAX_BYTES = { code: 2_000_000, manifest: 1_000_000 };
const MEMBERS: ReadonlySet<string> = new Set([
  ...["fqdn", "type", "version", "description", "install", "proxy_to", "url", "headers"],
  ...["permissions", "tools", "env_required", "warnings", "routing", "integrity"],
  ...["issued", "signature", "tools_used"],
]);
/** The maximum nesting of a manifest. The limit of clients is lower. */
const MAX_DEPTH = 100;
/** The members whose texts name programs, packages, hosts, files, variables or tools. */
const NAMING_MEMBERS: ReadonlySet<string> = new Set(
  ["install", "proxy_to", "url", "headers", "permissions", "env_required", "tools_used"],
);

/** Thrown if a request cannot be accepted; the message is the reason. */
export class InvalidPublication extends Error {
  /** The status of the response: 413 if the body, manifest or code is too large, else 400. */
  readonly status: 400 | 413;

  /** Creates an error with a reason for the publisher. */
  constructor(why: string, status: 400 | 413 = 400) {
    super(why);
    this.status = status;
  }
}

/**
 * Parses the body of a publication. Throws `InvalidPublication` if clients could not use the entry.
 */
export async function parsePublication(
  body: Uint8Array,
  { target, registry }: { readonly target: Target; readonly registry: string },
): Promise<OfferedVersion> {
  const offer = parseBody(body);
  if (!isObject(offer) || !isObject(offer.manifest)) {
    throw new InvalidPublication('the body is not {"manifest": {…}, "code": "…"}');
  }
  const { manifest, code, ...rest } = offer;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new InvalidPublication(`the body has a key ${quoted(unknown)}`);
  if (code !== undefined && typeof code !== "string") {
    throw new InvalidPublication("code is not a string");
  }
  checkMembers(manifest, target);
  checkTexts(manifest, { where: "the manifest", depth: 0, isName: false });
  const why = whyRefused(manifest, { asked: target, named: new Set([new URL(registry).host]) });
  if (why !== undefined) throw new InvalidPublication(why);
  checkUpstream(manifest, `${registry}/proxy/${entryName(target)}`);
  const bytes = checkCode(manifest, code);
  if (bytes !== undefined && publishedKind(manifest.type)?.onlyCalls) {
    await checkCapability(manifest, bytes);
  } else if (manifest.tools_used !== undefined) {
    throw new InvalidPublication("only a capability has tools_used");
  }
  const { version } = target;
  return { fqdn: entryName(target), version, manifest, ...bytes && { code: bytes } };
}

/** Parses a body as JSON with exact numbers. Throws `InvalidPublication` if it is not JSON. */
export function parseBody(body: Uint8Array): Json {
  try {
    return parseExact(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new InvalidPublication("the body is not JSON in UTF-8");
  }
}

function checkMembers(manifest: JsonObject, target: Target): void {
  const unknown = Object.keys(manifest).find((key) => !MEMBERS.has(key));
  if (unknown !== undefined) {
    throw new InvalidPublication(`its key ${quoted(unknown)} is not a key of manifests`);
  }
  if (new TextEncoder().encode(JSON.stringify(manifest)).length > MAX_BYTES.manifest) {
    throw new InvalidPublication(`the manifest has more than ${MAX_BYTES.manifest} bytes`, 413);
  }
  const name = entryName(target);
  if (manifest.fqdn !== name) {
    throw new InvalidPublication(
      `its fqdn is ${quoted(textOf(manifest.fqdn))}, wanted ${quoted(name)}`,
    );
  }
  if (manifest.version !== target.version) {
    const version = quoted(textOf(manifest.version));
    throw new InvalidPublication(`its version is ${version}, wanted ${quoted(target.version)}`);
  }
}

/** The position of a text in a manifest. */
interface TextContext {
  readonly where: string;
  readonly depth: number;
  /** Whether the text is a name that a user compares before approving. */
  readonly isName: boolean;
}

/** Throws if a text has invisible characters, or if a name looks like another one. */
function checkTexts(value: Json, { where, depth, isName }: TextContext): void {
  if (typeof value === "string") return checkText(value, { where, isName });
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return;
  if (depth > MAX_DEPTH) throw new InvalidPublication("it is nested too deep");
  for (const [key, member] of Object.entries(value)) {
    if (!isList) checkText(key, { where: `a name in ${where}`, isName });
    const isNaming = depth === 0 && NAMING_MEMBERS.has(key) ||
      depth === 2 && where === "tools" && key === "title";
    const inner = isList ? { where, isName } : { where: key, isName: isName || isNaming };
    checkTexts(member, { ...inner, depth: depth + 1 });
  }
}

function checkText(text: string, { where, isName }: Omit<TextContext, "depth">): void {
  const invisible = findInvisible(text);
  if (invisible !== undefined) {
    throw new InvalidPublication(
      `${quoted(where)} has an invisible character, ${invisible}: ${quoted(text)}`,
    );
  }
  const alike = isName ? findLookAlike(text) : undefined;
  if (alike !== undefined) {
    throw new InvalidPublication(
      `${quoted(where)} has a word that looks like another: ${quoted(alike)}`,
    );
  }
}

/** Checks the address and headers in an entry of a server behind this hub. */
function checkUpstream(manifest: JsonObject, proxy: string): void {
  const { type, url, headers, proxy_to: target } = manifest;
  if (!publishedKind(type)?.isInCloud || url === undefined && headers === undefined) return;
  const upstream = upstreamOf(manifest);
  if (typeof upstream === "string") throw new InvalidPublication(upstream);
  if (target !== proxy) {
    throw new InvalidPublication(
      `its proxy_to must be ${proxy}, where this hub passes requests on`,
    );
  }
}

/** Checks that the manifest of a saved capability lists the calls of its code. Does not run it. */
async function checkCapability(manifest: JsonObject, bytes: Uint8Array): Promise<void> {
  const { calls } = await capabilityIn(bytes).catch((error) => {
    throw new InvalidPublication(`its code is not a capability: ${visible(error.message, 300)}`);
  });
  if (JSON.stringify(manifest.tools_used ?? []) !== JSON.stringify(calls)) {
    throw new InvalidPublication(`its tools_used are not those of its code: ${calls.join(", ")}`);
  }
}

/**
 * Returns the code as bytes; undefined if entries of this type have no code. Throws if code is
 * missing, too long or not allowed, or if the manifest contains another hash.
 */
function checkCode(manifest: JsonObject, code: string | undefined) {
  const kind = publishedKind(manifest.type);
  if (!kind?.hasCode) {
    if (code !== undefined) {
      throw new InvalidPublication(`a manifest of type ${manifest.type} has no code`);
    }
    return undefined;
  }
  if (code === undefined) {
    throw new InvalidPublication(`a ${kind.title} needs its code`);
  }
  const bytes = new TextEncoder().encode(code);
  if (bytes.length > MAX_BYTES.code) {
    throw new InvalidPublication(
      `the code has ${bytes.length} bytes, more than ${MAX_BYTES.code}`,
      413,
    );
  }
  const integrity = integrityOf(bytes);
  if (manifest.integrity === integrity) return bytes;
  throw new InvalidPublication(`its integrity is not the hash of the code, which is ${integrity}`);
}
