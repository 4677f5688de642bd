/**
 * The files of the page in the PML home: the socket at which a running page makes new links, and the
 * file that opens one in a browser.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import type { Server } from "node:net";
import { join } from "node:path";
import { objectOf, textOf } from "../core/json.ts";
import { removeIfPossible } from "../io/cache_files.ts";
import { namesIn, privateFolder, writeWhole } from "../io/private_files.ts";
import { connectToSocket, LineExchange } from "../transport/attach/private_socket.ts";
import { keyOf, listenAt } from "../transport/attach/window_socket.ts";
import { LINK_MS } from "./sign_in.ts";

const OPENER = /^open-[0-9a-f]{32}\.html$/;

/** A link of a running page. */
export interface PageLink {
  readonly url: string;
  /** The file that opens the link in a browser, if one was requested. */
  readonly file?: string;
}

/** Creates a link. With `hasFile`, also writes a file that opens the link. */
export type LinkMaker = (hasFile: boolean) => Promise<PageLink>;

/** Requests a new link from the running page of a PML home. Returns undefined if no page runs. */
export async function requestLink(home: string, hasFile: boolean): Promise<PageLink | undefined> {
  const key = keyOf(socketIn(home));
  const socket = await connectToSocket(socketIn(home));
  if (socket === undefined) return undefined;
  const exchange = new LineExchange(socket);
  exchange.send({ link: true, file: hasFile, key: key ?? "" });
  const { url, file } = objectOf(await exchange.next());
  socket.destroy();
  if (textOf(url) === "") return undefined;
  return { url: textOf(url), ...textOf(file) !== "" && { file: textOf(file) } };
}

/**
 * Creates links for other processes of this user until the server is closed. Returns undefined if
 * another page runs in this home, or the system does not support such a socket.
 */
export async function serveLinks(home: string, createLink: LinkMaker): Promise<Server | undefined> {
  return await listenAt(socketIn(home), (socket, isKey) => {
    socket.on("error", () => {}); // the end event follows
    const exchange = new LineExchange(socket);
    const answer = async () => {
      const { link, file, key } = objectOf(await exchange.next());
      // A program in a sandbox may reach this socket, but cannot read the key in the PML home.
      // guard: page-link-key
      if (!isKey(key)) return exchange.send({});
      exchange.send(link === true ? await createLink(file === true) : {});
    };
    // The other side may never close its end.
    answer().catch(() => {}).finally(() => socket.end(() => void socket.destroy()));
  });
}

/**
 * Writes a file that opens a link in a browser. The link itself is not an argument of the browser,
 * because other users can see the arguments of programs. The file is removed when the link has expired.
 */
export async function writeOpener(home: string, url: string): Promise<string> {
  const path = join(folderIn(home), `open-${randomBytes(16).toString("hex")}.html`);
  const html = '<!doctype html>\n<meta charset="utf-8">\n<title>PML</title>\n' +
    '<meta name="referrer" content="no-referrer">\n' +
    `<meta http-equiv="refresh" content="0; url=${url}">\n<a href="${url}">Open PML</a>\n`;
  privateFolder(folderIn(home));
  // guard: page-opener
  await writeWhole(path, { bytes: new TextEncoder().encode(html), mode: 0o600 });
  // If the page ends earlier, it removes the file, too.
  Deno.unrefTimer(setTimeout(() => removeIfPossible(path), LINK_MS));
  return path;
}

/** Removes the files of links, also those of a page that was killed. */
export async function removeOpeners(home: string): Promise<void> {
  for (const name of await namesIn(folderIn(home))) {
    if (OPENER.test(name)) removeIfPossible(join(folderIn(home), name));
  }
}

function folderIn(home: string): string {
  return join(home, "page");
}

function socketIn(home: string): string {
  return join(folderIn(home), "socket");
}
