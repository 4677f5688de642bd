/**
 * Runs the code of a capability in the program that imports it. This is a part of the module that a
 * registry serves to `import()`. PML itself runs capabilities in its sandbox.
 *
 * @module
 */

import { compileCode, type Compiled } from "./code_compile.ts";

/** The tools as functions, by server and tool, as in `tools` of an open gateway of PML. */
export type Tools = Readonly<Record<string, Readonly<Record<string, Tool>>>>;
type Tool = (args?: unknown) => Promise<unknown>;

/** Matches errors of tools by name, because their class belongs to the importing program. */
class ToolError extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return Object(error).name === "ToolError";
  }
}

/** Returns the function of a capability. Its code is compiled and runs only on a call. */
export function imported(
  { code }: { readonly code: string },
  name: string,
): (args?: object, tools?: Tools) => Promise<unknown> {
  let started: Promise<Compiled> | undefined;
  return async (args = {}, tools) => {
    if (tools === undefined) {
      throw new TypeError(`Cannot run "${name}": its second argument, the tools, is missing`);
    }
    started ??= compileCode(code, "mcp", "args", "ToolError", "progress");
    const { run } = await started;
    return await run(byName(tools), args, ToolError, () => {});
  };
}

/** Returns the tools by `mcp.server.tool` and by `mcp["server:tool"]`. */
function byName(tools: Tools): object {
  return new Proxy(tools, {
    get: (_, name) => {
      if (typeof name === "symbol") return undefined;
      const [server = "", tool] = name.split(/:(.*)/s);
      return tool === undefined ? tools[server] : tools[server]?.[tool];
    },
  });
}
