/**
 * Tools that code calls in tests, and short ways to run code.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import type { Message } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import type { Workspace } from "../kit/workspace.ts";
import { makeScene, type Scene, type SceneOptions } from "./stage.ts";

/** A module whose tools leave a line each in `ledger.txt`. */
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

/** The options of a scene with the tools `led:*`. */
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
 * Returns code that calls the same tools and whose types are not checked: the checker starts, a
 * process of more than a second, where code has the word "mcp". For what is not about types.
 */
export function untyped(code: string): string {
  return code.replaceAll(/\bmcp\b/g, "m\\u0063p");
}

/**
 * Never gives the thread back, as `for (;;);` does, and takes no processor from other tests. For what
 * is about the time alone.
 */
export const STUCK = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";

/** Runs code and gives the answer. */
export function runCode(
  pml: RawStdio,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Message> {
  return pml.callTool("execute_code", { code, ...more });
}

/** Gives the texts of an answer: the value, and what PML says of the run. */
export function textsOf({ result, error }: Message): readonly string[] {
  if (error !== undefined) return [`error: ${error.message}`];
  const blocks = (result?.content ?? []) as unknown as readonly { readonly text?: string }[];
  return Array.from(blocks, ({ text = "" }) => text);
}

/** Runs code and gives the text of its value, or of its error. */
export async function valueOf(
  pml: RawStdio,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return textsOf(await runCode(pml, code, more))[0] ?? "";
}

/** Gives the lines that the tools left. */
export async function ledgerOf(ws: Workspace): Promise<readonly string[]> {
  const text = await readFile(ws.file("ledger.txt"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}
