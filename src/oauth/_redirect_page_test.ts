import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { RedirectPage } from "./_redirect_page.ts";

const STATE = "state-of-this-sign-in";

/** Requests the page with a given `Host` header. */
async function ask(
  url: string,
  { host, method = "GET" }: { readonly host?: string; readonly method?: string } = {},
): Promise<{ readonly status: number; readonly text: string; readonly csp: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof ask>>>();
  const headers = host === undefined ? {} : { host };
  request(url, { method, headers }, (answer) => {
    let text = "";
    answer.on("data", (piece) => text += piece);
    const { statusCode: status = 0, headers } = answer;
    answer.on("end", () => resolve({ status, text, csp: `${headers["content-security-policy"]}` }));
  }).on("error", reject).end();
  return await promise;
}

Deno.test("RedirectPage accepts one answer with the right state, path and host", async () => {
  await using page = await RedirectPage.open(STATE, 0);
  // Requests that are accepted by mistake need an answer, too.
  page.showResult(true);
  const { origin, host } = new URL(page.url);
  const good = `${page.url}?code=c&state=${STATE}`;
  const wrong = [
    ask(`${page.url}?code=c`),
    ask(`${page.url}?code=c&state=other`),
    ask(`${page.url}#code=c&state=${STATE}`),
    ask(`${origin}/favicon.ico?state=${STATE}`),
    ask(good, { host: host.replace("127.0.0.1", "attacker.example") }),
    ask(good, { host: host.replace("127.0.0.1", "localhost") }),
    ask(good, { method: "POST" }),
  ];
  for (const answer of wrong) assert.equal((await answer).status, 404);
  const answered = ask(good);
  assert.equal((await page.answer).searchParams.get("code"), "c");
  assert.equal((await ask(good)).status, 404, "a second answer");
  const { status, text, csp } = await answered;
  assert.equal(status, 200);
  assert.match(text, /You are signed in/);
  assert.doesNotMatch(text, /script|state|code/);
  assert.match(csp, /default-src 'none'/);
});

Deno.test("RedirectPage reports a failed sign-in, and stops listening when it is disposed", async () => {
  const page = await RedirectPage.open(STATE, 0);
  const answered = ask(`${page.url}?error=access_denied&state=${STATE}`);
  await page.answer;
  const { url } = page;
  const [{ text }] = await Promise.all([answered, page[Symbol.asyncDispose]()]);
  assert.match(text, /The sign-in failed/);
  await assert.rejects(ask(url));
});

Deno.test("RedirectPage refuses a request that ends after it was disposed", async () => {
  const page = await RedirectPage.open(STATE, 0);
  const { host, port } = new URL(page.url);
  const socket = connect(Number(port), "127.0.0.1");
  await once(socket, "connect");
  const closed = once(socket, "close");
  const heard = once(socket, "data");
  socket.write(`GET /favicon.ico HTTP/1.1\r\nHost: ${host}\r\n`);
  // The server has read the first lines when it has answered a later request.
  assert.equal((await ask(`${page.url}?state=other`)).status, 404);
  const disposed = page[Symbol.asyncDispose]();
  socket.write("\r\n");
  assert.match(String((await heard)[0]), /^HTTP\/1\.1 404/);
  await Promise.all([disposed, closed]);
});
