/**
 * Parses the options of the benchmark, before any server starts.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pathOf } from "../measure.ts";
import { PEERS } from "./servers.ts";

/** The options of the benchmark. */
export interface Options {
  /** The folder in which npm installed other gateways. */
  readonly peers: string | undefined;
  /** The folder of the measured PML. */
  readonly project: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: readonly number[];
  readonly only: RegExp;
  readonly json: boolean;
}

/** Returns the options, or an error message if an option is wrong. */
export function optionsOf(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        peers: { type: "string" },
        project: { type: "string", default: pathOf("") },
        rounds: { type: "string", default: "3" },
        seconds: { type: "string", default: "2" },
        connections: { type: "string", default: "1,16,64,256" },
        only: { type: "string", default: "" },
        json: { type: "boolean", default: false },
      },
    });
    const peers = values.peers === undefined ? undefined : resolve(values.peers);
    const project = resolve(values.project);
    const missing = peers !== undefined &&
      Object.entries(PEERS).find(([, file]) => !existsSync(join(peers, "node_modules", file)));
    if (missing) {
      const [name] = missing;
      return `Cannot use --peers ${peers}: ${name} is not installed there (npm install ${
        Object.keys(PEERS).join(" ")
      })`;
    }
    if (!existsSync(join(project, "mod.ts"))) {
      return `Cannot use --project ${project}: there is no mod.ts in it`;
    }
    return {
      ...{ peers, project, json: values.json, only: new RegExp(values.only) },
      rounds: parsePositive("rounds", values.rounds),
      seconds: parsePositive("seconds", values.seconds),
      connections: values.connections.split(",").map((count) =>
        parsePositive("connections", count)
      ),
    };
  } catch (error) {
    return `Cannot measure: ${Object(error).message}`;
  }
}

function parsePositive(option: string, text: string): number {
  if (Number(text) > 0) return Number(text);
  throw new Error(`--${option} ${text} is not a number above 0`);
}
