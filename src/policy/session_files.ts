/**
 * The files of answers "For this session", in the folder `sessions` of the PML home. `pml rules`
 * lists them with `sessionAnswersIn()` and revokes one with `revokeSessionAnswer()`; PML writes
 * them with `SessionAnswers`.
 *
 * The name of a file is `NONCE.json`, with 64 hexadecimal digits; its content is a `SessionAnswer`.
 * Only the process that made the nonce accepts the answer, and only as long as the file exists. A
 * copy, or the file of a process that has ended, allows nothing: `sessionAnswersIn()` removes it.
 *
 * @module
 */

import { join } from "node:path";
import type { ToolId } from "../core/tool_id.ts";
import { isAlive } from "../io/folder_lock.ts";
import {
  isRegularFile,
  namesIn,
  readPrivate,
  unlessGone,
  type WarningLog,
  writePrivate,
} from "../io/private_files.ts";

/** An answer that lets a tool run until a client disconnects. */
export interface SessionAnswer {
  readonly version: 1;
  /** The process of PML that accepts it. */
  readonly pid: number;
  readonly tool: ToolId;
  /** The calls that it covers, as a rule: the tool, or the tool with exact arguments. */
  readonly rule: string;
  /** The name of the client, as it states it. */
  readonly client: string;
  readonly workspace: string;
  /** The time of the answer, and of its end, in milliseconds since 1970. */
  readonly at: number;
  readonly expires: number;
}

const FOLDER = "sessions";
const FILE = /^([0-9a-f]{64})\.json$/;

/** Writes an answer under its nonce. */
export async function writeSessionAnswer(
  home: string,
  nonce: string,
  answer: SessionAnswer,
): Promise<void> {
  await writePrivate(pathOf(home, nonce), answer);
}

/** Returns whether an answer was not revoked. */
export function hasSessionAnswer(home: string, nonce: string): boolean {
  return isRegularFile(pathOf(home, nonce));
}

/** Removes an answer. Does nothing if its file does not exist. */
export function removeSessionAnswer(home: string, nonce: string): void {
  try {
    Deno.removeSync(pathOf(home, nonce));
  } catch (error) {
    unlessGone(error);
  }
}

/**
 * Returns the answers of live processes with their ids, the oldest first. Removes expired answers,
 * and answers of processes that have ended.
 */
export async function sessionAnswersIn(
  home: string,
  log: WarningLog,
): Promise<readonly (SessionAnswer & { readonly id: string })[]> {
  const now = Date.now();
  const answers = (await namesIn(join(home, FOLDER))).flatMap((name) => {
    const [, id] = FILE.exec(name) ?? [];
    const answer = id && readPrivate(pathOf(home, id), (json) => json as SessionAnswer, log);
    if (!id || !answer) return [];
    if (answer.expires > now && isAlive(answer.pid)) return [{ ...answer, id }];
    removeSessionAnswer(home, id);
    return [];
  });
  return answers.sort((one, other) => one.at - other.at);
}

/** Revokes an answer, so that calls ask the user again. Returns whether there was one. */
export function revokeSessionAnswer(home: string, id: string): boolean {
  if (!FILE.test(`${id}.json`) || !hasSessionAnswer(home, id)) return false;
  removeSessionAnswer(home, id);
  return true;
}

function pathOf(home: string, nonce: string): string {
  return join(home, FOLDER, `${nonce}.json`);
}
