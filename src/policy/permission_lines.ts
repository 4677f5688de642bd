/**
 * Describes the requested and granted permissions of a module in plain sentences.
 *
 * @module
 */

import { relative, resolve } from "node:path";
import { visible } from "../core/json.ts";
import type { Permissions } from "../protocol/tool.ts";
import { isInside, realPathOf } from "../io/path_info.ts";
import { withPort } from "./grants.ts";

/** The sentence for each kind of granted permission. */
const GRANTED_LINES = {
  net: (host: string) => `connects to ${host}`,
  run: (program: string) =>
    program === "*"
      ? "runs ANY program with your rights, outside the sandbox"
      : `runs ${program} with your rights, outside the sandbox`,
  env: (name: string) => `reads the variable ${name}`,
};

/**
 * Returns a sentence for each granted permission of a tool, then for each requested permission that
 * is not granted. Paths are relative to the workspace or absolute.
 */
export function permissionLines(
  permissions: Permissions,
  effective: Permissions,
  workspace: string,
): readonly string[] {
  const placesOf = (kind: "read" | "write") =>
    effective[kind].map((path) => placeOf(path, workspace));
  const [read, written] = [placesOf("read"), placesOf("write")];
  const lines = [
    ...read.map((place) => `${written.includes(place) ? "reads and writes" : "reads"} ${place}`),
    ...written.filter((place) => !read.includes(place)).map((place) => `writes ${place}`),
    ...(["net", "run", "env"] as const).flatMap((kind) =>
      effective[kind].map((item) => GRANTED_LINES[kind](plain(item)))
    ),
    ...Object.entries(ungrantedPermissions(permissions, effective, workspace)).flatMap(
      ([kind, items]) => items.map((item) => `asks for ${kind} ${plain(item)}: not granted`),
    ),
  ];
  return lines.length > 0
    ? [...new Set(lines)]
    : ["uses no files, no network, no programs and no variables"];
}

/** Returns the requested permissions of a tool that are not granted. */
export function ungrantedPermissions(
  permissions: Permissions,
  effective: Permissions,
  workspace: string,
): Partial<Permissions> {
  // The granted paths are real paths, and the requested ones may be links to them.
  const realPath = (path: string) => realPathOf(resolve(workspace, path));
  const isGranted = (kind: keyof Permissions, item: string) =>
    kind === "read" || kind === "write"
      ? effective[kind].some((path) => isInside(realPath(path), realPath(item)))
      : effective[kind].includes(kind === "net" ? withPort(item) : item);
  const lists = (["read", "write", "net", "run", "env"] as const).map((kind) =>
    [kind, permissions[kind].filter((item) => !isGranted(kind, item))] as const
  );
  return Object.fromEntries(lists.filter(([, items]) => items.length > 0));
}

function placeOf(path: string, workspace: string): string {
  const relativePath = relative(workspace, resolve(workspace, path));
  if (relativePath === "") return "the workspace";
  return isInside(workspace, resolve(workspace, path))
    ? `${plain(relativePath)} in the workspace`
    : `${plain(resolve(workspace, path))}, outside the workspace`;
}

/** Returns a text of a module as one quoted word, so that it cannot continue the sentence. */
function plain(text: string): string {
  return /^[\w.\/\\:*@~[\]-]+$/.test(text) ? visible(text) : JSON.stringify(visible(text));
}
