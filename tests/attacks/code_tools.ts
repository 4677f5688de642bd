/**
 * Tools that code in tests calls, and short ways to run code.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** A module whose tools append a line each to `ledger.txt`. */
const LEDGER = `
export const __meta__ = {
  name: "led", version: "1.0.0", permissions: { read: ["."], write: ["."] },
  tools: {
    note: { inputSchema: { type: "object", properties: { text: { type: "string" } } } },
    gated: { inputSchema: { type: "object", properties: { text: { type: "string" } } } },
    "odd-name.2": { inputSchema: { type: "object" } },
    echo: { inputSchema: { type: "object" } },
    fail: { inputSchema: { type: "object" } },
    hang: { inputSchema: { type: "object" } },
    big: { inputSchema: { type: "object", properties: { size: { type: "integer" } } } },
  },
};
async function add(line) {
  await Deno.writeTextFile("ledger.txt", line + "\\n", { append: true });
  return { line };
}
export const note = ({ text = "" }) => add("note " + text);
export const gated = ({ text = "" }) => add("gated " + text);
export const echo = (args) => ({ given: args });
export const big = ({ size = 1 }) => "x".repeat(size);
export const fail = () => ({ content: [{ type: "text", text: "it broke" }], isError: true });
export const hang = async (_, { signal }) => {
  await add("hang");
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  await add("stopped");
};
const odd = () => "odd";
export { odd as "odd-name.2" };
`;

/** Returns the options of a scene with the tools `led:*`. */
export function ledgerScene(
  { files, permissions = {}, ...options }: Omit<SceneOptions, "pml"> & {
    readonly permissions?: Readonly<Record<string, readonly string[]>>;
  } = {},
): Promise<Scene> {
  return makeScene({
    ...options,
    files: { "led.js": LEDGER, ...files },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "led:*"], ask: ["led:gated"], ...permissions },
      private_mcps: { led: { type: "deno", path: "led.js" } },
    },
  });
}

/**
 * Returns code that calls the same tools without a type check: the checker is a process of more
 * than a second, and starts for code that contains the word "mcp". For tests that are not about
 * types.
 */
export function withoutTypeCheck(code: string): string {
  return code.replaceAll(/\bmcp\b/g, "m\\u0063p");
}

/** Never yields the thread, like `for (;;);`, and uses no processor. For tests about time only. */
export const STUCK = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";

/** Runs code and returns the answer. */
export function runCode(
  pml: RawStdio,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Message> {
  return pml.callTool("execute_code", { code, ...more });
}

/** Returns the texts of an answer: the value, and the remarks of PML about the run. */
export function textsOf({ result, error }: Message): readonly string[] {
  if (error !== undefined) return [`error: ${error.message}`];
  const blocks = (result?.content ?? []) as unknown as readonly { readonly text?: string }[];
  return Array.from(blocks, ({ text = "" }) => text);
}

/** Runs code and returns the text of its value, or of its error. */
export async function valueOf(
  pml: RawStdio,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return textsOf(await runCode(pml, code, more))[0] ?? "";
}

/** Returns the lines that the tools wrote. */
export async function ledgerOf(ws: Workspace): Promise<readonly string[]> {
  const text = await readFile(ws.file("ledger.txt"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}
