import assert from "node:assert/strict";
import type { Call, CallClient, Page } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import type { SignIns } from "./sign_ins.ts";
import type { OAuthServer, PendingSignIn } from "./oauth_server.ts";
import { until } from "../../tests/kit/wait.ts";
import { type LoginHost, Logins } from "./logins.ts";

const PAGE = "https://accounts.example/authorize?state=1";

/** Sign-ins that end when the test ends them. */
class Stage implements LoginHost, AsyncDisposable {
  readonly begun: PromiseWithResolvers<void>[] = [];
  readonly changed: string[] = [];
  readonly ended = new Set<unknown>();
  signInMs = 60_000;
  readonly closing = new AbortController();
  readonly home = Deno.makeTempDirSync();
  readonly logins: Logins = this.open();

  open(): Logins {
    return new Logins(this.home, this, this.closing.signal);
  }

  signInChanged(server: string): void {
    this.changed.push(server);
  }

  serverForSignIn(name: string): Promise<OAuthServer> {
    return Promise.resolve({ name, url: "https://mcp.example/mcp", named: new Set() });
  }

  begin() {
    return this.logins.begin("far", { scopes: undefined, signal: this.closing.signal });
  }

  signIns(): Promise<SignIns> {
    const begin = (): Promise<PendingSignIn> => {
      const done = Promise.withResolvers<void>();
      done.promise.catch(() => {});
      this.begun.push(done);
      return Promise.resolve({
        url: PAGE,
        issuer: "https://accounts.example",
        codeHost: "token.accounts.example",
        sharedClient: undefined,
        done: done.promise,
        paste: () => {},
        [Symbol.asyncDispose]: () => {
          this.ended.add(done);
          done.reject(new PmlError("CANCELLED", "it was cancelled"));
          return Promise.resolve();
        },
      });
    };
    return Promise.resolve({ begin } as unknown as SignIns);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closing.abort();
    await Deno.remove(this.home, { recursive: true });
  }
}

function wants(scopes?: readonly string[]): PmlError {
  return new PmlError("LOGIN_REQUIRED", 'Cannot use "far": it requires a sign-in', {
    hint: "Run: pml login far",
    detail: { server: "far", ...scopes && { scopes } },
  });
}

type Open = CallClient["onOpen"];

function callWith(onOpen?: Open, cancellation = new Cancellation()): Call {
  const id = toolId("far", "look");
  const client: CallClient = { onOpen };
  return { id, arguments: {}, via: "test", actor: "local", callId: "1", cancellation, client };
}

/** Returns work that requires a sign-in the first time. */
function onceSignedIn(error = wants()) {
  let runs = 0;
  const work = () => runs++ === 0 ? Promise.reject(error) : Promise.resolve("done");
  return { work, runs: () => runs };
}

Deno.test("a call continues after the user signs in on the page that the client opened", async () => {
  await using at = new Stage();
  const pages: Page[] = [];
  const open: Open = (page) => Promise.resolve(pages.push(page) > 0);
  const { work, runs } = onceSignedIn();
  const going = at.logins.during(callWith(open), work);
  await until(() => at.begun.length > 0 && pages.length > 0);
  assert.equal(runs(), 1);
  assert.deepEqual(pages.map(({ url }) => url), [PAGE]);
  assert.match(
    pages[0]?.text ?? "",
    /^PML asks: sign in at accounts\.example .*"far".*mcp\.example/,
  );
  at.begun[0]?.resolve();
  assert.equal(await going, "done");
  assert.deepEqual(at.changed, ["far"]);
  assert.equal(at.ended.size, 1);
});

Deno.test("calls that need the same sign-in ask once, and all continue", async () => {
  await using at = new Stage();
  const agreed = Promise.withResolvers<boolean>();
  let asked = 0;
  const open: Open = () => {
    asked++;
    return agreed.promise;
  };
  const going = [1, 2, 3].map(() => at.logins.during(callWith(open), onceSignedIn().work));
  while (asked === 0) await new Promise((resolve) => setTimeout(resolve));
  agreed.resolve(true);
  for (const one of at.begun) one.resolve();
  assert.deepEqual(await Promise.all(going), ["done", "done", "done"]);
  assert.deepEqual([asked, at.begun.length], [1, 1]);
});

Deno.test("a call refused before the sign-in of another call continues without asking", async () => {
  await using at = new Stage();
  const signed = Promise.withResolvers<void>();
  let runs = 0;
  const late = at.logins.during(
    callWith(() => assert.fail("it asks")),
    () => runs++ === 0 ? signed.promise.then(() => Promise.reject(wants())) : Promise.resolve(runs),
  );
  const open: Open = () => {
    for (const one of at.begun) one.resolve();
    return Promise.resolve(true);
  };
  assert.equal(await at.logins.during(callWith(open), onceSignedIn().work), "done");
  signed.resolve();
  assert.equal(await late, 2);
});

Deno.test("a call asks again when the call that asked first is cancelled", async () => {
  await using at = new Stage();
  const stop = new Cancellation();
  const first = Promise.withResolvers<boolean>();
  const asked: number[] = [];
  const one = at.logins.during(
    callWith((_, signal) => {
      asked.push(1);
      signal.addEventListener("abort", () => first.reject(signal.reason));
      return first.promise;
    }, stop),
    onceSignedIn().work,
  );
  while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve));
  const other = at.logins.during(
    callWith(() => Promise.resolve(asked.push(2) > 0)),
    onceSignedIn().work,
  );
  stop.cancel(new PmlError("CANCELLED", "the client cancelled it"));
  await assert.rejects(one, { code: "CANCELLED" });
  while (asked.length === 1) await new Promise((resolve) => setTimeout(resolve));
  at.begun[0]?.resolve();
  assert.equal(await other, "done");
  assert.deepEqual([asked, at.begun.length], [[1, 2], 1]);
});

Deno.test("a sign-in continues after the call that asked for it is cancelled", async () => {
  await using at = new Stage();
  const stop = new Cancellation();
  const told = Promise.withResolvers<void>();
  const open: Open = () => Promise.resolve(true).finally(told.resolve);
  const going = at.logins.during(callWith(open, stop), onceSignedIn().work);
  await told.promise;
  stop.cancel(new PmlError("CANCELLED", "the client cancelled it"));
  await assert.rejects(going, { code: "CANCELLED" });
  assert.equal(at.ended.size, 0);
  at.begun[0]?.resolve();
  await until(() => at.ended.size > 0);
  assert.deepEqual(at.changed, ["far"]);
});

Deno.test("a declined, unanswered, refused or late sign-in fails with LOGIN_REQUIRED and a command", async () => {
  await using at = new Stage();
  const failing = async (open: Open, message: RegExp) => {
    const { work, runs } = onceSignedIn();
    await assert.rejects(at.logins.during(callWith(open), work), (error: PmlError) => {
      assert.deepEqual([error.code, error.hint], ["LOGIN_REQUIRED", "Run: pml login far"]);
      assert.match(error.message, message);
      return true;
    });
    assert.equal(runs(), 1);
  };
  await failing(() => Promise.resolve(false), /; the user declined$/);
  assert.equal(at.ended.size, 1);
  await failing(() => Promise.reject(new Error("timed out")), /; there was no answer$/);
  // The page may still be open, so the next call asks about the same page.
  const begun = at.begun.length;
  at.signInMs = 1;
  await failing(() => {
    queueMicrotask(() => at.begun.at(-1)?.reject(new PmlError("LOGIN_REQUIRED", "access denied")));
    return Promise.resolve(true);
  }, /; access denied$/);
  assert.equal(at.begun.length, begun);
  await failing(() => Promise.resolve(true), /took too long/);
  assert.deepEqual(at.changed, []);
});

Deno.test("the user is not asked if the client opens no pages or the error requires no sign-in", async () => {
  await using at = new Stage();
  const error = wants();
  await assert.rejects(at.logins.during(callWith(), onceSignedIn(error).work), error);
  const open: Open = () => assert.fail("it asked");
  const key = new PmlError("LOGIN_REQUIRED", "its key is wrong");
  await assert.rejects(at.logins.during(callWith(open), onceSignedIn(key).work), key);
  assert.equal(at.begun.length, 0);
});

Deno.test("the user is asked again soon after a sign-in only if the server requires more scopes", async () => {
  await using at = new Stage();
  const open: Open = () => {
    at.begun.at(-1)?.resolve();
    return Promise.resolve(true);
  };
  assert.equal(await at.logins.during(callWith(open), onceSignedIn().work), "done");
  await assert.rejects(at.logins.during(callWith(open), onceSignedIn().work), {
    code: "LOGIN_REQUIRED",
  });
  assert.equal(at.begun.length, 1);
  const more = onceSignedIn(wants(["write"])).work;
  assert.equal(await at.logins.during(callWith(open), more), "done");
  assert.equal(at.begun.length, 2);
});

Deno.test("a sign-in of another process is detected", async () => {
  await using at = new Stage();
  const following = at.open().follow();
  const login = await at.begin();
  at.begun[0]?.resolve();
  await login.done;
  // Both processes detect it.
  await until(() => at.changed.length === 2);
  assert.deepEqual(at.changed, ["far", "far"]);
  at.closing.abort();
  await following;
});
