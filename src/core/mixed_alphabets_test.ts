import assert from "node:assert/strict";
import { mixedIn } from "./mixed_alphabets.ts";

const MARKED: Readonly<Record<string, RegExp>> = {
  "https://g\u0456thub.com/x": /"g\u0456thub" mixes Latin and Cyrillic letters.*xn--/,
  "\u0430\u0440\u0440\u04cf\u0435.com https://\u0430\u0440\u0440\u04cf\u0435.com":
    /the host .* is "xn--/,
  "/etc/p\u0430sswd": /"p\u0430sswd" mixes/,
  "src\\\u0391dmin.ts": /mixes Latin and Greek/,
  "s\u0443do rm -rf x": /"s\u0443do" mixes/,
  "\uff52\uff4d -rf": /unusual form/,
  "https://\u{1d41e}vil.example": /unusual form.*"evil\.example"/,
  "https://github.com\u2215login.evil.example": /unusual form/,
  "C:\uff3cWindows": /unusual form/,
};
const USUAL = [
  "https://github.com/a_b-c",
  "\u043e\u0442\u0447\u0451\u0442.pdf",
  "SQL-\u0437\u0430\u043f\u0440\u043e\u0441 \u0432 Wi-Fi \u0441\u0435\u0442\u044c",
  "\u65e5\u672c\u8a9e\u306efile.txt",
  "caf\u00e9/na\u00efve.txt",
  "\u2103 \u2116 5 \u2460 first",
  "\u8bf7\u7528\u547d\u4ee4\uff1arun\uff0c\u7136\u540e",
  "100 \u00b5s \u2026 \u2014 \u201cquoted\u201d",
];

Deno.test("mixedIn() marks hosts, paths and commands that could be taken for others (GX18)", () => {
  for (const [text, remark] of Object.entries(MARKED)) {
    assert.match(mixedIn(text).join(", "), remark, JSON.stringify(text));
  }
});

Deno.test("mixedIn() marks no ordinary text (GX18)", () => {
  for (const text of USUAL) assert.deepEqual(mixedIn(text), [], text);
});

Deno.test("mixedIn() remarks are few, however many parts a text has (GX18)", () => {
  assert.equal(mixedIn("p\u0430th ".repeat(10)).length, 1);
  const many = Array.from({ length: 50_000 }, (_, at) => `a\u0430${"b".repeat(at % 50)}`);
  assert.equal(mixedIn(many.join(" ")).length, 6);
});
