/**
 * Notes which calls ran at once, where it is loaded before PML: one line a call that came there, in
 * the file that `QUICK_FILE` names. A call that pins a tool waits until the pin is written: while PML
 * writes its pins, another call may pass the gates.
 *
 * @module
 */

import { QuickCalls } from "../../src/app/quick_calls.ts";
import { Pins } from "../../src/policy/pins.ts";

const path = Deno.env.get("QUICK_FILE");
const { begin } = QuickCalls.prototype;
const write = Deno.writeTextFileSync;
/** The requests that did not run at once. They are asked again on their way through the gates. */
const left = new Set<string | undefined>();

QuickCalls.prototype.begin = function (request) {
  const cancel = begin.call(this, request);
  const isAgain = cancel === undefined && left.has(request.request);
  left.add(request.request);
  if (path !== undefined && !isAgain) write(path, cancel ? "+" : "-", { append: true });
  return cancel;
};

const { unapprovedTool } = Pins.prototype;

Pins.prototype.unapprovedTool = async function (...pin) {
  const unapproved = await unapprovedTool.apply(this, pin);
  await this.settled();
  return unapproved;
};
