/**
 * Reports of sessions, and the table of them in docs/clients.md.
 *
 * @module
 */

import { repoFile } from "../kit/pml_command.ts";
import type { RealClient } from "./clients.ts";
import type { Session } from "./session.ts";
import type { Recorded } from "./tee.ts";

/** The report of one session. */
export interface ClientReport {
  readonly client: RealClient;
  /** The revision of MCP that it uses, if it started PML. */
  readonly revision: string | undefined;
  /** Milliseconds from the start of the client, and of PML, to the answer of `tools/list`. */
  readonly listedAfter: { readonly client: number; readonly pml: number } | undefined;
  /** The reason why search and call did not work, if they did not. */
  readonly failure: string | undefined;
}

const PAGE = repoFile("docs/clients.md");
const BEGIN = "<!-- clients -->";
const END = "<!-- /clients -->";

/** Returns the report of a session. */
export function reportOf(client: RealClient, session: Session): ClientReport {
  const { recorded, startedAt } = session;
  const answer = answerTo("tools/list", recorded);
  const start = recorded.find(({ pid, from }) => pid === answer?.pid && from === undefined);
  const listedAfter = answer && start &&
    { client: answer.at - startedAt, pml: answer.at - start.at };
  return { client, revision: revisionIn(recorded), listedAfter, failure: failureOf(session) };
}

function failureOf(
  { recorded, results: [found = "", read = ""], secret }: Session,
): string | undefined {
  if (recorded.length === 0) return "the client did not start PML";
  const steps: readonly (readonly [step: string, result: string, isRight: boolean])[] = [
    ["search", found, found.includes("filesystem:read_file")],
    ["call", read, read.includes(secret)],
  ];
  const [step, result = ""] = steps.find(([, , isRight]) => !isRight) ?? [];
  if (step === undefined) return undefined;
  return `${step}: ${result === "" ? "no result reached the model" : result.slice(0, 200)}`;
}

function revisionIn(recorded: readonly Recorded[]): string | undefined {
  const initialized = answerTo("initialize", recorded)?.message?.result?.protocolVersion;
  if (typeof initialized === "string") return initialized;
  // From 2026-07-28 on each request contains it.
  const meta = recorded.find(({ message }) => message?.method === "tools/list")?.message?.params
    ?._meta;
  const named = (meta as Record<string, unknown> | undefined)
    ?.["io.modelcontextprotocol/protocolVersion"];
  return typeof named === "string" ? named : undefined;
}

/** Returns the first answer to a request of the client. */
function answerTo(method: string, recorded: readonly Recorded[]): Recorded | undefined {
  const asked = recorded.filter(({ message }) => message?.method === method);
  return recorded.find(({ pid, from, message }) =>
    from === "server" && message?.method === undefined &&
    asked.some((one) => one.pid === pid && one.message?.id === message?.id)
  );
}

/** Returns the table of docs/clients.md. */
export function tableOf(reports: readonly ClientReport[]): string {
  const rows = reports.map(({ client, revision, listedAfter, failure }) => {
    const ms = listedAfter === undefined
      ? "never"
      : `${seconds(listedAfter.client)} (${seconds(listedAfter.pml)})`;
    const worked = failure === undefined ? "yes" : `no: ${cell(failure)}`;
    return `| ${client.title} ${client.version} | ${revision ?? "none"} | ${ms} | ${worked} |`;
  });
  return [
    "| client | revision of MCP | has PML's tools after (of that, PML) | `search`, then `call` |",
    "| --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function cell(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
}

/** Writes the table into docs/clients.md. */
export async function writeTable(reports: readonly ClientReport[]): Promise<void> {
  const page = await Deno.readTextFile(PAGE);
  const [before, after] = [page.split(BEGIN)[0], page.split(END)[1]];
  if (before === undefined || after === undefined) throw new Error(`${PAGE} has no ${END}`);
  const block = `${BEGIN}\n\n${tableOf(reports)}\n\n${END}`;
  await Deno.writeTextFile(PAGE, `${before}${block}${after}`);
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", PAGE] }).output();
}
