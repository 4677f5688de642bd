/**
 * Requests and notifications from servers of both revisions to clients of both, as bytes on the
 * wire.
 *
 * @module
 */

import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./attacks/oracles.ts";
import { READING_MS } from "./attacks/questions.ts";
import {
  ALL_ABLE,
  assertLogged,
  call,
  full,
  KINDS,
  ledgerOf,
  listed,
  sceneOf,
} from "./full_scene.ts";
import type { Message } from "./kit/json_rpc.ts";
import { EACH_WAY, WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

for (const { door, era, on } of WAYS) {
  Deno.test(`a server's questions reach the user, and the answers reach the server, on ${on}`, async () => {
    const seen: string[] = [];
    await using scene = await sceneOf(era, {
      door,
      capabilities: ALL_ABLE,
      answer: (_, params) => {
        seen.push(String(params.message));
        return { action: "accept", content: { name: `to ${seen.length}` } };
      },
    });
    const { ws, pml } = scene;
    for (const kind of KINDS) {
      seen.length = 0;
      const one = JSON.parse(textOf(await call(pml, `${kind}:ask_name`)));
      assert.deepEqual(one, { one: { action: "accept", content: { name: "to 1" } } });
      const two = JSON.parse(textOf(await pml.callTool(`${kind}__ask_twice`)));
      assert.deepEqual(Object.keys(two), ["one", "two"]);
      await call(pml, `${kind}:ask_secret`);
      assert.equal(seen[0], `Server ${kind} asks: Who\n    are you?`);
      assert.match(seen[3] ?? "", /^Server \w+ asks: Type your password\n\(PML notes: .*secret/);
      // An older server begins the call once; the newest revision sends the call again with the
      // answer.
      const calls = (await ledgerOf(ws, kind)).filter((line) => line.startsWith("call ask_name"));
      assert.equal(calls.length, kind === "legacy" ? 1 : 2);
    }
  });

  Deno.test(`the client opens a page if it can; PML never does, on ${on}`, async () => {
    const able = { elicitation: { form: {}, url: {} } };
    const seen: unknown[] = [];
    const answer = (_: string, params: Record<string, unknown>) => {
      seen.push([params.mode, params.url, params.message]);
      return { action: "accept" };
    };
    await using scene = await sceneOf(era, {
      door,
      capabilities: able,
      answer,
    });
    for (const kind of KINDS) {
      const said = JSON.parse(textOf(await call(scene.pml, `${kind}:ask_page`)));
      assert.deepEqual(said, { one: { action: "accept" } });
      assert.deepEqual(seen.pop(), ["url", "https://127.0.0.1/x", `Server ${kind} asks: Log in`]);
    }
    const done = ({ method, params }: Message) =>
      method === "notifications/elicitation/complete" && params?.elicitationId === "e1";
    if (era === "2025-11-25") await until(() => scene.pml.messages.some(done));
    await using unable = await sceneOf(era, {
      door,
      answer,
    });
    for (const kind of KINDS) {
      const { result } = await call(unable.pml, `${kind}:ask_page`);
      assert.equal(result?.isError as unknown, true);
      assert.match(textOf({ result }), /open a page/);
    }
  });
}

for (const { door, era, on } of EACH_WAY) {
  Deno.test(`a server gets the answer of a dismissed question, and its call fails if it cannot be asked, on ${on}`, async () => {
    await using dismissed = await sceneOf(era, {
      door,
      answer: () => ({ action: "cancel" }),
    });
    for (const kind of KINDS) {
      const said = JSON.parse(textOf(await call(dismissed.pml, `${kind}:ask_name`)));
      assert.deepEqual(said, { one: { action: "cancel" } });
    }
    await using unable = await sceneOf(era, { door });
    for (const kind of KINDS) {
      const { result } = await call(unable.pml, `${kind}:ask_name`);
      assert.equal(result?.isError, true);
      assert.match(textOf({ result }), /ask its user/);
    }
    await using denied = await sceneOf(era, {
      door,
      rules: { deny: KINDS.map((kind) => `${kind}:@elicitation`) },
      answer: () => assert.fail("it asked"),
    });
    for (const kind of KINDS) {
      const { result } = await call(denied.pml, `${kind}:ask_name`);
      assert.match(textOf({ result }), /a deny rule matches/);
    }
  });

  Deno.test(`sampling asks the user first, then the client's model, on ${on}`, async () => {
    const requests: string[] = [];
    const answer = (method: string, params: Record<string, unknown>) => {
      requests.push(method);
      if (method === "sampling/createMessage") {
        assert.deepEqual(params.messages, [{
          role: "user",
          content: { type: "text", text: "Say it" },
        }]);
        return { role: "assistant", model: "m", content: { type: "text", text: "it" } };
      }
      assert.match(String(params.message), /@sampling[^]*model of your client[^]*Say it/);
      return { action: "accept", content: { answer: "Yes" } };
    };
    const servers = { legacy: full("legacy"), modern: full("modern") };
    const allow = KINDS.map((kind) => `${kind}:sample`);
    await using scene = await sceneOf(era, {
      door,
      rules: { allow },
      servers,
      capabilities: ALL_ABLE,
      answer,
    });
    for (const kind of KINDS) {
      requests.length = 0;
      const { one } = JSON.parse(textOf(await call(scene.pml, `${kind}:sample`)));
      assert.deepEqual(one.content, { type: "text", text: "it" });
      assert.deepEqual(requests, ["elicitation/create", "sampling/createMessage"]);
    }
    const refuse = async (method: string) => {
      assert.equal(method, "elicitation/create", "the model was asked");
      await delay(READING_MS);
      return { action: "accept", content: { answer: "No" } };
    };
    await using refused = await sceneOf(era, {
      door,
      rules: { allow },
      servers,
      capabilities: ALL_ABLE,
      answer: refuse,
    });
    for (const kind of KINDS) {
      const { result } = await call(refused.pml, `${kind}:sample`);
      assert.match(textOf({ result }), /the user answered no/);
    }
  });
}

for (const { door, era, on } of WAYS) {
  Deno.test(`only clients that follow a resource are notified of its changes, on ${on}`, async () => {
    await using scene = await sceneOf(era, { door });
    const { ws, pml } = scene;
    const uris = KINDS.map((kind) => `pml://${kind}/test://a`);
    const listen = { notifications: { resourceSubscriptions: uris } };
    const open = era === "2026-07-28" ? pml.begin("subscriptions/listen", listen) : undefined;
    if (open === undefined) {
      for (const uri of uris) {
        assert.equal((await pml.request("resources/subscribe", { uri })).error, undefined);
      }
    } else open.answer.catch(() => {}); // it is cancelled
    const told = () =>
      pml.messages.filter(({ method }) => method === "notifications/resources/updated")
        .map(({ params }) => params?.uri);
    for (const kind of KINDS) {
      await until(async () => {
        const lines = await ledgerOf(ws, kind);
        return kind === "modern" || lines.some((line) => line.startsWith("resources/subscribe"));
      });
      await until(async () => {
        await call(pml, `${kind}:touch`);
        return told().includes(`pml://${kind}/test://a`);
      });
    }
    assert.ok(!told().some((uri) => String(uri).endsWith("test://b")));
    if (open !== undefined) await pml.notify("notifications/cancelled", { requestId: open.id });
    else await pml.request("resources/unsubscribe", { uri: uris[0] });
    await until(async () => {
      const lines = await ledgerOf(ws, "legacy");
      return lines.some((line) => line.startsWith("resources/unsubscribe"));
    });
    if (open === undefined) assert.equal((await pml.close()).code, 0);
  });

  Deno.test(`a changed list is reported once, however often its server notifies, on ${on}`, async () => {
    await using scene = await sceneOf(era, { door });
    const { ws, pml } = scene;
    const changes = { promptsListChanged: true };
    if (era === "2026-07-28") {
      pml.begin("subscriptions/listen", { notifications: changes }).answer.catch(() => {});
    }
    const namesNow = async () =>
      (await listed(pml, "prompts/list", { key: "prompts" })).map(({ name }) => String(name));
    // A server that starts late changes the list; that notification comes before the first
    // addition.
    await until(async () => {
      const names = await namesNow();
      return KINDS.every((kind) => names.some((name) => name.startsWith(`${kind}__`)));
    });
    await namesNow();
    for (const kind of KINDS) {
      const told = () =>
        pml.messages.filter(({ method }) => method === "notifications/prompts/list_changed").length;
      const before = told();
      await call(pml, `${kind}:add_prompt`);
      await until(() => told() > before);
      await until(async () => (await namesNow()).includes(`${kind}__later`));
      assert.equal(told(), before + 1);
      const requests = (await ledgerOf(ws, kind)).filter((line) => line.startsWith("prompts/list"));
      assert.ok(requests.length <= 3, `asked ${requests.length} times`);
    }
  });

  Deno.test(`log messages reach the client from the level that it requests, on ${on}`, async () => {
    await using scene = await sceneOf(era, { door });
    const { ws, pml } = scene;
    const isOlder = era === "2025-11-25";
    if (isOlder) {
      assert.equal((await pml.request("logging/setLevel", { level: "info" })).error, undefined);
    }
    await assertLogged(pml);
    const lines = await ledgerOf(ws, "legacy");
    if (isOlder) assert.ok(lines.includes('logging/setLevel {"level":"info"}'));
    const wrong = await pml.request("logging/setLevel", { level: "loud" });
    assert.ok(wrong.error !== undefined);
  });
}
