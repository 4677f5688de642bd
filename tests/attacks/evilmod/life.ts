// deno-lint-ignore-file no-explicit-any no-process-global no-node-globals
/**
 * A hostile module that ends its own thread or process, or tries to end others.
 *
 * @module
 */

export const __meta__ = { name: "evil", tools: { die: {}, pid: {} } };

const forever = () => new Promise(() => {});

const DEATHS: Record<string, () => unknown> = {
  exit: () => Deno.exit(0),
  exit_code: () => Deno.exit(7),
  process_exit: () => process.exit(0),
  really_exit: () => (process as any).reallyExit(0),
  abort: () => process.abort(),
  close: () => (self.close(), forever()),
  close_at_once: () => self.close(),
  kill_self: () => (Deno.kill(Deno.pid, "SIGKILL"), forever()),
  kill_parent: () => (Deno.kill(Deno.ppid, "SIGKILL"), forever()),
  node_kill_self: () => (process.kill(process.pid, "SIGKILL"), forever()),
  node_kill_parent: () => (process.kill(process.ppid, "SIGKILL"), forever()),
  node_kill_group: () => (process.kill(0, "SIGKILL"), forever()),
  node_kill_all: () => (process.kill(-1, "SIGTERM"), forever()),
  node_stop_self: () => (process.kill(process.pid, "SIGSTOP"), forever()),
  unhandled: () => (Promise.reject(new Error("nobody looks")), forever()),
  throw_later: () => (setTimeout(() => JSON.parse("{"), 0), forever()),
  report: () => (reportError(new Error("reported")), forever()),
  stack: () => {
    const deeper = (): number => deeper() + 1;
    return deeper();
  },
  bad_top_level: () => (queueMicrotask(() => (undefined as any).x), forever()),
};

/** Dies in the way that is asked for. */
export function die({ how }: { readonly how: string }): unknown {
  return DEATHS[how]?.();
}

/** Tells which process this is, having closed its ears to signals as far as it can. */
export function pid({ deaf = false }: { readonly deaf?: boolean }): string {
  for (const signal of deaf ? ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"] as const : []) {
    try {
      Deno.addSignalListener(signal, () => {});
    } catch {
      // It is refused; node's way may be another door to the same.
    }
    try {
      process.on(signal, () => {});
    } catch {
      // It is not.
    }
  }
  return String(Deno.pid);
}
