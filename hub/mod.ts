/**
 * The hub: a registry that a team hosts for itself.
 *
 * @module
 */

import { run } from "./src/cli/cli.ts";

if (import.meta.main) Deno.exitCode = await run(Deno.args);
