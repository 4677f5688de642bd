/**
 * Describes the permissions of an entry in plain words.
 *
 * @module
 */

import { posix } from "node:path";
import { type Html, html } from "./_html.ts";
import type { Shown, Wish } from "./_manifest.ts";

/** Returns the sentence for a permission. */
export function sentenceOf({ kind, item }: Wish): Html {
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
export function permissionList({ kind, wishes }: Shown): Html {
  if (kind.listsPermissions !== true && wishes.length === 0) return html``;
  if (wishes.length === 0) {
    return html`<p class="calm">It uses no files, no network, no programs and no variables.</p>`;
  }
  const rows = wishes.slice(0, MOST).map((wish) =>
    html`<li class="${wish.kind === "run" ? "grave" : wish.kind}">${sentenceOf(wish)}</li>`
  );
  const rest = wishes.length > MOST ? html`<li>and ${wishes.length - MOST} more</li>` : html``;
  return html`<ul class="wishes">${rows}${rest}</ul>`;
}

const MOST = 200;
