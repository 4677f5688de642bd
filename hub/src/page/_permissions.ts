/**
 * Describes the permissions of an entry in plain words.
 *
 * @module
 */

import { posix } from "node:path";
import { type Html, html } from "./_html.ts";
import type { ManifestView, Permission } from "./_manifest.ts";

/** Describes a permission in a sentence. */
export function sentenceOf({ kind, item }: Permission): Html {
  const code = html`<code>${item.slice(0, 500)}</code>`;
  switch (kind) {
    case "read":
    case "write": {
      const verb = kind === "read" ? "Reads" : "Writes";
      return isWorkspace(item)
        ? html`${verb} every file of the workspace`
        : html`${verb} ${code}${isOutside(item) ? ", outside the workspace" : " in the workspace"}`;
    }
    case "net":
      return item === "*" ? html`Connects to any host` : html`Connects to ${code}`;
    case "run":
      return item === "*"
        ? html`Runs <strong>any program</strong> with your rights, outside the sandbox`
        : html`Runs ${code} with your rights, outside the sandbox`;
    case "env":
      return html`Reads the variable ${code}`;
  }
}

function isWorkspace(path: string): boolean {
  return [".", "./"].includes(posix.normalize(path));
}

function isOutside(path: string): boolean {
  const plain = posix.normalize(path.replaceAll("\\", "/"));
  return /^(\/|~|[A-Za-z]:|\.\.(\/|$)|\$)/.test(plain);
}

/** Shows the list of all permissions of an entry. */
export function permissionList({ kind, permissions }: ManifestView): Html {
  if (kind.listsPermissions !== true && permissions.length === 0) return html``;
  if (permissions.length === 0) {
    return html`<p class="calm">It uses no files, no network, no programs and no variables.</p>`;
  }
  const rows = permissions.slice(0, MAX_ROWS).map((permission) =>
    html`<li class="${permission.kind === "run" ? "grave" : permission.kind}">${
      sentenceOf(permission)
    }</li>`
  );
  const rest = permissions.length > MAX_ROWS
    ? html`<li>and ${permissions.length - MAX_ROWS} more</li>`
    : html``;
  return html`<ul class="wishes">${rows}${rest}</ul>`;
}

const MAX_ROWS = 200;
