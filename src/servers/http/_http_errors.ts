/**
 * Creates the errors for HTTP responses that are not MCP responses.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted, visible, visibleLines } from "../../core/json.ts";
import { tooLargeError } from "../../core/json_bounds.ts";
import { variableNameFrom } from "../../core/secret_words.ts";
import { protocolError as noMcp } from "../client/wire.ts";
import { TooLong } from "../../io/event_stream.ts";

/** The facts about a server that errors contain. */
export interface HttpServerFacts {
  readonly name: string;
  readonly url: string;
  /** The address to which requests are sent; by default `url`, which messages show. */
  readonly requestUrl?: string | undefined;
  /** The headers as they were written, with the names of variables instead of their values. */
  readonly written: Readonly<Record<string, string>>;
}

/** The maximum length of the answer's text in an error, in characters. */
const TEXT_MAX = 500;
/** The hint for a request that the server may have run. */
const CHECK_EFFECTS = "It may have run. Check its effects before you repeat the request";

/** Returns the error for an answer that is not MCP. */
export function invalidAnswerError({ name }: HttpServerFacts, why: string): PmlError {
  return noMcp(name, why, { may_have_run: true, status: 200 });
}

/** Returns the error for a request without an answer. By default, the server may have run it. */
export function unreachedError(
  { name }: HttpServerFacts,
  why: string,
  { mayHaveRun } = { mayHaveRun: true },
): PmlError {
  return new PmlError("UPSTREAM_DOWN", `Cannot reach ${quoted(name)}: ${why}`, {
    hint: mayHaveRun ? CHECK_EFFECTS : "Nothing was sent; try again",
    detail: { may_have_run: mayHaveRun },
  });
}

/** Returns the error for a request that failed while PML sent it or read its answer. */
export function requestError(server: HttpServerFacts, error: unknown): PmlError {
  const name = quoted(server.name);
  if (error instanceof TooLong) {
    const { message: why } = error;
    return error.of === "message"
      ? invalidAnswerError(server, why)
      : tooLargeError(`what ${name} answered`, { why });
  }
  if (!(error instanceof PmlError)) return unreachedError(server, "the connection broke");
  const { code, message, hint = "", detail = {} } = error;
  if (message.includes(name)) return error;
  // The message names the host, but not the server.
  const why = message.replace(/^C/, "c");
  return new PmlError(code, `Cannot use ${name}: ${why}`, { hint, detail, cause: error });
}

/** Returns when a refused request may be repeated: `Retry-After` of RFC 9110 section 10.2.3. */
function retryTime(headers: Headers): string {
  const value = headers.get("retry-after") ?? "";
  // The header comes from the server, so only a number of seconds or a date may enter the text.
  if (/^\d{1,7}$/.test(value)) return `in ${value} s`;
  const time = Date.parse(value);
  return Number.isNaN(time) ? "later" : `after ${new Date(time).toISOString()}`;
}

/** Returns the error for an answer with an error status or a redirect. */
export function statusError(
  server: HttpServerFacts,
  { status, text, headers, isSignedIn }: {
    readonly status: number;
    /** The text of the answer. */
    readonly text: string;
    readonly headers: Headers;
    /** Whether the request had the token of a sign-in. */
    readonly isSignedIn: boolean;
  },
): PmlError {
  const errorWith = (code: PmlError["code"], why: string, hint: string) =>
    new PmlError(code, `Cannot use ${quoted(server.name)}: ${why}`, {
      hint,
      detail: {
        status,
        // A server error (5xx) may follow a request that ran; a refusal (4xx) means that it did
        // not.
        may_have_run: status >= 500,
        ...(text !== "" && { answered: visibleLines(text, TEXT_MAX) }),
      },
    });
  const statusText = `it answered with the status ${status}`;
  if (status === 401 || status === 403) {
    const hint = isSignedIn
      ? `Your account may not do this; sign in with another: pml login ${server.name}`
      : loginHint(server);
    return errorWith("LOGIN_REQUIRED", statusText, hint);
  }
  if (status === 429) {
    return errorWith("UPSTREAM_DOWN", statusText, `Try again ${retryTime(headers)}`);
  }
  if (status >= 500) return errorWith("UPSTREAM_DOWN", statusText, CHECK_EFFECTS);
  if (status < 400) {
    const location = headers.get("location");
    const to = location === null ? undefined : URL.parse(location, server.url)?.origin;
    const where = to === undefined ? "" : ` to ${visible(to)}`;
    const hint = "Nothing was sent there. If you trust that address, configure it";
    return errorWith(
      "UPSTREAM_PROTOCOL",
      `it redirects${where}, and PML follows no redirect`,
      hint,
    );
  }
  return errorWith(
    "UPSTREAM_PROTOCOL",
    statusText,
    "Check whether its address is that of an MCP server over HTTP",
  );
}

function loginHint({ name, written }: HttpServerFacts): string {
  const headers = Object.entries(written).filter(([, value]) => value.includes("${"));
  if (headers.length === 0) {
    const value = `Bearer \${${variableNameFrom(`${name}_TOKEN`)}}`;
    return `Give it a key: \`pml add ${name} --replace --header '${value}'\``;
  }
  const names = headers.map(([header, value]) => `${header} (${namesIn(value)})`).join(", ");
  return `It rejects the headers that it is sent: check ${names}`;
}

/** Returns the error for a header that cannot be sent. The message never contains the value. */
export function headerError({ name, written }: HttpServerFacts, header: string): PmlError {
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
