import { Buffer } from 'node:buffer'

/** The longest line, in bytes: more than the body of any request that a server accepts by default. */
const MAX_LINE_BYTES = 64 * 1024 * 1024

const NEWLINE = 0x0a

/**
 * Yields the lines of a stream of UTF-8, without line ends and without empty lines.
 * @throws RangeError for a line over 64 MiB
 */
export async function* linesOf(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  let parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    let rest: Uint8Array = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...parts, rest.subarray(0, end)])
        .toString('utf8')
        .trim()
      parts = []
      bytes = 0
      rest = rest.subarray(end + 1)
      if (line !== '') yield line
    }
    parts.push(rest)
    bytes += rest.length
    if (bytes > MAX_LINE_BYTES) throw new RangeError(`a message is larger than ${MAX_LINE_BYTES} bytes`)
  }
  const last = Buffer.concat(parts).toString('utf8').trim()
  if (last !== '') yield last
}

/** A JSON-RPC message of the host. */
export interface HostMessage {
  /** The message as JSON. */
  readonly text: string
  readonly method: string | undefined
  /** The id of a request. `undefined` for other messages. */
  readonly id: string | number | undefined
  readonly params: Readonly<Record<string, unknown>> | undefined
  /** The revision that the message names in `_meta`, from 2026-07-28 on; `undefined` for an older revision. */
  readonly revision: string | undefined
}

const REVISION = 'io.modelcontextprotocol/protocolVersion'

/** Returns the message in a line; `undefined` if the line is not JSON. */
export function readHostMessage(text: string): HostMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const { method, id, params } = isObject(value) ? value : {}
  const isRequest = typeof method === 'string' && (typeof id === 'string' || typeof id === 'number')
  const meta = isObject(params) ? params['_meta'] : undefined
  const revision = isObject(meta) ? meta[REVISION] : undefined
  return {
    text,
    method: typeof method === 'string' ? method : undefined,
    id: isRequest ? id : undefined,
    params: isObject(params) ? params : undefined,
    revision: typeof revision === 'string' ? revision : undefined,
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
