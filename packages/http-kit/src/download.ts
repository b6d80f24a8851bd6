import type { IncomingMessage } from 'node:http'
import process from 'node:process'

import { lookupBy } from './addresses/checked-lookup.ts'
import type { ResolveHost } from './names/name-resolver.ts'

export interface DownloadOptions {
  /** The value of the header Accept. */
  readonly accept: string
  /** The largest document, in bytes. */
  readonly maxBytes: number
  /** Ends the download; the promise rejects with its reason. */
  readonly signal: AbortSignal
  readonly resolve: ResolveHost
}

/**
 * Reads a document that the operator configured: with status 200, not compressed, and without redirects.
 * @throws Error for another answer, or without one
 */
export async function download(url: URL, options: DownloadOptions): Promise<string> {
  const { maxBytes, signal } = options
  try {
    const response = await answerOf(url, options)
    const { statusCode = 0, headers } = response
    try {
      if (statusCode !== 200) throw new Error(`the server answered with status ${statusCode}`)
      const { 'content-encoding': encoding = 'identity' } = headers
      if (encoding !== 'identity') throw new Error(`the server answered with the encoding ${encoding}; use none`)
      return await textOf(response, maxBytes)
    } finally {
      response.destroy()
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

function answerOf(url: URL, { accept, signal, resolve }: DownloadOptions): Promise<IncomingMessage> {
  // An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
  const { request } =
    url.protocol === 'https:' ? process.getBuiltinModule('node:https') : process.getBuiltinModule('node:http')
  return new Promise((answered, failed) => {
    const headers = { accept, 'accept-encoding': 'identity', connection: 'close', 'user-agent': 'signalbox' }
    request(url, { headers, signal, lookup: lookupBy(resolve) }, answered)
      .on('error', failed)
      .end()
  })
}

async function textOf(response: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.byteLength
    if (size > maxBytes) throw new Error(`the server answered with more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
