/**
 * Notifications name a call without its arguments, and no text of a server is part of a script.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { ToolId } from "../core/tool_id.ts";
import type { Subject } from "../policy/subject.ts";
import { noticeOf, notifyingProgram } from "./notifications.ts";

const HOSTILE = [
  `a"; do shell script "touch /tmp/x" --`,
  "$(touch /tmp/x)`id`",
  "'; Start-Process calc; '",
  "--help\n-e\0\u202eevil\u001b[2J",
  "<b>bold</b><script>x</script>&amp;",
  "x".repeat(10_000),
];

function noticeFor(tool: string, workspace = "/home/a/ws") {
  const subject = { tool: tool as ToolId, workspace, arguments: { secret: "s3cret" } };
  return noticeOf({ subjects: [subject as unknown as Subject] });
}

Deno.test("a notification names server, tool, workspace and command, and no argument", () => {
  const { title, text } = noticeFor("files:write_file");
  assert.ok(title.includes("files:write_file"));
  assert.ok(text.includes("/home/a/ws"));
  assert.ok(text.includes("pml approve"));
  assert.ok(!(title + text).includes("s3cret"));
});

Deno.test("a notification about many calls names three, and is short", () => {
  const subjects = Array.from({ length: 500 }, (_, at) => ({ tool: `s:t${at}`, workspace: "/w" }));
  const { title } = noticeOf({ subjects: subjects as unknown as readonly Subject[] });
  assert.ok(title.includes("s:t0, s:t1, s:t2"));
  assert.ok(title.includes("497"));
  assert.ok(title.length < 400);
});

Deno.test("a notification has no control character and no tag, even if a name contains them", () => {
  for (const text of HOSTILE) {
    const notice = noticeFor(`s:${text}`, `/w/${text}`);
    assert.doesNotMatch(notice.title + notice.text, /[\p{Cc}\p{Cf}]/u);
    assert.ok((notice.title + notice.text).length < 600);
    const { args = [] } = notifyingProgram(notice, "unix:path=/x", "linux") ?? {};
    assert.deepEqual([args[0], args.length], ["--", 3]);
    assert.doesNotMatch(args[2] ?? "", /[<>]/);
  }
});

Deno.test("no text is part of a script: on macOS it is an argument, on Windows a variable", () => {
  const scripts = new Set<string>();
  for (const text of HOSTILE) {
    const notice = noticeFor(`s:${text}`);
    const mac = notifyingProgram(notice, undefined, "darwin");
    assert.deepEqual(mac?.args.slice(-2), [notice.title, notice.text]);
    scripts.add(JSON.stringify(mac?.args.slice(0, -2)));
    const windows = notifyingProgram(notice, undefined, "windows");
    scripts.add(JSON.stringify(windows?.args));
    assert.deepEqual(Object.values(windows?.env ?? {}), [notice.title, notice.text]);
  }
  assert.equal(scripts.size, 2);
  const encoded = notifyingProgram(noticeFor("s:t"), undefined, "windows")?.args.at(-1) ?? "";
  assert.ok(Buffer.from(encoded, "base64").toString("utf16le").includes("$env:PML_NOTICE_TITLE"));
});

Deno.test("Linux without a session bus has no notification", () => {
  assert.equal(notifyingProgram(noticeFor("s:t"), undefined, "linux"), undefined);
});
