import type { FastifyReply, FastifyRequest } from 'fastify'

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

/** Returns `true` for a request of a person: GET or HEAD of `/`. */
export function isFrontPage({ method, url }: Pick<FastifyRequest, 'method' | 'url'>): boolean {
  return (method === 'GET' || method === 'HEAD') && /^\/(?:\?|$)/.test(url)
}

/** Redirects browsers, or answers 404 with links: HTML for browsers, plain text for other clients. */
export function sendFrontPage(request: FastifyRequest, reply: FastifyReply, page: FrontPage): FastifyReply {
  const html = request.headers.accept?.includes('text/html') === true
  if (html && page.browsersTo !== undefined) return reply.headers(COMMON_HEADERS).redirect(page.browsersTo, 302)
  return reply
    .code(404)
    .headers({
      ...COMMON_HEADERS,
      'content-type': `text/${html ? 'html' : 'plain'}; charset=utf-8`,
      ...(html ? { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" } : {}),
    })
    .send(html ? htmlOf(page) : textOf(page))
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
