/**
 * The command line of the hub.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import { backup, restore } from "./_store.ts";
import { importFolder } from "./_import.ts";
import { keys, owners } from "./_keys.ts";
import { moderate, yank } from "./_moderate.ts";
import { keepOnTerminal, print, tell } from "./out.ts";
import { publishFile, yankElsewhere } from "./_publish.ts";
import { serve } from "./_serve.ts";
import { type Typed, typedOf, usage } from "./_typed.ts";

/** The version of this program. */
export const VERSION = "0.1.0";

const HELP = `Usage: pml-hub COMMAND [OPTIONS]

A registry that a team hosts for itself.

Publishers:
  publish FILE          bundles a module, or takes a manifest, and publishes it at --to URL
  publish NAME@VERSION  publishes what you saved as a capability (\`pml capability save\`)
  yank NAME@VERSION     hides a version at --to URL; unyank shows it again
  PML_HUB_KEY contains the key.

The operator, in the folder of the hub:
  serve                 answers clients until it receives a signal
  import FOLDER         adds what \`pml registry serve FOLDER\` would serve
  backup FILE           writes all data into a new file; the hub may run meanwhile
  restore FILE          fills a new folder, or an empty database, from a backup
  key add ORGANISATION  makes a key with which the organisation publishes, and prints it once
                        (--client: a key for clients, see serve --require-api-key)
  key list              lists the keys
  key revoke ID         revokes a key, also for requests that are running
  give NAMESPACE ORG    gives a namespace to an organisation
  owners                lists the namespaces and their owners
  waiting               lists the versions that wait for you (see serve --moderated)
  accept NAME@VERSION HASH
  reject NAME@VERSION HASH
  yank NAME@VERSION     hides a version; users who pinned it still get it (--reason TEXT)
  unyank NAME@VERSION   shows it again

Options:
  --data FOLDER         the folder of the hub (default: hub-data)
  --host HOST           where to listen (default: 127.0.0.1)
  --port PORT           the port; 0 takes a free one (default: 3005)
  --url URL             the address for clients, if the hub is behind a proxy
  --behind-proxy        a proxy at another address does TLS; needed for a --host elsewhere
  --upstream HOST:PORT  allows servers behind the hub at this private address; may be repeated
  --moderated           new versions wait until you accept them
  --require-api-key     reading and calling need a client's key, PML_API_KEY in PML
  --rate NUMBER         how many changes each key may make a minute (default: 60)
  --key FILE            signs entries with this Ed25519 key (PEM), served or published
  --to URL              the hub at which to publish
  --checkpoint HASH     restores only the backup for which \`backup\` printed this
  --tag TAG             sets this tag to the published version
  --dry-run             shows what would be published
  --yes                 publishes without a question
  --metrics PORT        serves metrics for Prometheus at 127.0.0.1:PORT/metrics
  --log json            writes a line about each request to stderr
  --json                prints JSON
  --version, --help

Environment:
  DATABASE_URL          stores all data on a PostgreSQL server instead of in --data

Examples:
  pml-hub import ./servers --data /srv/hub
  pml-hub serve --data /srv/hub --url https://hub.example.com/mcp`;

/** Runs a command, and returns the exit code: 0, 1, or 2 if the command line is wrong. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await command(typedOf(args));
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    const { code, message, hint } = error;
    tell(`error: ${code}: ${message}${hint === undefined ? "" : `\n  ${hint}`}`);
    return code === "USAGE" || code === "CONFIG_INVALID" ? 2 : 1;
  }
}

async function command(typed: Typed): Promise<number> {
  const { verb, file, data, isVersion, isHelp } = typed;
  if (isVersion) return finish(VERSION);
  if (isHelp || verb === "") return finish(HELP);
  switch (verb) {
    case "serve":
      return await serve(typed);
    case "import":
      return await importFolder(typed);
    case "backup":
      finish(`Wrote ${quoted(file, 300)}\nCheckpoint: ${await backup(data, file)}`);
      keepOnTerminal();
      return 0;
    case "restore":
      await restore(typed);
      return finish(`Restored ${quoted(data, 300)} from ${quoted(file, 300)}`);
    case "key add":
    case "key list":
    case "key revoke":
      return await keys(typed);
    case "give":
    case "owners":
      return await owners(typed);
    case "waiting":
    case "accept":
    case "reject":
      return await moderate(typed);
    case "publish":
      return await publishFile(typed);
    case "yank":
    case "unyank":
      return await (typed.to === undefined ? yank : yankElsewhere)(typed);
    default:
      throw usage(`Cannot run ${quoted(verb)}: there is no such command`);
  }
}

function finish(text: string): number {
  print(text);
  return 0;
}
