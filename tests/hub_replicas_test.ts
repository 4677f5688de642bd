/**
 * Two hubs on one PostgreSQL behind the documented nginx, one of which is killed under load; and
 * the unit of systemd.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { moduleOffer, put, sendRequest, startHub } from "./kit/hub.ts";
import { freePort } from "./kit/free_port.ts";
import { startNginx } from "./kit/nginx.ts";
import { repoFile } from "./kit/pml_command.ts";
import { startPostgres } from "./kit/postgres.ts";
import { until } from "./kit/wait.ts";

Deno.test("two hubs on one database lose or duplicate no accepted version when one is killed", async () => {
  await using server = await startPostgres();
  const port = freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const DATABASE_URL = await server.database();
  await using one = await startHub({
    env: { DATABASE_URL },
    args: ["--url", url, "--rate", "100000"],
    ownProcess: true,
  });
  await using other = await one.again();
  const urls = [one.serving, other].map((each) => `http://127.0.0.1:${each.port}/mcp`);
  const folder = join(one.ws.path, "nginx");
  await using _ = await startNginx(folder, urls, { page: "docs/deploy.md", port });
  const { key } = await one.key("acme");
  const told = new Map<string, number>();
  const odd: string[] = [];
  let at = 0;
  let isOver = false;
  const publishing = async () => {
    while (!isOver) {
      const fqdn = `hello:t${at++}`;
      const { status } = await put(url, key, moduleOffer(fqdn, "1.0.0"));
      // 200: the first hub had stored it before it was killed, and nginx repeated it at the second.
      if (status === 201 || status === 200) told.set(fqdn, status);
      else odd.push(`${fqdn}: ${status}`);
    }
  };
  const reading = async () => {
    while (!isOver) {
      const [name] = [...told.keys()].slice(-1);
      const { status } = await sendRequest(`${url}/${name ?? "x"}`, { method: "GET" });
      if (status !== (name === undefined ? 404 : 200)) odd.push(`GET ${name}: ${status}`);
    }
  };
  const lanes = [publishing(), publishing(), publishing(), reading(), reading()];
  await until(() => told.size > 50);
  Deno.kill(other.pid, "SIGKILL");
  const then = told.size;
  await until(() => told.size > then + 50);
  isOver = true;
  await Promise.all(lanes);
  assert.deepEqual(odd, []);
  for (const fqdn of told.keys()) {
    const { status, body } = await sendRequest(`${urls[0]}/${fqdn}@1.0.0`, { method: "GET" });
    assert.deepEqual([status, body], [200, moduleOffer(fqdn, "1.0.0").code], fqdn);
  }
  const count = await server.psql(DATABASE_URL, "SELECT count(*) FROM pml_hub.capabilities");
  assert.equal(Number(count), told.size);
});

Deno.test("systemd accepts the unit of systemd", async () => {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "pml-hub.service");
  await Deno.copyFile(repoFile("hub/deploy/pml-hub.service"), path);
  const { code, stderr } = await new Deno.Command("systemd-analyze", {
    args: ["verify", "--man=no", "--recursive-errors=no", path],
  }).output();
  const lines = new TextDecoder().decode(stderr).split("\n").filter((line) =>
    line.includes("pml-hub")
  );
  await Deno.remove(folder, { recursive: true });
  assert.deepEqual([code, lines], [0, []]);
});
