/**
 * `pml update`: shows whether there is a newer PML, its changes, and how to install it.
 *
 * @module
 */

import { indentLines, visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { CommandContext, CommandOutput } from "./_command_context.ts";
import { tell } from "./out.ts";

const PACKAGE = "@casys/pml";
const CHANGES_LENGTH_MAX = 8_000;
/** Whether this code is from the npm package, which has JavaScript files. */
const IS_NPM_PACKAGE = import.meta.url.endsWith(".js");
/** The flags of the README's install line: they make starts faster and need less memory under load. */
const FLAGS = "--unstable-lazy-dynamic-imports --v8-flags=--max-semi-space-size=4";
const INSTALL = IS_NPM_PACKAGE
  ? `npm install -g ${PACKAGE}`
  : `deno install -gAf ${FLAGS} -n pml jsr:${PACKAGE}`;
const INSTALL_LINE = `Install the newest: ${INSTALL}`;

/** Asks npm for the newest version. Installs nothing. */
export async function update({ app }: CommandContext): Promise<CommandOutput> {
  const { machine } = await app.callPath();
  const ownPackage = {
    name: "pml",
    command: "npx",
    args: ["-y", PACKAGE],
    env: {},
    cwd: app.config().home,
  };
  const latestPackage = await machine.programs.newestOf(ownPackage, machine.closing).catch(
    (error) => {
      tell(INSTALL_LINE);
      throw error;
    },
  );
  const { newestVersion: newest = VERSION, changes = "" } = latestPackage ?? {};
  const value = { version: VERSION, newest, changes, install: INSTALL };
  if (newest === VERSION) return { value, text: `PML ${VERSION} is the newest version` };
  const text = [
    `PML ${VERSION} runs; ${visible(newest)} is available.`,
    ...(changes === "" ? [] : ["", indentLines(changes, CHANGES_LENGTH_MAX), ""]),
    INSTALL_LINE,
  ].join("\n");
  return { value, text };
}
