/**
 * Finds what a module's text names and the sandbox denies when it runs.
 *
 * @module
 */

import { lineAt } from "./_imports.ts";

/** Something that will be denied, where it is first named, and what to use. */
export interface DeniedName {
  readonly name: string;
  readonly line: number;
  readonly instead: string;
}

/** What is denied, and what there is instead. */
const DENIED: readonly (readonly [instead: string, pattern: string])[] = [
  [
    "Use host.exec, which needs a run grant",
    String.raw`Deno\.(?:Command|Process|run|spawn(?:AndWait(?:Sync)?)?|kill)`,
  ],
  ["Use host.env, which needs an env grant", String.raw`(?:Deno|process)\.env`],
  [
    "Use host.fetch, which needs a net grant",
    // A method or a tool may bear the name: only what is surely a call is one.
    String.raw`fetch(?=\s*\()(?<=(?:\bawait|\breturn|=|=>|[([:?])\s*fetch)|` +
    String.raw`(?:WebSocket(?:Stream)?|EventSource|WebTransport)(?<=\bnew\s+\w+)|` +
    String.raw`Deno\.(?:connect(?:Tls|Quic)?|listen(?:Tls|Datagram)?|resolveDns|startTls|` +
    "serve(?:Http)?|createHttpClient|QuicEndpoint|upgradeWebTransport)",
  ],
  [
    "There is nothing instead: do without",
    String
      .raw`Worker(?<=\bnew\s+\w+)|Deno\.(?:(?:sym)?link(?:Sync)?|dlopen|openKv|watchFs|chdir|umask|` +
    "Unsafe(?:Callback|FnPointer|Pointer(?:View)?)|chown(?:Sync)?|(?:add|remove)SignalListener)",
  ],
];
const CLOSED = DENIED.map(([, pattern]) => `(${pattern})`).join("|");
/**
 * Comments and texts, in which a name is only told. Each matches to the end of what it has begun, so
 * that no text is looked through twice.
 */
const TOLD = new RegExp(
  [
    String.raw`\/\*[\s\S]*?(?:\*\/|$)|\/\/.*`,
    ...['"', "'"].map((quote) => String.raw`${quote}(?:\\.|[^${quote}\\\n])*${quote}?`),
    "`(?:\\\\[\\s\\S]|[^`\\\\])*[`\\\\]?",
  ].join("|"),
  "g",
);

/** Finds each denied name once. It stays silent rather than tell of what only looks like one. */
export function findDenied(text: string): readonly DeniedName[] {
  const code = text.replace(TOLD, (told) => told.replace(/[^\n]/g, " "));
  const found = new Map<string, DeniedName | undefined>();
  for (const match of code.matchAll(new RegExp(String.raw`(?<![\w$.#])(?:${CLOSED})\b`, "g"))) {
    const [name, ...groups] = match;
    if (found.has(name)) continue;
    const instead = DENIED[groups.findIndex((group) => group !== undefined)]?.[0] ?? "";
    const line = lineAt(text, match.index);
    found.set(name, isOwn(code, name) ? undefined : { name, line, instead });
  }
  return [...found.values()].filter((one) => one !== undefined);
}

/** A module may have something of its own of that name. */
function isOwn(code: string, name: string): boolean {
  const declared = String.raw`\b(?:function\s*\*?|class|const|let|var)\s*${name}\b`;
  const bound = String.raw`[(,{]\s*${name}\s*[:,=)}]`;
  return !name.includes(".") && new RegExp(`${declared}|${bound}`).test(code);
}
