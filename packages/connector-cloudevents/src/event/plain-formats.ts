/** Matches the usual spellings of the formats in CloudEvents. Other values may be valid too. */
const ABSOLUTE_PATH = /^\/(?:[\w.~-][\w.~/-]*)?$/
const ABSOLUTE_URI =
  /^[a-z][a-z0-9+.-]{0,31}:(?:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?(?:\/[\w.~:/-]*)?|[\w.~:-]+)$/
const TIMESTAMP =
  /^\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** The longest value that is checked here, in characters. */
const MAX_LENGTH = 512

/**
 * Returns `true` if all attributes with a format are valid by a simple check. The full check, which costs as much as
 * reading the rest of an event, is then not needed. `false` means unknown.
 */
export function hasPlainFormats(texts: ReadonlyMap<string, string>): boolean {
  const source = texts.get('source') ?? ''
  if (source.length > MAX_LENGTH || !(ABSOLUTE_PATH.test(source) || ABSOLUTE_URI.test(source))) return false
  if (texts.get('subject') === '' || texts.get('datacontenttype') === '') return false
  const time = texts.get('time')
  if (time !== undefined && !TIMESTAMP.test(time)) return false
  const dataschema = texts.get('dataschema')
  return dataschema === undefined || (dataschema.length <= MAX_LENGTH && ABSOLUTE_URI.test(dataschema))
}
