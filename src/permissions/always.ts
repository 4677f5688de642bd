/**
 * Keeps a rule in the workspace file: whole or not at all, and with the trust that the file had.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { RULES_FILE_MAX } from "../core/pattern.ts";
import { type Plain, readPlain, writeWhole } from "../io/private_files.ts";
import { allowingText, newText, type RuleLists } from "./_rule_text.ts";
import { hashOf, type TrustStore } from "./trust.ts";

export type { RuleLists } from "./_rule_text.ts";

/** What is allowed, and what is needed for it. */
export interface AllowOptions {
  readonly rule: string;
  readonly trusted: TrustStore;
  /** The rules that hold where a file has no `permissions`. */
  readonly defaults: RuleLists;
  /** Whether the file counts as trusted whatever its bytes, because `PML_TRUST` lists it. */
  readonly listed?: boolean;
}

/**
 * Adds one rule to `allow` in the file at this real path, and drops the same one from `ask`. A file
 * that is not the trusted one is left alone; one that is missing is made, and trusted.
 */
export async function addAllow(file: string, options: AllowOptions): Promise<void> {
  if (await Deno.realPath(dirname(file)) !== dirname(file)) throw notTrusted(file);
  await options.trusted.whileEditing(file, async () => {
    const before = readPlain(file);
    await (before === undefined ? create(file, options) : edit(file, { before, ...options }));
  });
}

async function create(file: string, { rule, trusted, defaults }: AllowOptions): Promise<void> {
  const bytes = new TextEncoder().encode(newText(rule, defaults));
  // Trusted first: these bytes are PML's own, and a crash in between leaves only the record.
  await trusted.trust({ path: file, hash: hashOf(bytes), servers: {} });
  await writeWhole(file, { bytes, mode: 0o644, over: "nothing" });
}

async function edit(
  file: string,
  { before, trusted, listed, ...wanted }: AllowOptions & { readonly before: Plain },
): Promise<void> {
  const from = hashOf(before.bytes);
  if (!listed && !await trusted.isTrusted(file, from)) throw notTrusted(file);
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(before.bytes);
  const bytes = new TextEncoder().encode(await allowingText(text, wanted));
  const to = hashOf(bytes);
  if (to === from) return;
  // A file that nobody reads any more would stop every call.
  if (bytes.length > RULES_FILE_MAX) throw tooLong(file, bytes.length);
  // Both while it is written, so that a crash in between loses no trust.
  await trusted.move(file, { from, to: [from, to] });
  await writeWhole(file, { bytes, mode: before.mode, over: before.bytes });
  await trusted.move(file, { from: to, to: [to] });
}

function notTrusted(file: string): PmlError {
  return new PmlError(
    "WORKSPACE_UNTRUSTED",
    `Cannot write the rules to ${quoted(file, 400)}: it is not the file that was trusted`,
    { hint: "Look at what changed in it, run `pml trust`, then try again" },
  );
}

function tooLong(file: string, bytes: number): PmlError {
  const what = `Cannot write the rules to ${quoted(file, 400)}: it would have ${bytes} bytes`;
  return new PmlError("CONFIG_INVALID", what, {
    hint: `Keep it to ${RULES_FILE_MAX} bytes: take out rules that nobody needs`,
  });
}
