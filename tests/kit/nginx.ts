/**
 * Runs the nginx of the system with the documented configuration, in front of processes of PML.
 *
 * @module
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "./free_port.ts";
import { repoFile } from "./pml_command.ts";
import { until } from "./wait.ts";

/** A running nginx. Its disposal ends it. */
export interface Nginx extends AsyncDisposable {
  /** The address of MCP behind it. */
  readonly url: string;
}

/** Returns the configuration in a page of the docs, with other addresses. */
async function documented(
  ports: readonly number[],
  { own, page: name }: { readonly own: number; readonly page: string },
): Promise<string> {
  const page = await readFile(repoFile(name), "utf8");
  const text = /```nginx\n([^]*?)```/.exec(page)?.[1] ?? "";
  const servers = ports.map((port) => `server 127.0.0.1:${port} max_fails=1 fail_timeout=1s;`);
  const changed = text.replace(/( *server 127\.0\.0\.1:\d+;\n)+/, `${servers.join("\n")}\n`)
    .replace(/listen [^;]+;/, `listen 127.0.0.1:${own};`);
  if (!changed.includes(`:${own};`) || servers.some((one) => !changed.includes(one))) {
    throw new Error(`${name} has no configuration of nginx: ${text}`);
  }
  return changed;
}

/** Starts nginx in a folder, and waits until it answers. Throws if nginx is not installed. */
export async function startNginx(
  folder: string,
  urls: readonly string[],
  { page = "docs/serve.md", port = freePort() } = {},
): Promise<Nginx> {
  await mkdir(folder, { recursive: true });
  const ports = urls.map((url) => Number(new URL(url).port));
  const http = await documented(ports, { own: port, page });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join("\n");
  const path = join(folder, "nginx.conf");
  const log = join(folder, "error.log");
  await writeFile(
    path,
    `daemon off; worker_processes 1; pid ${join(folder, "pid")}; error_log ${log};
    events { worker_connections 256; }
    http { access_log off; ${temporary}\n${http} }`,
  );
  const program = await Deno.stat("/usr/sbin/nginx").then(() => "/usr/sbin/nginx", () => "nginx");
  const child = new Deno.Command(program, {
    args: ["-c", path, "-e", log],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const errors = new Response(child.stderr).text();
  let ended = false;
  const over = child.status.then(() => ended = true);
  const url = `http://127.0.0.1:${port}/mcp`;
  await until(async () => {
    if (ended) throw new Error(`nginx has ended: ${await errors}`);
    const response = await fetch(new URL("/health", url)).catch(() => undefined);
    await response?.text();
    return response?.status === 200;
  });
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      if (!ended) child.kill("SIGTERM");
      await Promise.all([over, errors]);
    },
  };
}
