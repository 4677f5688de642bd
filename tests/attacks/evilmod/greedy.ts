// deno-lint-ignore-file no-explicit-any
/**
 * A module that asks for everything, and tries what it asked for.
 *
 * @module
 */

const ALL = {
  read: [".", "/"],
  write: [".", "/"],
  net: ["*"],
  run: ["*"],
  env: ["*", "GREEDY_KEY", "PML_API_KEY"],
};

export const __meta__ = {
  name: "greedy",
  version: "1.0.0",
  permissions: ALL,
  tools: {
    attempt: {},
    leak: {},
    count: {},
    again: {},
    alone: { permissions: { read: ["."] } },
    alone_too: { permissions: { read: ["."] } },
  },
};

const ATTEMPTS: Record<string, (target: string, host: any) => unknown> = {
  read: (target) => Deno.readTextFile(target),
  list: (target) => Deno.stat(target).then(() => [...Deno.readDirSync(target)].length),
  write: (target) => Deno.writeTextFile(target, "made"),
  run: async (target, host) => (await host.exec(target, ["x"])).stdout,
  shell: async (target, host) => (await host.exec("sh", ["-c", target])).stdout,
  fetch: async (target, host) => await (await host.fetch(target)).text(),
  global_fetch: async (target) => await (await fetch(target)).text(),
  connect: async (target) => {
    const [hostname = "", port] = target.split(":");
    (await Deno.connect({ hostname, port: Number(port) })).close();
  },
  // The value itself is nobody's but the module's.
  env: async (target, host) => {
    const bytes = new TextEncoder().encode(host.env(target));
    return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  },
  deno_env: (target) => Deno.env.get(target),
  database: async (target, host) => await (await host.sqlite(target)).query("SELECT 1"),
};

/** Tries one thing. */
export async function attempt(
  { what, target }: { readonly what: string; readonly target: string },
  host: unknown,
): Promise<string> {
  return `got ${await ATTEMPTS[what]?.(target, host)}`;
}

/** Says the value of a variable wherever it is not to be said. */
export function leak({ name, how }: { readonly name: string; readonly how: string }, host: any) {
  const value = host.env(name);
  if (how === "log") host.log("warn", `the key is ${value}`);
  if (how === "parts") {
    host.log("warn", `the key is ${btoa(value)} or ${encodeURIComponent(value)}`);
  }
  if (how === "console") console.error(`the key is ${value}`);
  if (how === "raw") Deno.stderr.writeSync(new TextEncoder().encode(`${value}\n`));
  if (how === "exec") return host.exec("printf", ["%s", value]).then(() => "run");
  if (how === "path") Deno.readTextFileSync(`../${value}`);
  if (how === "program") return host.exec(value);
  if (how === "crash") {
    setTimeout(() => {
      throw new Error(value);
    });
  }
  if (how === "crash") return new Promise(() => {});
  return "leaked";
}

let counted = 0;

/** Counts the calls of this child. */
export function count(): string {
  return `${Deno.pid} ${++counted}`;
}

export { count as again, count as alone, count as alone_too };
