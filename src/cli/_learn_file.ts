/**
 * Shows what `pml learn` would write into the workspace file, as removed and added lines.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { ServerDefinition } from "../config/servers.ts";
import { sha256 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import { withValue } from "./_client_file.ts";
import { refused } from "./_files.ts";
import { findTarget, replace } from "./_import_file.ts";

type Machine = Awaited<ReturnType<App["callPath"]>>["machine"];
type Grants = Parameters<Machine["tryOut"]>[1]["grants"];

/** A change of the workspace file that the person has not agreed to yet. */
export interface Proposal {
  readonly path: string;
  readonly diff: string;
  /** The change as text, or what the person has to write by hand. */
  readonly text: string;
  /** Writes the change; undefined if the server is defined in another file. */
  readonly write: (() => Promise<void>) | undefined;
}

/** Returns the change that confines a server to these grants and sets these variables. */
export async function proposal(
  app: App,
  { server, grants, set }: {
    readonly server: ServerDefinition;
    readonly grants: Grants;
    readonly set: Readonly<Record<string, string>>;
  },
): Promise<Proposal> {
  const { path, found } = await findTarget(app, true);
  const { name, title = name } = server;
  const section = await sectionOf(found?.text, title);
  const entry = JSON.stringify({ [name]: grants });
  if (found === undefined || section === undefined) {
    const env = Object.keys(set).length === 0 ? "" : `, "env": ${JSON.stringify(set)}`;
    const text = `Its definition is not in ${path}. Add to it: "confine": true${env}` +
      (Object.keys(grants).length === 0 ? "" : `, and to .pml.json: "grants": ${entry}`);
    return { path, diff: "", text, write: undefined };
  }
  const steps = [
    { at: [section, title, "confine"] as const, entry: true },
    ...Object.entries(set).map(([variable, entry]) => ({
      at: [section, title, "env", variable] as const,
      entry,
    })),
    ...(Object.keys(grants).length === 0 ? [] : [{ at: ["grants", name] as const, entry: grants }]),
  ];
  let text = found.text;
  const diffs: string[] = [];
  for (const step of steps) {
    const after = await withValue(text, { path, ...step });
    diffs.push(...changed(text, after));
    text = after;
  }
  const write = () =>
    app.policy.store.whileEditing(path, async () => {
      const trusted = await app.policy.store.isTrusted(path, sha256(found.text));
      if (!trusted && !app.config().trusted) throw refused(path, "it is not trusted");
      await replace(app, { path, found, text, trusted });
    });
  const diff = diffs.join("\n");
  const said = diff === "" ? `${path} has this already` : `${path}\n${diff}`;
  return { path, diff, text: said, write };
}

async function sectionOf(
  text: string | undefined,
  title: string,
): Promise<"mcpServers" | "private_mcps" | undefined> {
  const { parse } = await import("jsonc-parser");
  const value: unknown = parse((text ?? "{}").replace(/^\uFEFF/, ""));
  return (["mcpServers", "private_mcps"] as const).find((section) => {
    const servers = isObject(value) ? value[section] : undefined;
    return isObject(servers) && Object.hasOwn(servers, title);
  });
}

/** Returns the lines that are removed, and those that replace them. */
export function changed(before: string, after: string): readonly string[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let same = 0;
  while (same < old.length && old[same] === now[same]) same++;
  let end = 0;
  const most = Math.min(old.length, now.length) - same;
  while (end < most && old.at(-1 - end) === now.at(-1 - end)) end++;
  return [
    ...old.slice(same, old.length - end).map((line) => `- ${line}`),
    ...now.slice(same, now.length - end).map((line) => `+ ${line}`),
  ];
}
