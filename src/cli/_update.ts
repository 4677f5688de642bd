/**
 * `pml update`: shows whether there is a newer PML, its changes, and how to install it.
 *
 * @module
 */

import { inset, visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { CommandContext, Shown } from "./_command_context.ts";
import { tell } from "./out.ts";

const PACKAGE = "@casys/pml";
const MOST_CHARACTERS = 8_000;
/** The package of npm has JavaScript files. */
const IS_OF_NPM = import.meta.url.endsWith(".js");
/** The flags of the README's install line: they make starts faster and need less memory under load. */
const FLAGS = "--unstable-lazy-dynamic-imports --v8-flags=--max-semi-space-size=4";
const INSTALL = IS_OF_NPM
  ? `npm install -g ${PACKAGE}`
  : `deno install -gAf ${FLAGS} -n pml jsr:${PACKAGE}`;
const INSTALLS = `Install the newest: ${INSTALL}`;

/** Asks npm for the newest version. Installs nothing. */
export async function update({ app }: CommandContext): Promise<Shown> {
  const { machine } = await app.callPath();
  const own = {
    name: "pml",
    command: "npx",
    args: ["-y", PACKAGE],
    env: {},
    cwd: app.config().home,
  };
  const latestPackage = await machine.programs.newestOf(own, machine.closing).catch((error) => {
    tell(INSTALLS);
    throw error;
  });
  const { newest = VERSION, changes = "" } = latestPackage ?? {};
  const value = { version: VERSION, newest, changes, install: INSTALL };
  if (newest === VERSION) return { value, text: `PML ${VERSION} is the newest version` };
  const text = [
    `PML ${VERSION} runs; ${visible(newest)} is there.`,
    ...(changes === "" ? [] : ["", inset(changes, MOST_CHARACTERS), ""]),
    INSTALLS,
  ].join("\n");
  return { value, text };
}
