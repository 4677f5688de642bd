/**
 * Helpers for tests of programs: find running processes, and replace the way they are started.
 *
 * @module
 */

import { isGone } from "../../tests/fixtures/modules/yard.ts";
import { until } from "../../tests/kit/wait.ts";

/** Runs a step in which `start` replaces the start of programs. */
export function withCommand<T>(start: () => unknown, step: () => T): T {
  const { Command } = Deno;
  const put = (value: unknown) =>
    Object.defineProperty(Deno, "Command", { configurable: true, writable: true, value });
  put(function () {
    return start();
  });
  try {
    return step();
  } finally {
    put(Command);
  }
}

/** Finds running processes by a mark in their environment. */
export function pidsWith(mark: string): number[] {
  return [...Deno.readDirSync("/proc")].map(({ name }) => Number(name)).filter((pid) => {
    try {
      return Deno.readTextFileSync(`/proc/${pid}/environ`).includes(mark) && !isGone(pid);
    } catch {
      return false;
    }
  });
}

/** Waits until no process is left. */
export async function gone(left: () => readonly number[]): Promise<void> {
  await until(() => left().length === 0);
}
