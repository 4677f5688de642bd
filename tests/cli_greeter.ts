/**
 * A workspace with its own module, and the expected form of a command that failed.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { CommandResult } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** A module that greets, shows a picture, fails and waits. */
export const GREETER = `export const __meta__ = {
  name: "greeter",
  tools: {
    greet: {
      description: "Greet somebody",
      inputSchema: {
        type: "object",
        properties: { name: { type: "string" }, times: { type: "integer" } },
        required: ["name"],
      },
    },
    picture: { description: "Give a picture", inputSchema: { type: "object" } },
    fail: { description: "Fail", inputSchema: { type: "object" } },
    wait: { description: "Wait", inputSchema: { type: "object" } },
  },
};
export function greet({ name, times = 1 }) { return "hello ".repeat(times) + name; }
export function picture() {
  return { content: [{ type: "image", mimeType: "image/png", data: "AAECAw==" }] };
}
export function fail() { throw new Error("it went wrong"); }
export function wait() { return new Promise(() => {}); }
`;

/** A workspace file that defines it. */
export const PML = {
  version: 1,
  permissions: {
    allow: [
      "filesystem:read_file",
      "greeter:greet",
      "greeter:picture",
      "greeter:fail",
      "greeter:wait",
    ],
    deny: ["filesystem:remove_file"],
  },
  private_mcps: { greeter: { type: "deno", path: "./greeter.ts" } },
};

/** Creates a workspace with the module. */
export function greeting(options: { readonly trusted?: boolean } = {}): Promise<Workspace> {
  return makeWorkspace({
    files: { "greeter.ts": GREETER, "a.txt": "text of a" },
    pml: PML,
    ...options,
  });
}

/** Asserts that a command failed with a code, and wrote to stderr only. */
export function assertError(
  result: CommandResult,
  wanted: { readonly code: string; readonly exit: number },
): void {
  assert.match(result.stderr, new RegExp(`^error: ${wanted.code}: .+\n  .+`, "m"));
  assert.equal(result.code, wanted.exit, result.stderr);
  assert.equal(result.stdout, "");
}

/** Writes a file of a workspace. */
export async function write(workspace: Workspace, name: string, text: string): Promise<void> {
  await Deno.writeTextFile(workspace.file(name), text);
}
