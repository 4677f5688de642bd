/**
 * Tells the host thread when the Worker is gone, however it ended.
 *
 * @module
 */

interface Locks {
  request(name: string, hold: () => unknown): Promise<unknown>;
}

const LIFE = "pml-life";

/** Takes the lock that this thread holds until it ends. */
export function holdLife(): Promise<void> {
  return new Promise((held) => {
    void locks().request(LIFE, () => {
      held();
      return new Promise(() => {});
    });
  });
}

/** Runs `then` when the thread that holds the lock has ended, also without a word. */
export function afterLife(then: () => void): void {
  void locks().request(LIFE, then);
}

function locks(): Locks {
  // Deno has Web Locks; its types do not name them yet.
  return (navigator as unknown as { readonly locks: Locks }).locks;
}
