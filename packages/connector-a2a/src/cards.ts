import { createHash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { refuseBody } from '@signalbox/http-kit'

import type { AgentCard } from '@signalbox/registry'
import type { Platform } from './options.ts'

/**
 * The end of every path that serves a card without authentication.
 */
export const CARD_PATH = '/.well-known/agent-card.json'

/** The time that a client may cache a card, in seconds. */
const MAX_AGE_SECONDS = 60

interface ShownCard {
  readonly text: string
  readonly etag: string
}

/** Serves agent cards over HTTP: without authentication, with an ETag for revalidation. */
export class Cards {
  readonly #platform: ShownCard
  readonly #shown = new WeakMap<AgentCard, ShownCard>()

  constructor({ name, version, description }: Platform) {
    this.#platform = show({
      name,
      description,
      version,
      protocolVersions: ['1.0'],
      capabilities: { streaming: true },
      defaultInputModes: ['text/plain', 'application/json'],
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: [],
    })
  }

  /** Answers with the platform's own card. */
  platform(request: IncomingMessage, response: ServerResponse, headers: OutgoingHttpHeaders | undefined): void {
    answer(request, response, headers, this.#platform)
  }

  /** Answers with an agent's card, or with 404 if there is no card. */
  agent(
    card: AgentCard | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    if (card === undefined) {
      const message = 'no agent is registered under this id'
      const text = JSON.stringify({ error: 'AGENT_NOT_FOUND', message, details: [] })
      refuseBody(request, response, 404, { ...headers, 'Content-Type': 'application/json' }, text)
      return
    }
    let shown = this.#shown.get(card)
    if (shown === undefined) this.#shown.set(card, (shown = show(card)))
    answer(request, response, headers, shown)
  }
}

function show(card: object): ShownCard {
  const text = JSON.stringify(card)
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"` }
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  moreHeaders: OutgoingHttpHeaders | undefined,
  { text, etag }: ShownCard,
): void {
  const headers = { ...moreHeaders, ETag: etag, 'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}` }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    refuseBody(request, response, 405, { ...moreHeaders, Allow: 'GET, HEAD' }, '')
  } else if (isKnown(request.headers['if-none-match'], etag)) {
    response.writeHead(304, headers)
    response.end()
  } else {
    response.writeHead(200, {
      ...headers,
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(request.method === 'HEAD' ? undefined : text)
  }
}

/**
 * Returns true if If-None-Match names this card. Weak and strong tags compare alike (RFC 9110,
 * section 13.1.2).
 */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((tag) => {
    const trimmed = tag.trim()
    return trimmed === '*' || trimmed === etag || trimmed === `W/${etag}`
  })
}
