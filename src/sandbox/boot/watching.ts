/**
 * Watches files for a module, and tells only of those that it may see.
 *
 * @module
 */

import { lookAt, type Try, type Walls } from "./ground.ts";
import type { Op } from "./handles.ts";
import { folderOf, joinPath, within } from "./names.ts";
import type { Power } from "./power.ts";
import { refusal } from "./refusal.ts";

const WATCH_MAX = 16;
const EVENT_MAX = 1_000;
const FOLDER_MAX = 10_000;

/** The watches of one Worker. */
export class Watching {
  readonly #walls: Walls;
  readonly #watches = new Map<unknown, Watch>();
  #last = 0;

  /** The requests that are done at once. */
  readonly steps: Readonly<Record<string, Op>> = {
    "watch.open": (paths, recursive, ignore) => {
      if (this.#watches.size >= WATCH_MAX) {
        throw new Error(`Too many watchers: a module can hold ${WATCH_MAX}`);
      }
      const roots = listOf(paths).map((path) => this.#rootAt(path));
      const ignored = listOf(ignore).map((path) => this.#rootAt(path).real);
      const shows = (path: string, gone = false) =>
        !ignored.some((one) => within(one, path)) && this.#walls.shows(path, gone);
      this.#watches.set(++this.#last, new Watch(roots, { recursive: recursive === true, shows }));
      return this.#last;
    },
    "watch.close": (id) => {
      this.#watches.get(id)?.close();
      this.#watches.delete(id);
    },
  };

  /** The requests that wait. */
  readonly ops: Readonly<Record<string, Power>> = {
    "watch.next": ([id], { signal }) => this.#watches.get(id)?.next(signal) ?? null,
  };

  /** Takes the walls that events must not come from behind. */
  constructor(walls: Walls) {
    this.#walls = walls;
  }

  #rootAt(asked: string): Root {
    const attempt: Try = { op: "watch", asked, access: "look" };
    return { shown: this.#walls.lexical(attempt), real: this.#walls.follow(attempt).path };
  }
}

/** Something that is watched: where it is, and how the module calls it. */
interface Root {
  readonly shown: string;
  readonly real: string;
}

interface Event {
  readonly kind: Deno.FsEvent["kind"];
  readonly paths: readonly string[];
  readonly flag: Deno.FsEventFlag | null;
}

/** Says that events were lost. */
const RESCAN: Event = { kind: "other", paths: [], flag: "rescan" };

interface WatchOptions {
  readonly recursive: boolean;
  readonly shows: (path: string, gone?: boolean) => boolean;
}

/**
 * One watch. The system's own recursion would walk through links, out of the workspace and over
 * the whole disk; so each folder is watched by itself, and new ones as they come.
 */
class Watch {
  readonly #roots: readonly Root[];
  readonly #options: WatchOptions;
  /** Who watches what: an event is taken from one watcher only, though several may tell of it. */
  readonly #watchers = new Map<string, Deno.FsWatcher>();
  readonly #queue: Event[] = [];
  readonly #waiting: ((event: Event | null) => void)[] = [];
  #closed = false;

  constructor(roots: readonly Root[], options: WatchOptions) {
    this.#roots = roots;
    this.#options = options;
    this.#add(roots.map(({ real }) => real));
  }

  /** Gives the next event; null when the watch is closed or nobody waits any more. */
  next(signal: AbortSignal): Event | null | Promise<Event | null> {
    if (this.#closed || this.#queue.length > 0) return this.#queue.shift() ?? null;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener("abort", () => {
        const at = this.#waiting.indexOf(resolve);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(null);
      }, { once: true });
    });
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    for (const watcher of new Set(this.#watchers.values())) watcher.close();
    for (const resolve of this.#waiting.splice(0)) resolve(null);
  }

  /** Watches paths, and what is in them, links not followed. */
  #add(tops: readonly string[]): void {
    const fresh = new Set(tops.filter((path) => !this.#watchers.has(path)));
    for (const folder of this.#options.recursive ? fresh : []) {
      if (!lookAt(folder)?.isDirectory) continue;
      for (const { name, isDirectory } of Deno.readDirSync(folder)) {
        const path = joinPath(folder, name);
        // What is added here is come to later.
        if (isDirectory && !this.#watchers.has(path) && this.#options.shows(path)) fresh.add(path);
      }
      if (this.#watchers.size + fresh.size <= FOLDER_MAX) continue;
      const why = `it has more than ${FOLDER_MAX} folders`;
      throw refusal("SANDBOX_DENIED", { op: "watch", asked: tops[0] ?? "" }, why);
    }
    if (fresh.size === 0) return;
    const watcher = Deno.watchFs([...fresh], { recursive: false });
    for (const path of fresh) this.#watchers.set(path, watcher);
    void this.#follow(watcher);
  }

  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    try {
      for await (const event of watcher) {
        const path = event.paths.at(-1) ?? "";
        const owner = this.#watchers.get(folderOf(path)) ?? this.#watchers.get(path) ?? watcher;
        if (owner === watcher) this.#take(event);
      }
    } catch {
      this.#push(RESCAN); // it broke: who watches has to look anew
    }
  }

  #take({ kind, paths, flag }: Deno.FsEvent): void {
    const { recursive, shows } = this.#options;
    const seen = paths.filter((path) => this.#isWatched(path) && shows(path, kind === "remove"));
    if (seen.length > 0 || paths.length === 0) {
      this.#push({ kind, paths: seen.map((path) => this.#shown(path)), flag: flag ?? null });
    }
    if (kind === "remove") seen.forEach((path) => this.#forget(path));
    if (!recursive || (kind !== "create" && kind !== "rename")) return;
    try {
      this.#add(seen.filter((path) => lookAt(path)?.isDirectory));
    } catch {
      this.#push(RESCAN); // gone again, or too many: nobody tells of what is in it
    }
  }

  /** The system may tell of more, which another watch has asked for. */
  #isWatched(path: string): boolean {
    return this.#watchers.has(folderOf(path)) || this.#watchers.has(path);
  }

  /** Lets go of a folder that is gone from here, and of those in it. */
  #forget(folder: string): void {
    if (!this.#watchers.has(folder)) return;
    const left = new Set<Deno.FsWatcher>();
    for (const [path, watcher] of this.#watchers) {
      if (within(folder, path) && this.#watchers.delete(path)) left.add(watcher);
    }
    for (const watcher of this.#watchers.values()) left.delete(watcher);
    for (const watcher of left) watcher.close();
  }

  #push(event: Event): void {
    const resolve = this.#waiting.shift();
    if (resolve) return resolve(event);
    if (this.#queue.length < EVENT_MAX) return void this.#queue.push(event);
    this.#queue.splice(0, EVENT_MAX, RESCAN);
  }

  #shown(path: string): string {
    const root = this.#roots.find(({ real }) => within(real, path));
    return root ? root.shown + path.slice(root.real.length) : path;
  }
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
