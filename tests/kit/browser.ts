/**
 * Acts as the user's browser: opens the page of the authorization server, answers, and opens the
 * page that the server redirects to.
 *
 * @module
 */

/** The behaviour of the user. */
export interface BrowseOptions {
  /** The user's answer; `allow` by default. */
  readonly answer?: "allow" | "deny";
  /** Whether the redirect address is only returned, and not opened. */
  readonly stops?: boolean;
  /** Changes that address before it is opened. */
  readonly amend?: (address: URL) => void;
}

/** The result that the user sees. */
export interface BrowserPage {
  /** The redirect address, with code and state. */
  readonly address: string;
  /** The status of the response at that address; 0 if it was not opened. */
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Opens the address of a sign-in, answers, and follows all redirects. */
export async function browse(address: string, options: BrowseOptions = {}): Promise<BrowserPage> {
  const { origin } = new URL(address);
  const { answer = "allow", stops = false, amend } = options;
  const cookies = new Map<string, string>();
  let next = address;
  for (let hop = 0; hop < 10; hop++) {
    const cookie = [...cookies].map((one) => one.join("=")).join("; ");
    const headed = cookie === "" ? {} : { headers: { cookie } };
    const response = await fetch(next, { redirect: "manual", ...headed });
    for (const one of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=;]+)=([^;]*)/.exec(one) ?? [];
      cookies.set(name, value);
    }
    const text = await response.text();
    const location = response.headers.get("location");
    const link = new RegExp(`<a id="${answer}" href="([^"]*)"`).exec(text)?.[1];
    const to = location ?? link?.replaceAll("&amp;", "&");
    if (to === undefined) throw new Error(`${next} leads nowhere: ${response.status} ${text}`);
    const url = new URL(to, next);
    next = String(url);
    if (url.origin === origin) continue;
    amend?.(url);
    if (stops) return { address: String(url), status: 0, headers: new Headers(), text: "" };
    const back = await fetch(url, { redirect: "manual" });
    const { status, headers } = back;
    return { address: String(url), status, headers, text: await back.text() };
  }
  throw new Error(`${address} leads in a circle`);
}
