/**
 * Counts the calls of a program to Deno; loaded before the program. When the program ends, the file
 * that `COUNTS_FILE` names contains the counts.
 *
 * @module
 */

/** The number of calls of each function. */
export type Counts = Readonly<Record<string, number>>;

const counts: Record<string, number> = {};

/** Counts the calls of some functions of an object. */
function count(owner: object, names: readonly string[], as?: string): void {
  for (const name of names) {
    const plain = Reflect.get(owner, name);
    const counted = function (this: unknown, ...args: unknown[]) {
      counts[as ?? name] = (counts[as ?? name] ?? 0) + 1;
      return Reflect.apply(plain, this, args);
    };
    Object.defineProperty(owner, name, { value: counted, configurable: true, writable: true });
  }
}

class CountedController extends AbortController {
  constructor() {
    super();
    counts.controllers = (counts.controllers ?? 0) + 1;
  }
}

// Writes and reads through an open handle do not look up a path.
const paths = Object.keys(Deno).filter((name) => name.endsWith("Sync"));
count(Deno, paths, "paths");
count(globalThis, ["setTimeout", "setInterval"], "timers");
count(JSON, ["parse", "stringify"]);
globalThis.AbortController = CountedController;

globalThis.addEventListener("unload", () => {
  const path = Deno.env.get("COUNTS_FILE");
  if (path !== undefined) Deno.writeTextFileSync(path, JSON.stringify(counts));
});
