import type { OutgoingHttpHeaders } from 'node:http'

import { refuseBody } from '@signalbox/http-kit'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The time that a client may cache the metadata, in seconds. */
const MAX_AGE_SECONDS = 300

/** Headers of every answer: web pages of every origin may read the metadata, which is public. */
const OPEN = { 'Access-Control-Allow-Origin': '*' }

/** Clients send the version of the protocol, so a browser asks first. */
const PREFLIGHT = {
  ...OPEN,
  'Access-Control-Allow-Methods': 'GET, HEAD',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Max-Age': '86400',
}

/** Answers GET and HEAD with the metadata, OPTIONS with the permission for browsers, and other methods with 405. */
export function answerMetadata(
  request: HttpRequest,
  response: HttpResponse,
  metadata: string,
  moreHeaders: OutgoingHttpHeaders = {},
): void {
  const { method } = request
  const headers = { ...withoutOrigin(moreHeaders), ...OPEN }
  if (method === 'GET' || method === 'HEAD') {
    response.writeHead(200, {
      ...headers,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(metadata),
      'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
      'X-Content-Type-Options': 'nosniff',
    })
    response.end(method === 'HEAD' ? undefined : metadata)
  } else if (method === 'OPTIONS') {
    response.writeHead(204, { ...headers, ...PREFLIGHT })
    response.end()
  } else refuseBody(request, response, 405, { ...headers, Allow: 'GET, HEAD, OPTIONS' }, '')
}

/** A host's CORS settings may allow fewer origins. */
function withoutOrigin(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !/^access-control-allow-(?:origin|credentials)$/i.test(name))
  return Object.fromEntries(kept)
}
