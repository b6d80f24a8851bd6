/** The media types that a client can read, by its Accept header. A POST request needs no Accept header. */
export interface AcceptedMediaTypes {
  /** `true` unless the client names event streams and no media type that JSON matches. */
  readonly json: boolean
  /** `true` if the client names `text/event-stream`. */
  readonly events: boolean
}

const JSON_ONLY: AcceptedMediaTypes = { json: true, events: false }
const BOTH: AcceptedMediaTypes = { json: true, events: true }

/** A cache of parsed headers: clients send few different ones, and the same with every request. */
const known = new Map<string, AcceptedMediaTypes>()
const MAX_KNOWN = 64

export function acceptedBy(header: string | undefined): AcceptedMediaTypes {
  if (header === undefined) return JSON_ONLY
  const before = known.get(header)
  if (before !== undefined) return before
  const accepted = readAccept(header)
  if (known.size < MAX_KNOWN && header.length < 256) known.set(header, accepted)
  return accepted
}

function readAccept(header: string): AcceptedMediaTypes {
  let json = false
  let events = false
  for (const part of header.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    if (parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))) continue
    if (range === 'text/event-stream') events = true
    else if (range === 'application/json' || range === 'application/*' || range === '*/*') json = true
  }
  if (events) return json ? BOTH : { json: false, events: true }
  return JSON_ONLY
}
