/**
 * The guards of code: what its child may ask of PML, and how much.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";

/** Guards of code and of the wire that its calls take. */
export const CODE: readonly Mutant[] = [
  {
    name: "request-right",
    guard: "A child asks only for calls that may make requests",
    file: "_requests.ts",
    find: "if (handler === undefined) throw refused();",
    put: "if (handler === undefined) return null;",
    test: "src/sandbox/requests_test.ts",
    filter: "Sandbox refuses requests of calls that may make none, or are over",
  },
  {
    name: "request-number",
    guard: "The host thread numbers requests, so a forged one has no number of another",
    file: "host.ts",
    find: "if (!FROM_WORKER.includes(type)) return;",
    put: "",
    test: "src/sandbox/requests_test.ts",
    filter: "Sandbox answers no forged request",
  },
  {
    name: "request-end",
    guard: "The requests of a call end with it",
    file: "_calls.ts",
    find: "release: () => { this.#requests.end(id);",
    put: "release: () => {",
    test: "src/sandbox/requests_test.ts",
    filter: "Sandbox ends the requests of a child that dies",
  },
  {
    name: "request-cancel",
    guard: "The requests of a cancelled call end at once",
    file: "_calls.ts",
    find: "this.#requests.end(id); timer = cancel(id);",
    put: "timer = cancel(id);",
    test: "src/sandbox/requests_test.ts",
    filter: "Sandbox ends the requests of a call that is cancelled or dropped",
  },
  {
    name: "request-meter",
    guard: "Requests count as what a child sends",
    file: "_calls.ts",
    find: "const excess = this.charge(frame.json.length, wanted.call);",
    put: "const excess = undefined as string | undefined;",
    test: "src/sandbox/requests_test.ts",
    filter: "Sandbox ends a child that asks too often or too much",
  },
  {
    name: "code-fresh-child",
    guard: "A child runs code once",
    file: "code_children.ts",
    find: "this.#end(opening); if (!this.#isClosed) this.#warm.keep(key, () => this.#openWarm());",
    put: "this.#warm.keep(key, () => opening);",
    test: "tests/code_test.ts",
    filter: "execute_code gives each run a child of its own, which knows nothing of others",
  },
  {
    name: "code-closed-child",
    guard: "Code is granted nothing",
    file: "modules.ts",
    find: "const options = () => this.#childOptions(NO_ACCESS);",
    put:
      "const options = () => this.#childOptions({ ...NO_ACCESS, read: [this.#options.workspace()] });",
    test: "tests/attacks/se_code_test.ts",
    filter: "Code reads no file of the workspace (SE12)",
  },
  {
    name: "code-calls",
    guard: "A run makes only so many calls",
    file: "run.ts",
    find: "if (++this.#calls > calls) throw tooMany(calls);",
    put: "this.#calls++;",
    test: "tests/attacks/rx_code_test.ts",
    filter: "Code makes only so many calls, however it makes them (RX7)",
  },
  {
    name: "code-time",
    guard: "Code ends when its time is over",
    file: "run_scope.ts",
    find: "using clock = new Clock(ms, () => abort.abort(over()));",
    put: "using clock = new Clock(ms, () => {});",
    test: "tests/attacks/rx_code_test.ts",
    filter: "Code that never ends is ended in time, and others do not wait (RX7)",
    fails: /Nothing came in/,
  },
  {
    name: "code-asked-time",
    guard: "The time in which the person is asked does not count",
    file: "run_scope.ts",
    find: "if (this.#asking++ === 0) { clearTimeout(this.#timer);",
    put: "if (this.#asking++ === 0) {",
    test: "tests/code_asking_test.ts",
    filter: "The time in which the person is asked does not count for code (2025-11-25)",
  },
  {
    name: "waiting-runs",
    guard: "Only so many runs wait for the person",
    file: "waiting_runs.ts",
    find: "if (open === 0 && this.#questions.size >= most) {",
    put: "if (open < 0) {",
    test: "tests/code_asking_test.ts",
    filter: "Only so many runs wait for the person; one more is refused before its question",
    fails: /Nothing came in/,
  },
  {
    name: "code-places",
    guard: "Code holds no place that its tools need",
    file: "modules.ts",
    find: "return await this.#load(await this.#open(options(), place), { name: CODE, code });",
    put: "return await this.#load(await this.#open(options(), await this.#places.take(CODE)), " +
      "{ name: CODE, code });",
    test: "tests/attacks/rx_code_test.ts",
    filter: "Code waits for no place that the tools which it calls need (RX7)",
    fails: /Nothing came in/,
  },
  {
    name: "code-console",
    guard: "Empty lines take room in the console, too",
    file: "code.ts",
    find: "this.#room -= line.length + 1;",
    put: "this.#room -= line.length;",
    test: "tests/attacks/se_code_test.ts",
    filter: "Forged lines and names of tools take no more room than the console has (SE12)",
  },
];
