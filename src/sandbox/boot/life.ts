/**
 * Notifies the host thread when the Worker has ended, also after a crash.
 *
 * @module
 */

interface Locks {
  request(name: string, hold: () => unknown): Promise<unknown>;
}

const LIFE = "pml-life";

/** Takes a lock and keeps it until this thread ends. */
export function holdLife(): Promise<void> {
  return new Promise((resolve) => {
    void locks().request(LIFE, () => {
      resolve();
      return new Promise(() => {});
    });
  });
}

/** Runs `then` when the thread with the lock has ended, also if it sent no message. */
export function afterLife(then: () => void): void {
  void locks().request(LIFE, then);
}

function locks(): Locks {
  // Deno has Web Locks, but its types do not list them yet.
  return (navigator as unknown as { readonly locks: Locks }).locks;
}
