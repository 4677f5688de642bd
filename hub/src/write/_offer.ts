/**
 * Checks publications. Their code is not run, bundled or resolved here.
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
import type { Offered } from "../store/store.ts";
import { lookAlikeIn, unseenIn } from "./_unseen.ts";

/** A name with the version under which it is published. */
export interface Target extends Fqdn {
  readonly version: string;
}

/** The largest code and the largest manifest, in bytes. */
const MOST = { code: 2_000_000, manifest: 1_000_000 };
const MEMBERS: ReadonlySet<string> = new Set([
  ...["fqdn", "type", "version", "description", "install", "proxy_to", "url", "headers"],
  ...["permissions", "tools", "env_required", "warnings", "routing", "integrity"],
  ...["issued", "signature", "tools_used"],
]);
/** Clients take less. */
const DEEPEST = 100;
/** The members that name programs, packages, hosts, files, variables and tools. */
const NAMING: ReadonlySet<string> = new Set(
  ["install", "proxy_to", "url", "headers", "permissions", "env_required", "tools_used"],
);

/** Something that cannot be published, and why. */
export class Unfit extends Error {
  /** 413 if it is too large, else 400. */
  readonly status: 400 | 413;

  /** Takes the reason. */
  constructor(why: string, status: 400 | 413 = 400) {
    super(why);
    this.status = status;
  }
}

/** Returns the publication of a body. Throws `Unfit` if clients could not use it. */
export async function offeredIn(
  body: Uint8Array,
  { target, registry }: { readonly target: Target; readonly registry: string },
): Promise<Offered> {
  const offer = jsonOf(body);
  if (!isObject(offer) || !isObject(offer.manifest)) {
    throw new Unfit('the body is not {"manifest": {…}, "code": "…"}');
  }
  const { manifest, code, ...rest } = offer;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new Unfit(`the body has a key ${quoted(unknown)}`);
  if (code !== undefined && typeof code !== "string") throw new Unfit("code is no text");
  checkMembers(manifest, target);
  checkTexts(manifest, { where: "the manifest", depth: 0, isName: false });
  const why = whyRefused(manifest, { asked: target, named: new Set([new URL(registry).host]) });
  if (why !== undefined) throw new Unfit(why);
  checkUpstream(manifest, `${registry}/proxy/${entryName(target)}`);
  const bytes = codeOf(manifest, code);
  if (bytes !== undefined && publishedKind(manifest.type)?.onlyCalls) {
    await checkCapability(manifest, bytes);
  } else if (manifest.tools_used !== undefined) throw new Unfit("only a capability has tools_used");
  const { version } = target;
  return { fqdn: entryName(target), version, manifest, ...bytes && { code: bytes } };
}

/** Parses a body; its numbers keep their texts. Throws `Unfit` if it is no JSON. */
export function jsonOf(body: Uint8Array): Json {
  try {
    return parseExact(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new Unfit("the body is no JSON in UTF-8");
  }
}

function checkMembers(manifest: JsonObject, target: Target): void {
  const unknown = Object.keys(manifest).find((key) => !MEMBERS.has(key));
  if (unknown !== undefined) {
    throw new Unfit(`its key ${quoted(unknown)} is none of a manifest`);
  }
  if (new TextEncoder().encode(JSON.stringify(manifest)).length > MOST.manifest) {
    throw new Unfit(`the manifest has more than ${MOST.manifest} bytes`, 413);
  }
  const name = entryName(target);
  if (manifest.fqdn !== name) {
    throw new Unfit(`its fqdn is ${quoted(textOf(manifest.fqdn))}, wanted ${quoted(name)}`);
  }
  if (manifest.version !== target.version) {
    const version = quoted(textOf(manifest.version));
    throw new Unfit(`its version is ${version}, wanted ${quoted(target.version)}`);
  }
}

/** Where a text of a manifest is. */
interface TextPlace {
  readonly where: string;
  readonly depth: number;
  /** Whether the text names something that a user compares. */
  readonly isName: boolean;
}

/** Refuses texts that a reader would not see, or would take for others. */
function checkTexts(value: Json, { where, depth, isName }: TextPlace): void {
  if (typeof value === "string") return checkText(value, { where, isName });
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return;
  if (depth > DEEPEST) throw new Unfit("it is nested too deep");
  for (const [key, member] of Object.entries(value)) {
    if (!isList) checkText(key, { where: `a name in ${where}`, isName });
    const isNaming = depth === 0 && NAMING.has(key) ||
      depth === 2 && where === "tools" && key === "title";
    const inner = isList ? { where, isName } : { where: key, isName: isName || isNaming };
    checkTexts(member, { ...inner, depth: depth + 1 });
  }
}

function checkText(text: string, { where, isName }: Omit<TextPlace, "depth">): void {
  const unseen = unseenIn(text);
  if (unseen !== undefined) {
    throw new Unfit(
      `${quoted(where)} has a character that cannot be seen, ${unseen}: ${quoted(text)}`,
    );
  }
  const alike = isName ? lookAlikeIn(text) : undefined;
  if (alike !== undefined) {
    throw new Unfit(`${quoted(where)} has a word that looks like another: ${quoted(alike)}`);
  }
}

/** Checks the entry of a server behind this hub. */
function checkUpstream(manifest: JsonObject, proxy: string): void {
  const { type, url, headers, proxy_to: target } = manifest;
  if (!publishedKind(type)?.isInCloud || url === undefined && headers === undefined) return;
  const upstream = upstreamOf(manifest);
  if (typeof upstream === "string") throw new Unfit(upstream);
  if (target !== proxy) {
    throw new Unfit(`its proxy_to is not ${proxy}, where this hub passes it on`);
  }
}

/** Checks that the manifest of a saved capability describes its content. Does not run it. */
async function checkCapability(manifest: JsonObject, bytes: Uint8Array): Promise<void> {
  const { calls } = await capabilityIn(bytes).catch((error) => {
    throw new Unfit(`its code is no capability: ${visible(error.message, 300)}`);
  });
  if (JSON.stringify(manifest.tools_used ?? []) !== JSON.stringify(calls)) {
    throw new Unfit(`its tools_used are not those of its code: ${calls.join(", ")}`);
  }
}

/** Returns the code of a module. Throws if its hash is not the one in the manifest. */
function codeOf(manifest: JsonObject, code: string | undefined) {
  const kind = publishedKind(manifest.type);
  if (!kind?.hasCode) {
    if (code !== undefined) throw new Unfit(`a manifest of type ${manifest.type} has no code`);
    return undefined;
  }
  if (code === undefined) {
    throw new Unfit(`a ${kind.title} needs its code`);
  }
  const bytes = new TextEncoder().encode(code);
  if (bytes.length > MOST.code) {
    throw new Unfit(`the code has ${bytes.length} bytes, and ${MOST.code} are allowed`, 413);
  }
  const integrity = integrityOf(bytes);
  if (manifest.integrity === integrity) return bytes;
  throw new Unfit(`its integrity is not that of the code, which is ${integrity}`);
}
