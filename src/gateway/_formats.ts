/**
 * Tells whether a text has a format that JSON Schema names, in time linear to its length.
 *
 * @module
 */

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

const isDate: Is = (text) => {
  const [, year = "", month = "", day = ""] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return day !== "" && date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCDate() === Number(day);
};

const isTime: Is = (text) => {
  const found = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|[+-]\d\d(?::?\d\d)?)?$/i.exec(text);
  const [hour = 24, minute = 60, second = 61] = found?.slice(1, 4).map(Number) ?? [];
  const isLeap = hour === 23 && minute === 59 && second === 60;
  return hour < 24 && minute < 60 && (second < 60 || isLeap);
};

const isHostname: Is = (text) =>
  text.length <= 254 && text.replace(/\.$/, "").length <= 253 &&
  text.replace(/\.$/, "").split(".").every(matches(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i));

const isEmail: Is = (text) => {
  const [name = "", host = "", more] = text.split("@", 3);
  return more === undefined && name.length <= 64 && host.length <= 253 && isHostname(host) &&
    !host.endsWith(".") && /^[\w.!#$%&'*+/=?^`{|}~-]+$/.test(name) && !/^\.|\.\.|\.$/.test(name);
};

const isDuration: Is = (text) =>
  text.length < 80 &&
  /^P(?!$)(?:\d+(?:[.,]\d+)?W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/
    .test(text.replace(/(\d)[.,]\d+(?=[YMDHS]$)/, "$1"));

// A long one takes long to read.
const isPattern: Is = (text) => {
  if (text.length > 10_000) return false;
  try {
    new RegExp(text, "u");
    return !/[^\\]\\Z/.test(text);
  } catch {
    return false;
  }
};

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
  "ipv4": (text) =>
    /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split(".").every((part) => Number(part) < 256),
  "ipv6": (text) => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]/`),
  "json-pointer": matches(new RegExp(`^${POINTER}$`, "u")),
  "json-pointer-uri-fragment": matches(/^#(?:\/(?:[\w\-.!$&'()*+,;:=@]|%[0-9a-f]{2}|~[01])*)*$/i),
  "regex": isPattern,
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
