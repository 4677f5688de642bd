// An MCP client as a Windows program, for Node and Deno. It starts `pml stdio` with pipes of Windows,
// leaves large answers unread for a while, ends the input, and prints its counts as JSON.
import { spawn } from "node:child_process";
import process from "node:process";

const LISTS = 200;
const [command, ...args] = process.argv.slice(2);
const seen = { pausedAt: 0, bytes: 0, lines: 0, code: null };
const pml = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
pml.stdout.on("data", (piece) => {
  seen.bytes += piece.length;
  for (const byte of piece) if (byte === 10) seen.lines++;
});
const send = (message) => pml.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const waitForLines = async (count) => {
  while (seen.lines < count) await new Promise((resolve) => setTimeout(resolve, 20));
};
const clientInfo = { name: "parent", version: "1" };
const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
send({ id: 0, method: "initialize", params });
await waitForLines(1);
send({ method: "notifications/initialized" });
send({ id: 1, method: "tools/list", params: {} });
await waitForLines(2);
pml.stdout.pause();
const before = seen.bytes;
for (let id = 2; id < LISTS; id++) send({ id, method: "tools/list", params: {} });
await new Promise((resolve) => setTimeout(resolve, 1_000));
seen.pausedAt = seen.bytes - before;
pml.stdout.resume();
await waitForLines(LISTS);
const ended = new Promise((resolve) => pml.on("exit", resolve));
pml.stdin.end();
seen.code = await ended;
console.log(JSON.stringify(seen));
