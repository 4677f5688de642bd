/**
 * Many PMLs with one home that are signed in at one server, whose tokens expire again and again,
 * and of which some are killed at any moment: each expiry causes one refresh, and no sign-in is
 * lost.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toldCode } from "./attacks/evil_servers.ts";
import { textOf } from "./attacks/oracles.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import type { OAuthRequest } from "./kit/oauth_endpoints.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import type { Message } from "./kit/json_rpc.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { signIn } from "./kit/sign_in.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** The size of the storm. */
export interface StormOptions {
  readonly processes: number;
  readonly expiries: number;
  /**
   * The number of killed processes, spread over the expiries; every second one during a refresh.
   */
  readonly kills: number;
  /** Environment variables of all processes. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called after each expiry. */
  readonly onRound?: (round: number) => void;
}

/** The results of a storm. */
export interface Stormed {
  readonly refreshes: number;
  readonly reuses: number;
  readonly calls: number;
  readonly kills: number;
  /**
   * Kills of the process that began a refresh, while the authorization server delayed the answer.
   */
  readonly killsInRefresh: number;
  readonly violations: readonly string[];
  readonly isRevoked: boolean;
  readonly seconds: number;
}

/** Lets the tokens expire, lets all processes call at once, and counts. */
export async function storm(options: StormOptions): Promise<Stormed> {
  const since = performance.now();
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["far:*"] },
      mcpServers: { far: { type: "http", url: mcp.url } },
    },
    ...(options.env && { env: options.env }),
  });
  // A start waits for the sign-in, which the processes read from the keyring one after the other.
  await writeFile(join(ws.home, "config.yaml"), "limits:\n  start_ms: 600000\n");
  const { code, stdout, stderr } = await signIn(ws, "far");
  assert.equal(code, 0, stdout + stderr);
  await using crowd = new Crowd(ws, server);
  await crowd.open(options.processes);
  let calls = await crowd.call();
  for (let round = 0; round < options.expiries; round++) {
    server.tokens.expire();
    const each = options.expiries / options.kills;
    const isDue = Math.floor(round / each) !== Math.floor((round + 1) / each);
    const how = crowd.kills % 2 === 0 ? "refresh" : "any";
    calls += await crowd.call(isDue ? how : undefined);
    assert.equal(server.tokens.refreshes, round + 1, `after the expiry ${round + 1}`);
    options.onRound?.(round + 1);
  }
  await crowd.close();
  const { refreshes, reuses, families } = server.tokens;
  return {
    ...{ refreshes, reuses, calls, kills: crowd.kills, killsInRefresh: crowd.killsInRefresh },
    violations: server.violations,
    isRevoked: families.some(({ isRevoked }) => isRevoked),
    seconds: (performance.now() - since) / 1_000,
  };
}

/** The result of a call of one process. */
interface Said {
  readonly one: RawStdio;
  /** Undefined if the process ended before it answered. */
  readonly answer: Message | undefined;
}

/** The running processes. */
class Crowd implements AsyncDisposable {
  kills = 0;
  killsInRefresh = 0;
  readonly #ws: Workspace;
  readonly #server: AuthorizationServer;
  readonly #killed = new Set<RawStdio>();
  #running: RawStdio[] = [];

  constructor(ws: Workspace, server: AuthorizationServer) {
    this.#ws = ws;
    this.#server = server;
  }

  /** Starts processes until this number is running. */
  async open(count: number): Promise<void> {
    const more = Array.from(
      { length: count - this.#running.length },
      // Some of them are killed.
      () => new RawStdio(this.#ws, { era: "2026-07-28", ownProcess: true }),
    );
    this.#running.push(...more);
    for (const one of more) await one.open();
  }

  /**
   * Lets all processes call, and kills one: while its refresh is under way, or after another one
   * got its answer. Asserts that all others get answers. Returns the number of answers.
   */
  async call(kill?: "refresh" | "any"): Promise<number> {
    const count = this.#running.length;
    const answers = kill === "refresh" ? await this.#inRefresh() : await this.#atOnce(kill);
    for (const { one, answer } of answers) {
      if (answer === undefined) assert.ok(this.#killed.has(one), "a process ended by itself");
      else assert.equal(toldCode(answer), undefined, textOf(answer));
    }
    this.#running = this.#running.filter((one) => !this.#killed.has(one));
    await this.open(count);
    return answers.filter(({ answer }) => answer !== undefined).length;
  }

  async #atOnce(kill: "any" | undefined): Promise<readonly Said[]> {
    const calls = this.#running.map(called);
    if (kill !== undefined) {
      await Promise.race(calls);
      await this.#kill(this.#running[this.kills % this.#running.length]);
    }
    return await Promise.all(calls);
  }

  /**
   * Kills the process that began the refresh while the authorization server delays the answer. The
   * others wait for the same refresh. The answer is delayed only for as long as the kill takes: a
   * refresh whose answer comes too late is lost.
   */
  async #inRefresh(): Promise<readonly Said[]> {
    const { options } = this.#server;
    const [isAsked, isFree] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    options.after = async ({ form }: OAuthRequest, answer: Response) => {
      if (form.get("grant_type") !== "refresh_token") return answer;
      options.after = undefined;
      isAsked.resolve();
      await isFree.promise;
      return answer;
    };
    const calls = this.#running.map(called);
    await isAsked.promise;
    await this.#kill(await this.#refreshing());
    this.killsInRefresh++;
    isFree.resolve();
    return await Promise.all(calls);
  }

  async #kill(victim: RawStdio | undefined): Promise<void> {
    assert.ok(victim !== undefined);
    this.kills++;
    this.#killed.add(victim);
    await victim.kill();
  }

  /** Returns the process that has a refresh under way. */
  async #refreshing(): Promise<RawStdio | undefined> {
    const living = await new ProcWatch(this.#ws).living();
    const child = living.find(({ command }) => command.includes("refresh_child"));
    return this.#running.find(({ pid }) => pid === child?.parent);
  }

  /** Disconnects from all. */
  async close(): Promise<void> {
    for (const one of this.#running) assert.equal((await one.close()).code, 0, one.stderr);
    this.#running = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((one) => one[Symbol.asyncDispose]()));
  }
}

async function called(one: RawStdio): Promise<Said> {
  try {
    return { one, answer: await one.callTool("call", { tool: "far:meta", arguments: {} }) };
  } catch {
    return { one, answer: undefined };
  }
}
