import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { Health } from '../health/health.ts'

/** An answer of the server itself, on both listeners. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const TEXT = 'text/plain; charset=utf-8'

/** Returns an answer in one line of plain text. */
export function textAnswer(status: number, text: string): Answer {
  const headers = { 'content-type': TEXT, 'x-content-type-options': 'nosniff' }
  return { status, headers, body: `${text}\n` }
}

/** The answer for unknown paths, including `/kill`, and for paths that cannot be decoded (S5). */
export const NOT_FOUND = textAnswer(404, '404 page not found')

type Probe = (health: Health) => Promise<Answer>

function probeAnswer(status: number, type: string, body: string): Answer {
  const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'content-type': type }
  return { status, headers, body }
}

/** The probes by path, the same on both listeners. */
export const PROBES: ReadonlyMap<string, Probe> = new Map<string, Probe>([
  ['/ping', async () => probeAnswer(200, TEXT, 'pong')],
  [
    '/health',
    async (health) => {
      const healthy = await health.healthy()
      return probeAnswer(healthy ? 200 : 500, TEXT, healthy ? 'healthy' : 'not healthy')
    },
  ],
  [
    '/ready',
    async (health) => {
      const state = await health.state()
      return probeAnswer(state.ready ? 200 : 503, 'application/json; charset=utf-8', JSON.stringify(state))
    },
  ],
])

/** The time for the rest of a body to arrive after its answer, in ms. */
const LINGER_MS = 2_000

/** Sends an answer. `headers` are added, such as CORS headers. */
export function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  headers?: OutgoingHttpHeaders,
): void {
  const length = String(Buffer.byteLength(answer.body))
  response.writeHead(answer.status, { ...headers, ...answer.headers, 'content-length': length })
  response.end(request.method === 'HEAD' ? undefined : answer.body)
}

/**
 * Closes a connection whose body does not arrive within seconds after the answer: otherwise it stays open until the
 * time-out of the request.
 */
export function closeWhenUnread(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return
    const timer = setTimeout(() => request.destroy(), LINGER_MS)
    timer.unref()
    request.once('end', () => clearTimeout(timer))
    request.once('close', () => clearTimeout(timer))
  })
}

/** A line of the answer at `/`: a path, or the pattern of one, and its use. */
export interface FrontPageEntry {
  readonly path: string
  readonly use: string
}

/** The answer at `/`, for people who look there. The status is 404, as that of every other unknown path. */
export interface FrontPage {
  /** The listener, in a few words. */
  readonly title: string
  readonly entries: readonly FrontPageEntry[]
  /** The path to which browsers are redirected. @default none: they get the entries */
  readonly browsersTo?: string
}

const DOCS = 'https://github.com/signalbox/signalbox#readme'

const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', vary: 'Accept' } as const

/** The parts of a request that decide whether it gets the front page. */
interface PageRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/**
 * Returns the answer to a request of a person, GET or HEAD of `/`; `undefined` for other requests. Redirects browsers, or
 * answers 404 with links: HTML for browsers, plain text for other clients.
 */
export function frontPageAnswer({ method, url = '', headers }: PageRequest, page: FrontPage): Answer | undefined {
  if ((method !== 'GET' && method !== 'HEAD') || !/^\/(?:\?|$)/.test(url)) return undefined
  const html = headers.accept?.includes('text/html') === true
  if (html && page.browsersTo !== undefined) {
    return { status: 302, headers: { ...COMMON_HEADERS, location: page.browsersTo }, body: '' }
  }
  if (!html) {
    return {
      status: 404,
      headers: { ...COMMON_HEADERS, 'content-type': 'text/plain; charset=utf-8' },
      body: textOf(page),
    }
  }
  const policy = { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" }
  const type = { 'content-type': 'text/html; charset=utf-8' }
  return { status: 404, headers: { ...COMMON_HEADERS, ...type, ...policy }, body: htmlOf(page) }
}

function textOf({ title, entries }: FrontPage): string {
  const width = Math.max(...entries.map(({ path }) => path.length))
  const lines = entries.map(({ path, use }) => `  ${path.padEnd(width)}  ${use}`)
  return [
    '404 page not found',
    '',
    `${title}. There is no page here; programs use:`,
    ...lines,
    '',
    `Documentation: ${DOCS}`,
    '',
  ].join('\n')
}

/** Returns a link to a path that a browser can open; the text of other paths. */
function linked(path: string): string {
  return /[{*]|\/$|^\/mcp$/.test(path) ? path : `<a href="${path}">${path}</a>`
}

/** The entries are constants of this server: nothing in them needs an escape. */
function htmlOf({ title, entries }: FrontPage): string {
  const rows = entries.map(({ path, use }) => `<tr><td><code>${linked(path)}</code><td>${use}`)
  return [
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Signalbox</title>',
    '<style>body{font:16px/1.5 sans-serif;margin:3rem auto;max-width:40rem;padding:0 1rem}td{padding:0 1.5rem .2rem 0}</style>',
    `<h1>Signalbox</h1><p>${title}. There is no page here; programs use:`,
    `<table>${rows.join('\n')}</table>`,
    `<p><a href="${DOCS}">Documentation</a></html>`,
    '',
  ].join('\n')
}
