/**
 * The hub: a registry of MCP servers and capabilities that a team hosts. Runs its command line.
 *
 * @module
 */

import { run } from "./src/cli/cli.ts";

if (import.meta.main) Deno.exitCode = await run(Deno.args);
