/**
 * `pml-hub publish FILE`, and `yank` at a hub elsewhere.
 *
 * @module
 */

import {
  integrityOf,
  isObject,
  parseExact,
  publishedKind,
  quoted,
  signerOf,
  textOf,
  visible,
} from "@casys/pml/registry";
import {
  type Prepared,
  prepared,
  preparedCapability,
  publish,
  tagAt,
  type Target,
  yankAt,
} from "../publish/publish.ts";
import { hubKey } from "./_env.ts";
import { keyIn } from "./_key_file.ts";
import { ask, print, tell } from "./out.ts";
import { type Typed, usage } from "./_typed.ts";

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(\/|$)/;
const NUMBERED = /^\d+\.\d+(\.\d+)?([-+][0-9A-Za-z.+-]+)?$/;
const MOST = 20;

/** Shows the user the content that becomes public, and then publishes a file. */
export async function publishFile(typed: Typed): Promise<number> {
  const { file, key, json, isDry, isYes, tag } = typed;
  // Reports a missing address or key before anything is bundled.
  const target = isDry ? undefined : targetOf(typed);
  const signer = key === undefined ? undefined : signerOf(await keyIn(key));
  const entry = await preparedCapability(file) ??
    await prepared(file, new AbortController().signal);
  // The version of a module without one.
  if (!NUMBERED.test(entry.version) || entry.version === "0.0.0") {
    throw usage(
      `Cannot publish ${quoted(file, 300)}: its version is ${quoted(entry.version)}`,
      "Give it one such as 1.2.0: in __meta__.version, or in the name of the file",
    );
  }
  if (!json) { for (const line of linesOf(entry)) print(line); }
  if (target === undefined) {
    if (json) print(JSON.stringify(jsonOf(entry)));
    return 0;
  }
  if (!isYes && !await ask(`Publish it at ${target.registry}?`)) {
    throw usage("Cannot publish without a yes", "Answer y on a terminal, or give --yes");
  }
  const report = await publish(entry, { ...target, signer });
  const { fqdn, version } = entry;
  const isPublic = report.state === "public";
  const name = `${fqdn}@${version}`;
  if (json) print(JSON.stringify({ ...jsonOf(entry), state: textOf(report.state) }));
  else if (isPublic) print(`Published ${name} at ${target.registry}`);
  else print(`${name} waits for the operator of ${target.registry}`);
  if (tag === undefined) return 0;
  // The version is published and reported, whatever becomes of its tag.
  if (isPublic) await tagAt({ fqdn, version, tag }, target);
  else tell(`warning: Set the tag ${quoted(tag)} once it is public`);
  return 0;
}

/** Hides a version at a hub elsewhere, or shows it again. */
export async function yankElsewhere(typed: Typed): Promise<number> {
  const { verb, file: name, json } = typed;
  const reason = verb === "yank" ? typed.reason : undefined;
  const report = await yankAt({ name, reason }, targetOf(typed));
  const state = report.yanked === true ? "hidden" : "shown";
  print(json ? JSON.stringify({ name, state }) : `${quoted(name)} is ${state}`);
  return 0;
}

function targetOf({ to }: Typed): Target {
  if (to === undefined) {
    throw usage("Cannot publish without an address", "Name the hub with --to URL");
  }
  if (!to.startsWith("https://") && !LOOPBACK.test(to)) {
    throw usage(
      `Cannot publish at ${quoted(to, 200)}: everybody on the way could read the key`,
      "Use an address that begins with https://",
    );
  }
  const key = hubKey();
  if (key !== undefined && /^[\x21-\x7e]+$/.test(key)) return { registry: to, key };
  throw usage(
    key === undefined ? "Cannot publish without a key" : "Cannot publish: PML_HUB_KEY is no key",
    "Set PML_HUB_KEY to the key that `pml-hub key add` printed",
  );
}

function jsonOf({ fqdn, version, manifest, code, files }: Prepared) {
  const { integrity, permissions } = manifest;
  return {
    fqdn,
    version,
    type: manifest.type,
    integrity,
    permissions,
    tools: toolsOf(manifest),
    ...code !== undefined && { bytes: bytesOf(code) },
    files,
  };
}

function linesOf(entry: Prepared): readonly string[] {
  const { fqdn, version, manifest, code, files } = entry;
  const tools = toolsOf(manifest);
  const asks = Object.entries(isObject(manifest.permissions) ? manifest.permissions : {})
    .filter(([, list]) => Array.isArray(list) && list.length > 0)
    .map(([kind, list]) => `${kind} ${JSON.stringify(list)}`);
  return [
    `${fqdn}@${version}  ${textOf(manifest.type)}`,
    ...code === undefined ? [] : [
      `  code   ${bytesOf(code)} bytes, ${integrityOf(new TextEncoder().encode(code))}`,
      ...publishedKind(manifest.type)?.onlyCalls ? callLines(code, manifest) : [
        `  may    ${
          asks.length === 0 ? "nothing outside its sandbox" : visible(asks.join(", "), 500)
        }`,
      ],
    ],
    `  tools  ${tools.length === 0 ? "none are named" : listed(tools)}`,
    ...files.length > 1 ? [`  made of ${listed(files)}`] : [],
  ];
}

/** Shows all of a saved capability: it may contain private values. */
function callLines(code: string, { tools_used: used }: Prepared["manifest"]): readonly string[] {
  const { plan, code: text = JSON.stringify(plan, undefined, 2) } = parseExact(code);
  const calls = Array.isArray(used) ? used.map(textOf) : [];
  return [
    `  calls  ${calls.length === 0 ? "no tool" : listed(calls)}`,
    ...String(text).split("\n").map((line) => `  | ${visible(line, Infinity)}`),
  ];
}

function listed(all: readonly string[]): string {
  const more = all.length > MOST ? ` and ${all.length - MOST} more` : "";
  return all.slice(0, MOST).map((one) => visible(one, 200)).join(", ") + more;
}

function toolsOf({ tools }: Prepared["manifest"]): readonly string[] {
  const all = Array.isArray(tools) ? tools : [];
  return all.map((tool) => textOf(isObject(tool) ? tool.name : tool));
}

function bytesOf(code: string): number {
  return new TextEncoder().encode(code).length;
}
