/**
 * Opens the tools for authors of modules, which need no approval and get no grants.
 *
 * @module
 */

import { Authors } from "./authors.ts";
import type { App } from "../app/app.ts";

/** Returns the tools for authors. */
export async function openAuthors(app: App): Promise<Authors> {
  const { schemas: checker } = await (await app.callPath()).machine.modules();
  return new Authors(app.policy, app.builtins, checker);
}
