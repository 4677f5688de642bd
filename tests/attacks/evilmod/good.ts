/**
 * An honest module, as an author would write one: TypeScript, several tools, every kind of result.
 *
 * @module
 */

interface Host {
  readonly signal: AbortSignal;
  readonly workspace: string;
  log(level: "debug" | "info" | "warn" | "error", text: string): void;
  progress(progress: { progress: number; total?: number; message?: string }): void;
}

enum Size {
  Small = "small",
  Large = "large",
}

export const __meta__ = {
  name: "good",
  version: "1.2.3",
  description: "Counts and measures",
  permissions: { read: ["."], write: ["."] },
  tools: {
    greet: {
      description: "Greets somebody",
      inputSchema: {
        properties: { name: { type: "string" } },
        required: ["name"],
        additionalProperties: false,
      },
      annotations: { readOnlyHint: true },
    },
    measure: {
      description: "Measures a file",
      inputSchema: { properties: { path: { type: "string" } }, required: ["path"] },
      outputSchema: {
        type: "object",
        properties: { size: { enum: ["small", "large"] }, bytes: { type: "integer" } },
        required: ["size", "bytes"],
      },
    },
    lie: { outputSchema: { type: "object", required: ["truth"] } },
    give: {},
    fail: {},
    count: {},
    wait: {},
    tell: {},
    where: {},
    ping: {},
    pid: {},
  },
};

/** Greets. */
export function greet({ name }: { name: string }): string {
  return `Hello, ${name}`;
}

/** Gives structured content that its schema promises. */
export async function measure({ path }: { path: string }): Promise<{ size: Size; bytes: number }> {
  const { size } = await Deno.stat(path);
  return { size: size > 1_000 ? Size.Large : Size.Small, bytes: size };
}

/** Breaks its own promise. */
export function lie(): unknown {
  return { nothing: true };
}

/** Gives what it is told to give. */
export function give({ value }: { value?: unknown }): unknown {
  return value;
}

/** Fails in plain words. */
export function fail(): never {
  throw new RangeError("Only 3 are left");
}

/** Tells how far it is. */
export async function count({ to }: { to: number }, host: Host): Promise<string> {
  for (let at = 1; at <= to; at++) {
    host.progress({ progress: at, total: to, message: `step ${at}` });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return `counted to ${to}`;
}

/** Waits to be told that it should stop, and leaves a note of it. */
export async function wait({ note }: { note: string }, host: Host): Promise<string> {
  // Listens first: whoever sees the note may cancel before the writing of it is told here.
  const told = new Promise<void>((resolve) => {
    host.signal.addEventListener("abort", () => resolve());
  });
  await Deno.writeTextFile(`${note}-begun`, "");
  await told;
  await Deno.writeTextFile(`${note}-stopped`, "");
  return "stopped";
}

/** Logs at each level. */
export function tell({ text }: { text: string }, host: Host): string {
  for (const level of ["debug", "info", "warn", "error"] as const) host.log(level, text + level);
  return "told";
}

/** Says where it works. */
export function where(_args: unknown, host: Host): unknown {
  return { workspace: host.workspace, cwd: Deno.cwd() };
}

/** Answers at once. */
export function ping(): string {
  return "pong";
}

/** Tells which process this is. */
export function pid(): string {
  return String(Deno.pid);
}
