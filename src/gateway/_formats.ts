/**
 * Tells whether a text has a format that JSON Schema names, in time linear to its length.
 *
 * @module
 */

import { isPattern } from "./_patterns.ts";

type Is = (text: string) => boolean;

const matches = (pattern: RegExp): Is => (text) => pattern.test(text);

/** What may stand in an address without being written as `%41`. */
const PLAIN = "[\\w.~!$&'()*+,;=-]|%[0-9a-f]{2}";
/** `//user@host:port`, a path, a query and a fragment. */
const AFTER_SCHEME =
  `(?://(?:(?:${PLAIN}|:)*@)?(?:\\[(?=[^\\]]*:)[0-9a-f.:]{2,45}\\]|(?:${PLAIN})*)(?::\\d*)?` +
  `(?=[/?#]|$))?(?:${PLAIN}|[:@/])*(?:\\?(?:${PLAIN}|[:@/?])*)?(?:#(?:${PLAIN}|[:@/?])*)?$`;
const POINTER = "(?:/(?:[^~/]|~[01])*)*";
const VARIABLE = "(?:\\w|%[0-9a-f]{2})+(?::[1-9]\\d{0,3}|\\*)?";

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

const isDuration: Is = (text) =>
  text.length < 80 &&
  /^P(?!$)(?:\d+(?:[.,]\d+)?W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/
    .test(text.replace(/(\d)[.,]\d+(?=[YMDHS]$)/, "$1"));

/** The formats that are known; any other name says nothing of a text. */
export const FORMATS: Readonly<Record<string, Is>> = {
  "date": isDate,
  "time": isTime,
  "date-time": (text) => {
    const [date = "", time = "", more] = text.split(/t|\s/i, 3);
    return more === undefined && isDate(date) && isTime(time) && /z|[+-]/i.test(time);
  },
  "duration": isDuration,
  "email": isEmail,
  "hostname": isHostname,
  "ipv4": matches(/^(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?:\.(?!$)|$)){4}$/),
  "ipv6": (text) => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]/`),
  "json-pointer": matches(new RegExp(`^${POINTER}$`, "u")),
  "json-pointer-uri-fragment": matches(/^#(?:\/(?:[\w\-.!$&'()*+,;:=@]|%[0-9a-f]{2}|~[01])*)*$/i),
  // A long one takes long to read.
  "regex": (text) => text.length <= 10_000 && isPattern(text) && !/[^\\]\\Z/.test(text),
  "relative-json-pointer": matches(new RegExp(`^(?:0|[1-9]\\d*)(?:#|${POINTER})$`, "u")),
  "uri": matches(new RegExp(`^[a-z][a-z0-9+.-]*:(?=.)${AFTER_SCHEME}`, "i")),
  "uri-reference": matches(new RegExp(`^(?:[a-z][a-z0-9+.-]*:)?${AFTER_SCHEME}`, "i")),
  "uri-template": matches(
    new RegExp(
      "^(?:[^\\x00-\\x20\"'<>%\\\\^`{|}]|%[0-9a-f]{2}|" +
        `\\{[+#./;?&=,!@|]?${VARIABLE}(?:,${VARIABLE})*\\})*$`,
      "i",
    ),
  ),
  "url": (text) => /^(?:https?|ftp):\/\/[^\s/]+\S*$/i.test(text) && URL.canParse(text),
  "uuid": matches(/^(?:urn:uuid:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i),
};
