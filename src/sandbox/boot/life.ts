/**
 * Notifies the host thread when the Worker has ended, even after a crash.
 *
 * @module
 */

interface Locks {
  request(name: string, hold: () => unknown): Promise<unknown>;
}

/** The name of the lock. The system releases it when the thread that has it ends. */
const LIFE = "pml-life";

/** Takes a lock and keeps it until this thread ends. */
export function takeEndLock(): Promise<void> {
  return new Promise((resolve) => {
    void locks().request(LIFE, () => {
      resolve();
      return new Promise(() => {});
    });
  });
}

/** Runs `then` when the thread with the lock has ended, even if it sent no message. */
export function runAfterEnd(then: () => void): void {
  void locks().request(LIFE, then);
}

function locks(): Locks {
  // Deno has Web Locks, but its types do not list them yet.
  return (navigator as unknown as { readonly locks: Locks }).locks;
}
