/**
 * Creates the errors for HTTP responses that are not MCP responses.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted, visible, visibleLines } from "../../core/json.ts";
import { tooLargeError } from "../../core/json_bounds.ts";
import { protocolError as noMcp } from "../client/wire.ts";
import { TooLong } from "../../io/event_stream.ts";

/** The facts about a server that errors contain. */
export interface Named {
  readonly name: string;
  readonly url: string;
  /** Its headers as they were written, with the names of variables instead of their values. */
  readonly written: Readonly<Record<string, string>>;
}

const TEXT_MAX = 500;

/** Returns the error for an answer that is not MCP. */
export function invalidAnswer({ name }: Named, why: string): PmlError {
  return noMcp(name, why, { may_have_run: true, status: 200 });
}

/** Returns the error of a request without an answer. By default the server may have run it. */
export function unreached(
  { name }: Named,
  why: string,
  { mayHaveRun } = { mayHaveRun: true },
): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(name)}: ${why}`, {
    hint: mayHaveRun
      ? "It may have run. Check its effects before you repeat the request"
      : "Nothing was sent; try again",
    detail: { may_have_run: mayHaveRun },
  });
}

/** Returns the error for a request that failed while it was sent, or while its answer came. */
export function requestError(server: Named, error: unknown): PmlError {
  const name = quoted(server.name);
  if (error instanceof TooLong) {
    const { message: why } = error;
    return error.of === "message"
      ? invalidAnswer(server, why)
      : tooLargeError(`what ${name} answered`, { why });
  }
  if (!(error instanceof PmlError)) return unreached(server, "the connection broke");
  const { code, message, hint = "", detail = {} } = error;
  if (message.includes(name)) return error;
  // It names only the host.
  const why = message.replace(/^C/, "c");
  return new PmlError(code, `Cannot use ${name}: ${why}`, { hint, detail, cause: error });
}

/** Returns the error for the status of an answer. */
export function statusError(
  server: Named,
  { status, text, location, isSignedIn }: {
    readonly status: number;
    /** The text of the answer. */
    readonly text: string;
    readonly location: string | null;
    /** Whether it was sent the token of a sign-in. */
    readonly isSignedIn: boolean;
  },
): PmlError {
  const say = (code: PmlError["code"], why: string, hint: string) =>
    new PmlError(code, `Cannot use ${quoted(server.name)}: ${why}`, {
      hint,
      detail: {
        status,
        // A server that fails has received the request. A server that refuses has not run it.
        may_have_run: status >= 500,
        ...(text !== "" && { answered: visibleLines(text, TEXT_MAX) }),
      },
    });
  const it = `it answered with the status ${status}`;
  if (status === 401 || status === 403) {
    const hint = isSignedIn
      ? `Your account may not do this; sign in with another: pml login ${server.name}`
      : loginHint(server);
    return say("LOGIN_REQUIRED", it, hint);
  }
  if (status === 429 || status >= 500) return say("UPSTREAM_DOWN", it, "Try again later");
  if (status < 400) {
    const to = location === null ? undefined : URL.parse(location, server.url)?.origin;
    const where = to === undefined ? "" : ` to ${visible(to)}`;
    const hint = "Nothing was sent there. If you trust that address, configure it";
    return say("UPSTREAM_PROTOCOL", `it redirects${where}, and PML follows no redirect`, hint);
  }
  return say(
    "UPSTREAM_PROTOCOL",
    it,
    "Check whether its address is that of an MCP server over HTTP",
  );
}

function loginHint({ written }: Named): string {
  const headers = Object.entries(written).filter(([, value]) => value.includes("${"));
  if (headers.length === 0) {
    return 'Give it a key: "headers": {"Authorization": "Bearer ${NAME}"} next to its url';
  }
  const all = headers.map(([header, value]) => `${header} (${namesIn(value)})`).join(", ");
  return `It rejects the headers that it is sent: check ${all}`;
}

/** Returns the error for a header that cannot be sent. Its value is in no message. */
export function headerError({ name, written }: Named, header: string): PmlError {
  const names = namesIn(written[header] ?? "");
  const hint = names === ""
    ? `Write "headers.${header}" in plain characters, on one line`
    : `Check ${names}: it has a line end, or a character that no header can hold`;
  const message = `Cannot reach ${quoted(name)}: its header ${quoted(header)} cannot be sent`;
  return new PmlError(names === "" ? "CONFIG_INVALID" : "KEY_MISSING", message, {
    hint,
    detail: { may_have_run: false },
  });
}

function namesIn(value: string): string {
  return [...value.matchAll(/\$\{(\w+)/g)].map(([, name]) => name).join(", ");
}
