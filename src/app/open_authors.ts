/**
 * Opens what authors of modules use: no approval is needed, and nothing is granted.
 *
 * @module
 */

import { Authors } from "../authoring/authors.ts";
import type { App } from "./app.ts";

/** Returns what looks at modules, and serves a folder of them. */
export async function authorsOf(app: App): Promise<Authors> {
  const config = () => app.config();
  return new Authors({ config, taken: app.builtins, schemas: await app.schemas() });
}
