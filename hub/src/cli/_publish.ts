/**
 * `pml-hub publish FILE`, and `yank` and `unyank` with `--to URL`.
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
  prepareCapability,
  type PreparedEntry,
  prepareFile,
  publish,
  tagAt,
  type Target,
  yankAt,
} from "../publish/publish.ts";
import { hubKey } from "./_env.ts";
import { readKeyFile } from "./_key_file.ts";
import { hubProcess } from "./hub_process.ts";
import { ask, print, printToStderr } from "./out.ts";
import { type CommandLine, usage } from "./_command_line.ts";

const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(\/|$)/;
const VERSION = /^\d+\.\d+(\.\d+)?([-+][0-9A-Za-z.+-]+)?$/;
const MAX_LISTED = 20;

/** Shows the user the content that will be public, and publishes a file. */
export async function publishFile(commandLine: CommandLine): Promise<number> {
  const { operand: file, keyFile, json, isDry, isYes, tag } = commandLine;
  // Reports a missing address or key before anything is bundled.
  const target = isDry ? undefined : targetOf(commandLine);
  const signer = keyFile === undefined ? undefined : signerOf(await readKeyFile(keyFile));
  const { cwd: folder } = hubProcess();
  const entry = await prepareCapability(file, folder) ??
    await prepareFile(file, { folder, signal: new AbortController().signal });
  // A module without a version has the version 0.0.0.
  if (!VERSION.test(entry.version) || entry.version === "0.0.0") {
    throw usage(
      `Cannot publish ${quoted(file, 300)}: its version is ${quoted(entry.version)}`,
      "Set a version such as 1.2.0 in __meta__.version, or in the name of the file",
    );
  }
  if (!json) { for (const line of linesOf(entry)) print(line); }
  if (target === undefined) {
    if (json) print(JSON.stringify(jsonOf(entry)));
    return 0;
  }
  if (!isYes && !await ask(`Publish it at ${target.registry}?`)) {
    throw usage("Cannot publish without confirmation", "Answer y on a terminal, or give --yes");
  }
  const report = await publish(entry, { ...target, signer });
  const { fqdn, version } = entry;
  const isPublic = report.state === "public";
  const name = `${fqdn}@${version}`;
  if (json) print(JSON.stringify({ ...jsonOf(entry), state: textOf(report.state) }));
  else if (isPublic) print(`Published ${name} at ${target.registry}`);
  else print(`${name} waits until the operator of ${target.registry} accepts it`);
  if (tag === undefined) return 0;
  // Setting the tag comes last, so that its failure does not hide that the version was published.
  if (isPublic) await tagAt({ fqdn, version, tag }, target);
  else printToStderr(`warning: Set the tag ${quoted(tag)} when the version is public`);
  return 0;
}

/** Hides a version at the hub in `--to`, or shows it again. */
export async function yankRemote(commandLine: CommandLine): Promise<number> {
  const { verb, operand: name, json } = commandLine;
  const reason = verb === "yank" ? commandLine.reason : undefined;
  const report = await yankAt({ name, reason }, targetOf(commandLine));
  const state = report.yanked === true ? "hidden" : "shown";
  print(json ? JSON.stringify({ name, state }) : `${quoted(name)} is ${state}`);
  return 0;
}

function targetOf({ to }: CommandLine): Target {
  if (to === undefined) {
    throw usage("Cannot publish without an address", "Name the hub with --to URL");
  }
  if (!to.startsWith("https://") && !LOOPBACK.test(to)) {
    throw usage(
      `Cannot publish at ${quoted(to, 200)}: others on the network could read the key`,
      "Use an address that begins with https://",
    );
  }
  const key = hubKey();
  if (key !== undefined && /^[\x21-\x7e]+$/.test(key)) return { registry: to, key };
  throw usage(
    key === undefined ? "Cannot publish without a key" : "Cannot publish: PML_HUB_KEY is not a key",
    "Set PML_HUB_KEY to the key that `pml-hub key add` printed",
  );
}

function jsonOf({ fqdn, version, manifest, code, files }: PreparedEntry) {
  const { integrity, permissions } = manifest;
  return {
    fqdn,
    version,
    type: manifest.type,
    integrity,
    permissions,
    tools: toolsOf(manifest),
    ...code !== undefined && { bytes: byteLength(code) },
    files,
  };
}

function linesOf(entry: PreparedEntry): readonly string[] {
  const { fqdn, version, manifest, code, files } = entry;
  const tools = toolsOf(manifest);
  const permissions = Object.entries(isObject(manifest.permissions) ? manifest.permissions : {})
    .filter(([, list]) => Array.isArray(list) && list.length > 0)
    .map(([kind, list]) => `${kind} ${JSON.stringify(list)}`);
  return [
    `${fqdn}@${version}  ${textOf(manifest.type)}`,
    ...code === undefined ? [] : [
      `  code   ${byteLength(code)} bytes, ${integrityOf(new TextEncoder().encode(code))}`,
      ...publishedKind(manifest.type)?.onlyCalls ? callLines(code, manifest) : [
        `  may    ${
          permissions.length === 0
            ? "nothing outside its sandbox"
            : visible(permissions.join(", "), 500)
        }`,
      ],
    ],
    `  tools  ${tools.length === 0 ? "none are listed" : joinNames(tools)}`,
    ...files.length > 1 ? [`  made of ${joinNames(files)}`] : [],
  ];
}

/** Shows the complete code of a saved capability, because it may contain private values. */
function callLines(
  code: string,
  { tools_used: used }: PreparedEntry["manifest"],
): readonly string[] {
  const { plan, code: text = JSON.stringify(plan, undefined, 2) } = parseExact(code);
  const calls = Array.isArray(used) ? used.map(textOf) : [];
  return [
    `  calls  ${calls.length === 0 ? "no tool" : joinNames(calls)}`,
    ...String(text).split("\n").map((line) => `  | ${visible(line, Infinity)}`),
  ];
}

function joinNames(names: readonly string[]): string {
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  return names.slice(0, MAX_LISTED).map((name) => visible(name, 200)).join(", ") + more;
}

function toolsOf({ tools }: PreparedEntry["manifest"]): readonly string[] {
  const all = Array.isArray(tools) ? tools : [];
  return all.map((tool) => textOf(isObject(tool) ? tool.name : tool));
}

function byteLength(code: string): number {
  return new TextEncoder().encode(code).length;
}
