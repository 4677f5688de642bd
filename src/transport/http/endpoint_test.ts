import assert from "node:assert/strict";
import { CLIENT_INFO } from "../../../tests/kit/json_rpc.ts";
import { echo } from "../../../tests/kit/spoken.ts";
import type { JsonObject } from "../../core/json.ts";
import { createHello } from "../../gateway/hello.ts";
import { META } from "../../protocol/envelope.ts";
import { STATELESS_REVISION } from "../../protocol/revisions.ts";
import { asResponse } from "./_answer.ts";
import { HttpEndpoint } from "./endpoint.ts";

const REVISION = "2025-11-25";
const ELEVEN_MINUTES = 11 * 60_000;

/** An endpoint, the capabilities that its host got last, and a clock. */
class Stage implements AsyncDisposable {
  declared: JsonObject = {};
  readonly endpoint = new HttpEndpoint(
    {
      hello: (isStateless) => createHello([], { name: "pml", version: "1.0.0", isStateless }),
      connect: (_, isStateless) => ({
        isStateless,
        serve: echo,
        handleNotification() {},
        close() {},
      }),
      listen: () => ({ set() {}, reportDropped() {}, [Symbol.dispose]() {} }),
      isTask: () => false,
      onDeclared: (capabilities) => void (this.declared = capabilities),
    },
    { connections: 10, inputBytes: 1e6, queuedBytes: 1e6 },
    { identity: null, prefix: "" },
  );
  readonly #now = performance.now;

  /** Sends a request, and returns the answer. */
  async send(method: string, body?: object, headers: Readonly<Record<string, string>> = {}) {
    const { signal } = new AbortController();
    return asResponse(await this.endpoint.answer({ method, body, headers, signal }));
  }

  /** Sends a request of the stateless revision. */
  async sendStateless(capabilities: JsonObject): Promise<void> {
    const _meta = {
      [META.version]: STATELESS_REVISION,
      [META.client]: CLIENT_INFO,
      [META.capabilities]: capabilities,
    };
    const method = "tools/list";
    const headers = { "mcp-protocol-version": STATELESS_REVISION, "mcp-method": method };
    const body = { jsonrpc: "2.0", id: 1, method, params: { _meta } };
    assert.equal((await this.send("POST", body, headers)).status, 200);
  }

  /** Opens a session, and returns the headers of its requests. */
  async open(capabilities: JsonObject): Promise<Readonly<Record<string, string>>> {
    const params = { protocolVersion: REVISION, capabilities, clientInfo: CLIENT_INFO };
    const body = { jsonrpc: "2.0", id: 1, method: "initialize", params };
    const { headers } = await this.send("POST", body);
    return { "mcp-session-id": headers.get("mcp-session-id") ?? assert.fail("no session") };
  }

  /** Sets the clock forward. */
  wait(ms: number): void {
    const now = performance.now();
    const since = this.#now.call(performance);
    performance.now = () => now + ms + this.#now.call(performance) - since;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endpoint[Symbol.asyncDispose]();
    performance.now = this.#now;
  }
}

Deno.test("the capabilities of a session count until it ends, those of a request for some minutes", async () => {
  await using stage = new Stage();
  const session = await stage.open({ elicitation: { form: {} } });
  await stage.sendStateless({ sampling: {} });
  assert.deepEqual(stage.declared, { elicitation: { form: {} }, sampling: {} });
  stage.wait(ELEVEN_MINUTES);
  await stage.sendStateless({ roots: {} });
  assert.deepEqual(stage.declared, { elicitation: { form: {} }, roots: {} });
  assert.equal((await stage.send("DELETE", undefined, session)).status, 200);
  stage.wait(ELEVEN_MINUTES);
  await stage.sendStateless({ sampling: {} });
  assert.deepEqual(stage.declared, { sampling: {} });
});
