/**
 * A workspace with servers that require a sign-in, and a user who signs in there.
 *
 * @module
 */

import { join } from "node:path";
import { REFRESH_CODE } from "../src/oauth/refresh_child.ts";
import type { Fetch } from "../src/core/fetch.ts";
import { GuardedFetch } from "../src/transport/http/client/guarded_fetch.ts";
import { refreshInProcess, type RefreshRequest } from "../src/oauth/refresh_sign_in.ts";
import { SignIns } from "../src/oauth/sign_ins.ts";
import type { OAuthServer, PendingSignIn, SignInHost } from "../src/oauth/oauth_server.ts";
import { browse } from "./kit/browser.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

/** The definition of a server: its URL and more. */
export interface Beside {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly oauth?: Readonly<Record<string, unknown>>;
}

/** The content of a workspace file. */
export interface DefinedServers extends Record<string, unknown> {
  readonly permissions: { readonly allow: readonly string[] };
}

/** Returns a workspace file with the definitions of servers. */
export function definitions(
  servers: Readonly<Record<string, Beside>>,
): DefinedServers {
  return {
    version: 1,
    permissions: { allow: Object.keys(servers).map((name) => `${name}:*`) },
    mcpServers: Object.fromEntries(
      Object.entries(servers).map((
        [name, { url, headers, oauth }],
      ) => [name, { type: "http", url, headers, oauth }]),
    ),
  };
}

/** Creates a trusted workspace with these servers. */
export async function signedWorkspace(
  servers: Readonly<Record<string, Beside>>,
): Promise<Workspace> {
  return await makeWorkspace({ pml: definitions(servers), trusted: true });
}

/** Returns a server in the form that sign-ins use. */
export function serverOf(name: string, url: string, oauth?: OAuthServer["oauth"]): OAuthServer {
  return { name, url, named: new Set([new URL(url).host]), oauth };
}

/** The sign-ins of a PML home, without a process. */
export class Person implements SignInHost, Disposable {
  readonly folder: string;
  readonly document: string | undefined;
  readonly signIns: SignIns;
  readonly secrets: string[] = [];
  /** The user's own list of hosts that an issuer may use. */
  issuerHosts: Readonly<Record<string, readonly string[]>> = {};
  readonly #network = new GuardedFetch();

  /** Requires the PML home, and optionally the address of a client id metadata document. */
  constructor(home: string, document?: string) {
    this.folder = join(home, "sign_ins");
    this.document = document;
    this.signIns = new SignIns(this);
  }

  readonly log = {
    warn: (message: string) => {
      throw new Error(message);
    },
  };

  get fetch(): Fetch {
    return this.#network.fetch;
  }

  register(secrets: readonly string[]): void {
    this.secrets.push(...secrets);
  }

  async refresh(request: RefreshRequest): Promise<void> {
    const closing = new AbortController().signal;
    await refreshInProcess(request, { code: REFRESH_CODE, env: Deno.env.toObject(), closing });
  }

  /** Begins a sign-in. */
  async begin(server: OAuthServer): Promise<PendingSignIn> {
    return await this.signIns.begin(server, { signal: new AbortController().signal });
  }

  /** Signs in as a user does in the browser. */
  async signIn(server: OAuthServer): Promise<void> {
    await using signIn = await this.begin(server);
    const { status, text } = await browse(signIn.url);
    if (status !== 200) throw new Error(`the page answered ${status}: ${text}`);
    await signIn.done;
  }

  [Symbol.dispose](): void {
    this.#network[Symbol.dispose]();
  }
}

/** Asserts that only the files of sign-ins contain the secrets, and no output of PML. */
export async function assertNowhere(
  secrets: readonly string[],
  { ws, pml }: { readonly ws: Workspace; readonly pml?: RawStdio },
): Promise<void> {
  const texts = await Array.fromAsync(filesBelow(ws.root));
  for (const { path, text } of texts) {
    const found = secrets.find((secret) => text.includes(secret));
    if (found !== undefined && !path.includes("/sign_ins/")) throw new Error(`${path}: ${found}`);
  }
  const output = `${pml?.stderr ?? ""}${pml?.stdout ?? ""}`;
  const found = secrets.find((secret) => output.includes(secret));
  if (found !== undefined) throw new Error(`PML wrote ${found}`);
}

async function* filesBelow(folder: string): AsyncGenerator<{ path: string; text: string }> {
  for await (const { name, isDirectory, isFile } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) yield* filesBelow(path);
    else if (isFile) {
      yield { path, text: new TextDecoder("latin1").decode(await Deno.readFile(path)) };
    }
  }
}
