/**
 * Says in plain words what an entry may do, and what it is.
 *
 * @module
 */

import { posix } from "node:path";
import { type Html, html } from "./_html.ts";
import type { Shown, Wish } from "./_manifest.ts";

/** What a kind of entry is, in a few words and in a sentence. */
export const KINDS: Readonly<
  Record<Shown["kind"], { readonly short: string; readonly long: string }>
> = {
  deno: {
    short: "module",
    long: "It is a module: PML runs its code in a sandbox, with no more than what is named here.",
  },
  stdio: {
    short: "program",
    long: "It is a program: PML starts it with your rights, outside the sandbox, unless you " +
      "confine it.",
  },
  http: {
    short: "remote server",
    long: "It is a remote server: each call goes to its address, whose operator can read it.",
  },
  cloud: {
    short: "cloud server",
    long: "It runs in the cloud: each call goes through the hub, whose operator can read it and " +
      "the keys that go with it.",
  },
  capability: {
    short: "capability",
    long:
      "It is code or a plan that calls the tools named here, and does nothing else. PML judges " +
      "each of these calls by your rules.",
  },
  other: { short: "other", long: "PML does not know entries of this kind." },
};

/** Says what is asked for. */
export function sentenceOf({ kind, item }: Wish): Html {
  const shown = html`<code>${item.slice(0, 500)}</code>`;
  switch (kind) {
    case "read":
    case "write": {
      const verb = kind === "read" ? "Reads" : "Writes";
      return isWorkspace(item)
        ? html`${verb} every file of the workspace`
        : html`${verb} ${shown}${
          isOutside(item) ? ", outside the workspace" : " in the workspace"
        }`;
    }
    case "net":
      return item === "*" ? html`Connects to any host` : html`Connects to ${shown}`;
    case "run":
      return item === "*"
        ? html`Runs <strong>any program</strong> with your rights, outside the sandbox`
        : html`Runs ${shown} with your rights, outside the sandbox`;
    case "env":
      return html`Reads the variable ${shown}`;
  }
}

function isWorkspace(path: string): boolean {
  return [".", "./"].includes(posix.normalize(path));
}

function isOutside(path: string): boolean {
  const plain = posix.normalize(path.replaceAll("\\", "/"));
  return /^(\/|~|[A-Za-z]:|\.\.(\/|$)|\$)/.test(plain);
}

/** Says all that an entry may do, as a list. */
export function permissionList({ kind, wishes }: Shown): Html {
  if (kind !== "deno" && wishes.length === 0) return html``;
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
