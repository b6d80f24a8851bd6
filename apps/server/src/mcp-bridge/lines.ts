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
