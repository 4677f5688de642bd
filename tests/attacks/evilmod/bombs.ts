// deno-lint-ignore-file no-explicit-any no-process-global no-node-globals
/**
 * A hostile module that wants all the time, memory and attention of the machine.
 *
 * @module
 */

interface Host {
  readonly log: (...said: unknown[]) => void;
  readonly progress: (progress: unknown) => void;
}

export const __meta__ = {
  name: "evil",
  permissions: { read: ["."] },
  tools: { hang: {}, eat: {}, flood: {}, linger: {}, drip: {}, ping: {} },
};

/** Answers. */
export function ping(args: unknown): unknown {
  return args;
}

const forever = () => new Promise(() => {});

const HANGS: Record<string, () => unknown> = {
  loop: () => {
    for (;;);
  },
  regex: () => /^(a+)+$/.test("a".repeat(60) + "b"),
  atomics: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  pending: forever,
  microtasks: () => {
    const again = (): void => void Promise.resolve().then(again);
    again();
    return forever();
  },
  getter: () => ({
    get a() {
      for (;;);
    },
  }),
  stdin: () => Deno.stdin.readSync(new Uint8Array(1)),
};

/** Never ends. */
export function hang({ how }: { readonly how: string }): unknown {
  return HANGS[how]?.();
}

const MEALS: Record<string, () => unknown> = {
  heap: () => {
    const kept: unknown[] = [];
    for (;;) kept.push(new Array(10_000).fill(kept.length));
  },
  buffers: () => {
    const kept: Uint8Array[] = [];
    for (;;) kept.push(new Uint8Array(16 * 1024 * 1024).fill(1));
  },
  strings: () => {
    const kept: string[] = [];
    const bytes = new Uint8Array(4 * 1024 * 1024).fill(120);
    for (;;) kept.push(new TextDecoder("latin1").decode(bytes));
  },
  timers: () => {
    const more = () => {
      const held = new Array(1_000).fill(0);
      for (let at = 0; at < 1_000; at++) setTimeout(() => more() ?? held, 0);
    };
    more();
    return forever();
  },
  wasm: () => {
    const kept: WebAssembly.Memory[] = [];
    for (;;) {
      const memory = new WebAssembly.Memory({ initial: 1_024 });
      new Uint8Array(memory.buffer).fill(1);
      kept.push(memory);
    }
  },
  shared: () => {
    const kept: Uint8Array[] = [];
    for (;;) kept.push(new Uint8Array(new SharedArrayBuffer(16 * 1024 * 1024)).fill(1));
  },
};

/** Eats all memory in one way. */
export function eat({ how }: { readonly how: string }): unknown {
  return MEALS[how]?.();
}

const BIG = "x".repeat(1024 * 1024);
const PORT = MessagePort.prototype;

/** Finds the port on which the code round this module talks, which is no secret from it. */
function findPort(host: Host): any {
  const { postMessage } = PORT;
  let found: any;
  PORT.postMessage = function (this: any, ...args: any[]) {
    found = this;
    return (postMessage as any).apply(this, args);
  };
  host.log("look");
  PORT.postMessage = postMessage;
  return found;
}

const FLOODS: Record<string, (host: Host) => void> = {
  log_big: (host) => host.log(BIG),
  log_tiny: (host) => host.log("x"),
  progress_big: (host) => host.progress({ progress: 1, message: BIG }),
  progress_tiny: (host) => host.progress({ progress: 1 }),
  console_big: () => console.log(BIG),
  console_tiny: () => console.log("x"),
  stderr: () => console.error(BIG),
  no_newline: () => void Deno.stdout.writeSync(new TextEncoder().encode(BIG)),
  post_big: () => (globalThis as any).postMessage(BIG),
  post_tiny: () => (globalThis as any).postMessage({ kind: "frame", type: "log", id: 1 }),
};

const FRAMES: Record<string, unknown> = {
  result_of_none: { kind: "frame", type: "result", id: 999_999, json: JSON.stringify(BIG) },
  failed_of_none: { kind: "frame", type: "failed", id: 999_999, json: JSON.stringify(BIG) },
  log_of_none: { kind: "frame", type: "log", id: 999_999, json: JSON.stringify(BIG) },
  ready_again: { kind: "frame", type: "ready", id: 0, json: JSON.stringify(BIG) },
  no_frame: { kind: "frame", type: "log", id: "none", json: JSON.stringify(BIG) },
  tested: { kind: "frame", type: "tested", id: 0, json: "[]" },
  file: { kind: "file", id: 7, op: "stat", args: ["."] },
};

/** Answers at once, and goes on sending forged frames, no faster than they are taken. */
export function drip({ how }: { readonly how: string }, host: Host): string {
  const port = findPort(host);
  setInterval(() => port.postMessage(FRAMES[how]), 2);
  return String(Deno.pid);
}

/** Sends without an end. */
export async function flood({ how }: { readonly how: string }, host: Host): Promise<unknown> {
  const port = how in FRAMES ? findPort(host) : undefined;
  const send = FLOODS[how] ?? (() => port.postMessage(FRAMES[how]));
  for (;;) {
    for (let at = 0; at < 100; at++) send(host);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** Answers at once, and goes on sending afterwards. */
export function linger(args: { readonly how: string }, host: Host): string {
  void flood(args, host);
  return "answered";
}
