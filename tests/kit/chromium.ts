/**
 * Controls a headless Chromium over its DevTools protocol, and keeps the errors of a page.
 *
 * @module
 */

import { until, within } from "./wait.ts";

/** A member of a result of the protocol. */
// deno-lint-ignore no-explicit-any
type Said = any;
type Members = Readonly<Record<string, unknown>>;

/** A node of the accessibility tree, as a screen reader uses it. */
export interface AccessNode {
  readonly role: string;
  readonly name: string;
  /** Values such as `level` and `focusable`. */
  readonly properties: Readonly<Record<string, unknown>>;
}

/** The appearance of a page. */
export interface Looks {
  readonly width?: number;
  readonly scheme?: "light" | "dark";
}

/** A key of a keyboard. */
export type Key = "Enter" | "Tab" | "Space" | "ShiftTab" | "ArrowDown" | "SelectAll";

const KEYS: Readonly<Record<Key, Members>> = {
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
  ShiftTab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9, modifiers: 8 },
  ArrowDown: { key: "ArrowDown", code: "ArrowDown", windowsVirtualKeyCode: 40 },
  SelectAll: { key: "a", code: "KeyA", windowsVirtualKeyCode: 65, modifiers: 2 },
  Space: { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
};
const PROGRAMS = ["chromium", "chromium-browser", "google-chrome"];
// Only the loopback addresses resolve.
const FLAGS = [
  ...["--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--disable-gpu"],
  ...["--no-first-run", "--disable-background-networking", "--disable-component-update"],
  ...["--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio"],
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** A connection to the protocol. */
class Protocol {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<Said>>();
  readonly #listeners = new Set<(method: string, params: Said, session: string) => void>();
  #sent = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { id, result, error, method, params, sessionId = "" } = JSON.parse(data);
      if (id === undefined) {
        return this.#listeners.forEach((each) => each(method, params, sessionId));
      }
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(JSON.stringify(error)));
    };
  }

  listen(listener: (method: string, params: Said, session: string) => void): void {
    this.#listeners.add(listener);
  }

  async send(method: string, params: Members = {}, sessionId?: string): Promise<Said> {
    const id = ++this.#sent;
    const waiting = Promise.withResolvers<Said>();
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method, params, ...sessionId && { sessionId } }));
    return await within(waiting.promise, { what: () => method });
  }

  close(): void {
    this.#socket.close();
  }
}

/** One page of the browser. */
export class Page {
  /** Dialogs, errors of the console, violated policies, and requests to other origins. */
  readonly faults: string[] = [];
  /** The requested addresses. */
  readonly requested: string[] = [];
  readonly #protocol: Protocol;
  readonly #session: string;
  readonly #origin: string;
  #loads = 0;

  constructor(protocol: Protocol, session: string, { origin }: { readonly origin: string }) {
    this.#protocol = protocol;
    this.#session = session;
    this.#origin = origin;
    protocol.listen((method, params, from) => {
      if (from === session) this.#told(method, params);
    });
  }

  async send(method: string, params: Members = {}): Promise<Said> {
    return await this.#protocol.send(method, params, this.#session);
  }

  #told(method: string, params: Said): void {
    switch (method) {
      case "Page.loadEventFired":
        return void this.#loads++;
      case "Page.javascriptDialogOpening":
        this.faults.push(`dialog: ${params.message}`);
        return void this.send("Page.handleJavaScriptDialog", { accept: false });
      case "Runtime.exceptionThrown":
        return void this.faults.push(`exception: ${JSON.stringify(params.exceptionDetails)}`);
      case "Runtime.consoleAPICalled":
        return void this.faults.push(`console: ${params.type} ${JSON.stringify(params.args)}`);
      case "Log.entryAdded":
        return void this.faults.push(`log: ${params.entry.level} ${params.entry.text}`);
      case "Audits.issueAdded":
        return void this.faults.push(`issue: ${params.issue.code} ${JSON.stringify(params.issue)}`);
      case "Network.requestWillBeSent": {
        const { url } = params.request;
        this.requested.push(url);
        const isInside = url.startsWith("data:") || url.startsWith(`${this.#origin}/`);
        if (!isInside) this.faults.push(`request: ${url}`);
      }
    }
  }

  /** Does an action that leads to another page, and waits for that page. */
  async loading(act: () => Promise<unknown>): Promise<void> {
    const before = this.#loads;
    await act();
    await until(() => this.#loads > before);
  }

  /** Opens a path. */
  async go(path: string): Promise<void> {
    await this.loading(() => this.send("Page.navigate", { url: `${this.#origin}${path}` }));
  }

  /** Returns the value of an expression, which the policy of the page does not restrict. */
  async value(expression: string): Promise<Said> {
    const said = await this.send("Runtime.evaluate", { expression, returnByValue: true });
    if (said.exceptionDetails !== undefined) throw new Error(JSON.stringify(said.exceptionDetails));
    return said.result.value;
  }

  /** Waits until an expression is true. */
  async until(expression: string): Promise<void> {
    await until(async () => Boolean(await this.value(expression)));
  }

  /** Moves the mouse to the middle of an element. Throws if another element covers it. */
  async hover(element: string): Promise<{ readonly x: number; readonly y: number }> {
    const place = await this.value(`(() => {
      const element = ${element};
      element.scrollIntoView({ block: "center" });
      const { left, top, width, height } = element.getBoundingClientRect();
      const [x, y] = [left + width / 2, top + height / 2];
      const hit = document.elementFromPoint(x, y);
      return { x, y, isHit: hit === element || element.contains(hit) };
    })()`);
    if (!place.isHit) throw new Error(`${element} is covered or out of view`);
    await this.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: place.x, y: place.y });
    return place;
  }

  /** Clicks on an element, as a user does with a mouse. */
  async click(element: string): Promise<void> {
    const { x, y } = await this.hover(element);
    const button = { x, y, button: "left", clickCount: 1 };
    await this.send("Input.dispatchMouseEvent", { type: "mousePressed", ...button });
    await this.send("Input.dispatchMouseEvent", { type: "mouseReleased", ...button });
  }

  /** Replaces the text in a field. */
  async fill(element: string, text: string): Promise<void> {
    await this.value(`${element}.focus()`);
    await this.press("SelectAll");
    await this.type(text);
  }

  /** Types a text into the focused element. */
  async type(text: string): Promise<void> {
    await this.send("Input.insertText", { text });
  }

  async press(key: Key): Promise<void> {
    const { text, ...rest } = KEYS[key];
    const down = text === undefined ? { type: "rawKeyDown" } : { type: "keyDown", text };
    await this.send("Input.dispatchKeyEvent", { ...down, ...rest });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...rest });
  }

  /** Shows the page in another width or in other colours. */
  async look({ width = 1280, scheme = "light" }: Looks): Promise<void> {
    const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 };
    await this.send("Emulation.setDeviceMetricsOverride", metrics);
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  /** Returns the accessibility tree of the page. */
  async accessibility(): Promise<readonly AccessNode[]> {
    const { nodes } = await this.send("Accessibility.getFullAXTree");
    return nodes.filter((node: Said) => !node.ignored).map((node: Said) => ({
      role: node.role?.value ?? "",
      name: node.name?.value ?? "",
      properties: Object.fromEntries(
        (node.properties ?? []).map((one: Said) => [one.name, one.value.value]),
      ),
    }));
  }

  /** Returns a picture (PNG) of the page, down to a maximum height. */
  async picture(most = 4_000): Promise<Uint8Array> {
    const { cssContentSize: { width, height } } = await this.send("Page.getLayoutMetrics");
    const clip = { x: 0, y: 0, width, height: Math.min(height, most), scale: 1 };
    const { data } = await this.send("Page.captureScreenshot", {
      captureBeyondViewport: true,
      clip,
    });
    return Uint8Array.fromBase64(data);
  }
}

/** A running browser. */
export interface Chromium extends AsyncDisposable {
  /** Opens a page that may send requests to one origin only. */
  readonly page: (origin: string) => Promise<Page>;
}

/** Starts a browser with a new profile. Throws if this machine has no browser. */
export async function openChromium(): Promise<Chromium> {
  const profile = await Deno.makeTempDir({ prefix: "chromium-" });
  const child = spawned(profile);
  const protocol = new Protocol(await connected(child));
  const page = async (origin: string) => {
    const { targetId } = await protocol.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await protocol.send("Target.attachToTarget", { targetId, flatten: true });
    const made = new Page(protocol, sessionId, { origin });
    for (const domain of ["Page", "Runtime", "Log", "Network", "Audits", "Accessibility"]) {
      await made.send(`${domain}.enable`);
    }
    await made.look({});
    return made;
  };
  const close = async () => {
    await protocol.send("Browser.close").catch(() => child.kill("SIGKILL"));
    await within(child.status, { what: () => "Chromium does not end" });
    protocol.close();
    // Its remaining processes write for a moment longer.
    await until(() => Deno.remove(profile, { recursive: true }).then(() => true, () => false));
  };
  return { page, [Symbol.asyncDispose]: close };
}

function spawned(profile: string): Deno.ChildProcess {
  const env = { PATH: Deno.env.get("PATH") ?? "", HOME: profile, LANG: "C.UTF-8" };
  for (const program of PROGRAMS) {
    try {
      return new Deno.Command(program, {
        args: [...FLAGS, `--user-data-dir=${profile}`, "about:blank"],
        ...{ env, clearEnv: true, stdin: "null", stdout: "null", stderr: "piped" },
      }).spawn();
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  throw new Error("Chromium is not on PATH: run `apt-get install chromium`");
}

/**
 * Connects to the address that the browser prints; its other output is read so that it never
 * blocks.
 */
async function connected(child: Deno.ChildProcess): Promise<WebSocket> {
  const address = Promise.withResolvers<string>();
  let text = "";
  child.stderr.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write: (part) => {
        text = (text + part).slice(-20_000);
        const [url] = /ws:\/\/127\.0\.0\.1:\S+/.exec(text) ?? [];
        if (url !== undefined) address.resolve(url);
      },
    }),
  ).catch(() => {}); // it has ended
  const url = await within(address.promise, {
    what: () => `no address in the output of Chromium: ${text}`,
  });
  const socket = new WebSocket(url);
  const open = Promise.withResolvers<void>();
  socket.onopen = () => open.resolve();
  socket.onerror = () => open.reject(new Error("Chromium takes no connection"));
  await within(open.promise, { what: () => "Chromium" });
  return socket;
}
