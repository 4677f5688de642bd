/**
 * Tells whether a text has a format that JSON Schema names, in time linear to its length.
 *
 * @module
 */

import { isPattern } from "./_patterns.ts";

type Is = (text: string) => boolean;

const matches = (pattern: RegExp): Is => (text) => pattern.test(text);

const isDate: Is = (text) =>
  /^\d{4}-\d\d-\d\d$/.test(text) && new Date(text).toJSON()?.startsWith(text) === true;

const isTime = matches(
  /^(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d|23:59:60)(?:\.\d+)?(?:z|[+-]\d\d(?::?\d\d)?)?$/i,
);

const LABEL = "[a-z\\d](?:[a-z\\d-]{0,61}[a-z\\d])?";
const isHostname = matches(new RegExp(`^(?=.{1,253}\\.?$)${LABEL}(?:\\.${LABEL})*\\.?$`, "i"));

const isEmail: Is = (text) => {
  const [name = "", host = "", more] = text.split("@", 3);
  return more === undefined && name.length <= 64 && host.length <= 253 && isHostname(host) &&
    !host.endsWith(".") && /^[\w.!#$%&'*+/=?^`{|}~-]+$/.test(name) && !/^\.|\.\.|\.$/.test(name);
};

/**
 * The formats that are known; any other name says nothing of a text. These are the ones that makers
 * of schemas write; the rest is left to the server, as JSON Schema leaves all of them.
 */
export const FORMATS: Readonly<Record<string, Is>> = {
  "date": isDate,
  "time": isTime,
  "date-time": (text) => {
    const [date = "", time = "", more] = text.split(/t|\s/i, 3);
    return more === undefined && isDate(date) && isTime(time) && /z|[+-]/i.test(time);
  },
  "duration": matches(
    /^P(?=\w)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:[\d.,]+S)?)?)$/,
  ),
  "email": isEmail,
  "hostname": isHostname,
  "ipv4": matches(/^(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?:\.(?!$)|$)){4}$/),
  "ipv6": (text) => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]/`),
  // A long one takes long to read.
  "regex": (text) => text.length <= 10_000 && isPattern(text),
  "uri": matches(/^[a-z][a-z\d+.-]*:[!-~]+$/i),
  "uri-reference": matches(/^[!-~]*$/),
  "url": (text) => /^(?:https?|ftp):\/\/[^\s/]+\S*$/i.test(text) && URL.canParse(text),
  "uuid": matches(/^(?:urn:uuid:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i),
};
