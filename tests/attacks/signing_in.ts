/**
 * Scenes of attacks on sign-in: servers that require one, and a workspace that names them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { AuthorizationServer } from "../kit/authorization_server.ts";
import type { AuthorizationServerOptions } from "../kit/oauth_endpoints.ts";
import { ProtectedHttp, type ProtectedOptions } from "../kit/protected_http.ts";
import type { CommandResult } from "../kit/run.ts";
import { signIn } from "../kit/sign_in.ts";
import type { Workspace } from "../kit/workspace.ts";
import { makeAttackWorkspace, type SceneOptions } from "./stage.ts";

/**
 * A server that requires a sign-in, its authorization server, and a workspace that names it `far`.
 */
export class Signing implements AsyncDisposable {
  readonly server: AuthorizationServer;
  readonly mcp: ProtectedHttp;
  readonly #ws: Workspace;

  private constructor(server: AuthorizationServer, mcp: ProtectedHttp, ws: Workspace) {
    this.server = server;
    this.mcp = mcp;
    this.#ws = ws;
  }

  /** Starts the servers and creates the workspace. No user is signed in. */
  static async make(options: {
    readonly server?: AuthorizationServerOptions;
    readonly mcp?: Partial<ProtectedOptions>;
    readonly era?: "legacy" | "modern";
    /** The values next to the URL. */
    readonly definition?: Readonly<Record<string, unknown>>;
    readonly scene?: SceneOptions;
  } = {}): Promise<Signing> {
    const server = new AuthorizationServer(options.server);
    const mcp = new ProtectedHttp(options.era ?? "modern", { server, ...options.mcp });
    const far = { type: "http", url: mcp.url, ...options.definition };
    const ws = await makeAttackWorkspace({ pml: pmlOf({ far }), ...options.scene });
    return new Signing(server, mcp, ws);
  }

  get ws(): Workspace {
    return this.#ws;
  }

  /** Signs in at an honest server. */
  async signIn(): Promise<void> {
    const { code, stdout, stderr } = await signIn(this.#ws, "far");
    assert.equal(code, 0, stdout + stderr);
  }

  /** Runs `pml login`, opens the address if there is one, and returns its output. */
  async tried(env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
    try {
      return await signIn(this.#ws, "far", { env });
    } catch (error) {
      const stderr = String((error as Error).message);
      assert.match(stderr, /^pml login ends: | leads nowhere: /);
      return { code: 1, stdout: "", stderr };
    }
  }

  /** Asserts that a sign-in fails with a code, and stores no token. */
  async assertRefused(code: string, like: RegExp): Promise<void> {
    const result = await this.tried();
    const text = result.stdout + result.stderr;
    assert.notEqual(result.code, 0, text);
    assert.match(text, new RegExp(code));
    assert.match(text, like);
    assert.ok(this.mcp.tokens.every((token) => token === undefined), "a token was sent");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ws[Symbol.asyncDispose]();
    await this.mcp[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

/** Returns the content of a workspace file with servers whose tools are all allowed. */
export function pmlOf(mcpServers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const allow = ["filesystem:*", ...Object.keys(mcpServers).map((name) => `${name}:*`)];
  return { version: 1, permissions: { allow }, mcpServers };
}
