import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import type { FastifyInstance, FastifyReply } from 'fastify'

import type { ConsoleFile, ConsoleFiles } from './console-files.ts'
import type { ConsoleOAuth, ConsoleOAuthPort } from './sign-in.ts'

/** The page of the operator console. */
export interface ConsoleOptions {
  /** Returns the folder of the built page. Called at the first request for the page. */
  readonly folder: () => Promise<string>
  /** The identity provider at which operators sign in. @default none: the page asks for a token */
  readonly oauth?: ConsoleOAuthPort | undefined
}

/**
 * The page runs only its own scripts and styles and reaches only its own listener and, if operators
 * sign in at an identity provider, its token endpoint. Trusted types forbid every way from text to
 * markup, in the page and in its libraries.
 */
function securityPolicy(tokenOrigin?: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self'${tokenOrigin === undefined ? '' : ` ${tokenOrigin}`}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

const SECURITY_HEADERS = {
  'content-security-policy': securityPolicy(),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

const PAGE = 'index.html'

/** Adds the page at `/console/`. It is public: it asks for a token, and its requests carry that. */
export function addConsoleRoutes(app: FastifyInstance, { folder, oauth }: ConsoleOptions): void {
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
    const isPage = file !== undefined && file.mediaType.startsWith('text/html')
    const provider = isPage ? await oauth?.read() : undefined
    // The policy of a page stays in force for its life, so it must have the endpoint from the start.
    if (file !== undefined && provider !== undefined) return sendPage(request.headers, reply, file, provider)
    if (file === undefined) return reply.code(404).type('text/plain; charset=utf-8').send('404 page not found\n')
    return sendFile(request.headers, reply, file, path.startsWith('assets/'))
  })
}

/** Browsers store the policy together with the page, so another policy needs another ETag. */
function sendPage(
  headers: IncomingHttpHeaders,
  reply: FastifyReply,
  file: ConsoleFile,
  { tokenEndpoint }: ConsoleOAuth,
): FastifyReply {
  const policy = securityPolicy(new URL(tokenEndpoint).origin)
  const etag = `"${createHash('sha256').update(file.etag).update(policy).digest('hex').slice(0, 24)}"`
  reply.header('content-security-policy', policy)
  return sendFile(headers, reply, { ...file, etag }, false)
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
