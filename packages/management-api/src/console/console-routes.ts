import type { IncomingHttpHeaders } from 'node:http'

import type { FastifyInstance, FastifyReply } from 'fastify'

import type { ConsoleFile, ConsoleFiles } from './console-files.ts'

/** The page of the operator console. */
export interface ConsoleOptions {
  /** Returns the folder of the built page. Called at the first request for the page. */
  readonly folder: () => Promise<string>
}

/**
 * The page runs only its own scripts and styles and reaches only its own listener. Trusted types
 * forbid every way from text to markup, in the page and in its libraries.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const SECURITY_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

const PAGE = 'index.html'

/** Adds the page at `/console/`. It is public: it asks for a token, and its requests carry that. */
export function addConsoleRoutes(app: FastifyInstance, { folder }: ConsoleOptions): void {
  let reading: Promise<ConsoleFiles> | undefined
  const files = (): Promise<ConsoleFiles> =>
    (reading ??= Promise.all([import('./console-files.ts'), folder()])
      .then(([{ readConsoleFiles }, path]) => readConsoleFiles(path))
      .catch((error: unknown) => {
        reading = undefined
        throw error
      }))
  app.get('/console', (_request, reply) => reply.redirect('/console/', 308))
  app.get<{ Params: { '*': string } }>('/console/*', async (request, reply) => {
    const path = request.params['*']
    const file = (await files()).get(path === '' ? PAGE : path)
    reply.headers(SECURITY_HEADERS)
    if (file === undefined) return reply.code(404).type('text/plain; charset=utf-8').send('404 page not found\n')
    return sendFile(request.headers, reply, file, path.startsWith('assets/'))
  })
}

/** @param hashed `true` if the name of the file changes with its content */
function sendFile(headers: IncomingHttpHeaders, reply: FastifyReply, file: ConsoleFile, hashed: boolean): FastifyReply {
  reply.headers({
    'cache-control': hashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: file.etag,
    vary: 'Accept-Encoding',
  })
  if (headers['if-none-match']?.includes(file.etag)) return reply.code(304).send()
  const accepted = acceptedEncodings(headers['accept-encoding'])
  const encoded = file.encoded.find(({ encoding }) => accepted.has(encoding))
  if (encoded !== undefined) reply.header('content-encoding', encoded.encoding)
  return reply.type(file.mediaType).send(encoded?.body ?? file.body)
}

function acceptedEncodings(header = ''): ReadonlySet<string> {
  const accepted = header
    .split(',', 20)
    .map((part) => part.split(';').map((text) => text.trim().toLowerCase()))
    .filter(([, quality]) => quality === undefined || !/^q=0(?:\.0*)?$/.test(quality))
    .map(([name = '']) => name)
  return new Set(accepted)
}
