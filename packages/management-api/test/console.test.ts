import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'

import { expect, onTestFinished, test } from 'vitest'

import { manage, tokens } from './management-server.ts'

const HTML = '<!doctype html><title>page</title>'
const SCRIPT = 'export const value = 1'

function builtPage(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-console-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), HTML)
  writeFileSync(join(folder, 'assets/main-1a2b.js'), SCRIPT)
  writeFileSync(join(folder, 'assets/main-1a2b.js.br'), brotliCompressSync(SCRIPT))
  writeFileSync(join(folder, 'assets/main-1a2b.js.gz'), gzipSync(SCRIPT))
  writeFileSync(join(folder, 'built-from'), 'a digest')
  return folder
}

interface Got {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A request whose path and encoding are sent as given. */
async function get(base: string, path: string, headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base)
    request({ hostname, port, path, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
      .on('error', reject)
      .end()
  })
}

test('console - the page is public, may not be framed, and runs only its own scripts', async () => {
  const folder = builtPage()
  const { url } = await manage({ console: { folder: async () => folder }, authenticator: tokens() })
  const { status, headers, body } = await get(url, '/console/')
  expect([status, headers['content-type'], body.toString()]).toEqual([200, 'text/html; charset=utf-8', HTML])
  expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' })
  const policy = new Map(
    headers['content-security-policy']
      ?.toString()
      .split('; ')
      .map((part) => [part.split(' ')[0], part]),
  )
  expect(policy.get('default-src')).toBe("default-src 'none'")
  expect(policy.get('script-src')).toBe("script-src 'self'")
  expect(policy.get('style-src')).toBe("style-src 'self'")
  expect(policy.get('frame-ancestors')).toBe("frame-ancestors 'none'")
  expect((await get(url, '/console')).headers.location).toBe('/console/')
})

test('console - assets are immutable, and sent in the best encoding that the browser accepts', async () => {
  const folder = builtPage()
  const { url } = await manage({ console: { folder: async () => folder } })
  const path = '/console/assets/main-1a2b.js'
  const brotli = await get(url, path, { 'accept-encoding': 'gzip, br' })
  expect(brotli.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'br',
    vary: 'Accept-Encoding',
  })
  expect(brotliDecompressSync(brotli.body).toString()).toBe(SCRIPT)
  const gzip = await get(url, path, { 'accept-encoding': 'gzip, br;q=0' })
  expect([gzip.headers['content-encoding'], gunzipSync(gzip.body).toString()]).toEqual(['gzip', SCRIPT])
  const plain = await get(url, path)
  expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual([undefined, SCRIPT])
  const etag = plain.headers.etag ?? ''
  expect((await get(url, path, { 'if-none-match': etag })).status).toBe(304)
})

test('console - only files of the page are served', async () => {
  const folder = builtPage()
  const { url } = await manage({ console: { folder: async () => folder } })
  for (const path of [
    '/console/nothing.js',
    '/console/built-from',
    '/console/assets/main-1a2b.js.br',
    '/console/../index.html',
    '/console/%2e%2e/%2e%2e/1',
    '/console/assets',
  ]) {
    expect([path, (await get(url, path)).status]).toEqual([path, 404])
  }
})

test('console - a folder that cannot be read is tried again', async () => {
  const folder = builtPage()
  let calls = 0
  const failed: unknown[] = []
  const { url } = await manage({
    console: { folder: async () => (calls++ === 0 ? join(folder, 'absent') : folder) },
    hooks: { failed: (error) => failed.push(error) },
  })
  expect((await get(url, '/console/')).status).toBe(500)
  expect(failed).toHaveLength(1)
  expect((await get(url, '/console/')).status).toBe(200)
})

test('console - without the option there is no page', async () => {
  const { url } = await manage()
  expect((await get(url, '/console/')).status).toBe(404)
})

const PROVIDER = {
  issuer: 'https://id.example.com',
  authorizationEndpoint: 'https://id.example.com/authorize',
  tokenEndpoint: 'https://tokens.example.com/oauth/token',
  clientId: 'console',
  scopes: ['openid'],
  resource: '',
}

/** The hosts that the page may reach. */
function connects({ headers }: Got): string | undefined {
  return /connect-src [^;]*/.exec(String(headers['content-security-policy']))?.[0]
}

test('console - the page of a server with an identity provider may reach its token endpoint, and no other host', async () => {
  const folder = builtPage()
  const known: { provider?: typeof PROVIDER } = {}
  const oauth = { issuer: PROVIDER.issuer, read: async () => known.provider }
  const { url } = await manage({ console: { folder: async () => folder, oauth }, authenticator: tokens() })
  const before = await get(url, '/console/')
  expect(connects(before)).toBe("connect-src 'self'")
  known.provider = PROVIDER
  // A browser that stored the page before gets the policy too.
  const page = await get(url, '/console/', { 'if-none-match': String(before.headers.etag) })
  expect([page.status, connects(page)]).toEqual([200, "connect-src 'self' https://tokens.example.com"])
  const stored = await get(url, '/console/', { 'if-none-match': String(page.headers.etag) })
  expect([stored.status, connects(stored)]).toEqual([304, "connect-src 'self' https://tokens.example.com"])
  expect(connects(await get(url, '/console/assets/main-1a2b.js'))).toBe("connect-src 'self'")
})

test('console - how operators sign in is public, also during the start', async () => {
  const known: { provider?: typeof PROVIDER } = {}
  const oauth = { issuer: PROVIDER.issuer, read: async () => known.provider }
  const server = await manage({
    console: { folder: async () => '', oauth },
    authenticator: tokens(),
    started: false,
  })
  const asked = async () => (await server.get('/api/sign_in')).data
  expect(await asked()).toEqual({ required: true, provider: 'https://id.example.com', oauth: null })
  known.provider = PROVIDER
  expect(await asked()).toEqual({
    required: true,
    provider: 'https://id.example.com',
    oauth: {
      authorization_endpoint: 'https://id.example.com/authorize',
      token_endpoint: 'https://tokens.example.com/oauth/token',
      client_id: 'console',
      scopes: ['openid'],
      resource: '',
    },
  })
  const { get: open } = await manage()
  expect((await open('/api/sign_in')).data).toEqual({ required: false, provider: null, oauth: null })
})
