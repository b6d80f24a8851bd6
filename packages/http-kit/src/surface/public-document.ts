import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'

import { refuseBody } from './body.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'

/** A public JSON document, as text. */
export interface PublicDocument {
  readonly text: string
  readonly etag: string
  /** @default 'application/json' */
  readonly mediaType?: string
}

/** Returns a strong ETag for a document with this content. */
export function etagOf(content: string): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`
}

/**
 * Answers GET and HEAD with the document, or with 304 if the client has it; other methods with 405.
 * @param about Headers that describe the document, also in a 304
 */
export function answerDocument(
  request: HttpRequest,
  response: HttpResponse,
  moreHeaders: OutgoingHttpHeaders | undefined,
  { text, etag, mediaType = 'application/json' }: PublicDocument,
  about: OutgoingHttpHeaders,
): void {
  const headers = { ...moreHeaders, ...about, ETag: etag }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    refuseBody(request, response, 405, { ...moreHeaders, Allow: 'GET, HEAD' }, '')
  } else if (isKnown(request.headers['if-none-match'], etag)) {
    response.writeHead(304, headers)
    response.end()
  } else {
    response.writeHead(200, {
      ...headers,
      'Content-Type': mediaType,
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(request.method === 'HEAD' ? undefined : text)
  }
}

/** Returns the headers for a document that web pages of every origin may read. Replaces those of the host's CORS settings. */
export function forEveryOrigin(headers: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  const others = Object.entries(headers).filter(
    ([name]) => !/^access-control-allow-(?:origin|credentials)$/i.test(name),
  )
  return { ...Object.fromEntries(others), 'Access-Control-Allow-Origin': '*' }
}

/** Returns the headers with one more name in `Vary`, which a hook of the host may have set. */
export function withVary(headers: OutgoingHttpHeaders | undefined, name: string): OutgoingHttpHeaders {
  const others: OutgoingHttpHeaders = {}
  const vary: string[] = []
  for (const [key, value] of Object.entries(headers ?? {})) {
    if (key.toLowerCase() === 'vary') vary.push(...[value ?? ''].flat().map(String))
    else others[key] = value
  }
  return { ...others, Vary: [...vary, name].filter((one) => one !== '').join(', ') }
}

/**
 * Returns true if If-None-Match names this document. Weak and strong tags compare alike (RFC 9110,
 * section 13.1.2).
 */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((tag) => {
    const trimmed = tag.trim()
    return trimmed === '*' || trimmed === etag || trimmed === `W/${etag}`
  })
}
