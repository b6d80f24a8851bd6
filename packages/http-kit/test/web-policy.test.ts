import { describe, expect, onTestFinished, test } from 'vitest'

import { CORS_DEFAULTS, fastifyCorsOptions, originPolicy, parseTrustedOrigins } from '../src/index.ts'
import { MCP_LOCAL_HOSTS } from '../src/internal.ts'
import type { CorsSettings } from '../src/index.ts'

const mcp = originPolicy('auto', { alsoLocal: MCP_LOCAL_HOSTS })
const a2a = originPolicy('auto')

/** What no policy but `*` may let pass. */
const TRICKS = [
  'null',
  'http://localhost.evil.com',
  'http://127.0.0.1.evil.com',
  'http://evil.com',
  'https://evil.com:3000',
  'http://evil.com#localhost',
  'http://evil.com/localhost',
  'http://localhost@evil.com',
  'http://localhost:80@evil.com',
  'http://evil.com?localhost',
  'http://evillocalhost',
  'http://localhost.',
  'http://local',
  'HTTP://LOCALHOST',
  'http://LOCALHOST',
  'Http://localhost',
  'http://localhost/',
  'http://localhost:',
  'http://localhost:port',
  'http://localhost:65536',
  'http://localhost:999999',
  ' http://localhost',
  'http://localhost ',
  'http://localhost, http://evil.com',
  'http://localhost\nhttp://evil.com',
  'http:/localhost',
  'http:localhost',
  'localhost',
  '//localhost',
  'ftp://localhost',
  'file://localhost',
  'ws://localhost',
  'chrome-extension://localhost',
  'http://127.0.0.2',
  'http://127.1',
  'http://2130706433',
  'http://0x7f.0.0.1',
  'http://127.0.0.1:80:80',
  'http://[::2]',
  'http://[::1',
  'http://::1]',
  'http://[::1]evil.com',
  'http://[::ffff:127.0.0.1]',
  'http://0.0.0.0.evil.com',
  'http://l\u043ecalhost',
  '*',
  'auto',
]

describe('S6 - auto', () => {
  test.each([
    undefined,
    '',
    'http://localhost',
    'https://localhost',
    'http://localhost:3000',
    'https://127.0.0.1:8443',
    'http://127.0.0.1',
  ])('S6 - origin %s passes everywhere', (origin) => {
    expect(mcp(origin)).toBe(true)
    expect(a2a(origin)).toBe(true)
  })

  test.each([
    'http://[::1]',
    'http://[::1]:9090',
    'https://[::1]:3000',
    'http://::1',
    'http://0.0.0.0',
    'http://0.0.0.0:9090',
  ])('S6 - origin %s passes for MCP only', (origin) => {
    expect(mcp(origin)).toBe(true)
    expect(a2a(origin)).toBe(false)
  })

  test.each(TRICKS)('S6, ORIGIN-1 - origin %j is refused', (origin) => {
    expect(mcp(origin)).toBe(false)
    expect(a2a(origin)).toBe(false)
  })

  test('S6 - the bind address passes, brackets or not', () => {
    expect(originPolicy('auto', { bindHost: '192.168.7.9' })('http://192.168.7.9:9090')).toBe(true)
    expect(originPolicy('auto', { bindHost: '192.168.7.9' })('http://192.168.7.8:9090')).toBe(false)
    expect(originPolicy('auto', { bindHost: 'fd00::5' })('http://[fd00::5]:9090')).toBe(true)
    expect(originPolicy('auto', { bindHost: 'Broker.Example' })('https://broker.example')).toBe(true)
  })
})

describe('S6 - other settings', () => {
  test('S6, ORIGIN-2 - * lets everything pass', () => {
    for (const origin of TRICKS) expect(originPolicy('*')(origin)).toBe(true)
  })

  test('S6, ORIGIN-3 - a list compares scheme, host and port exactly', () => {
    const listed = originPolicy(['https://app.example.com', 'http://10.0.0.5:8080', 'https://[fd00::1]:8443'])
    expect(listed('https://app.example.com')).toBe(true)
    expect(listed('https://app.example.com:443')).toBe(true)
    expect(listed('http://10.0.0.5:8080')).toBe(true)
    expect(listed('https://[fd00::1]:8443')).toBe(true)
    expect(listed(undefined)).toBe(true)
    expect(listed('')).toBe(true)
    for (const origin of [
      'http://app.example.com',
      'https://app.example.com:8443',
      'https://sub.app.example.com',
      'https://app.example.com.evil.com',
      'https://APP.example.com',
      'http://10.0.0.5',
      'http://10.0.0.5:80',
      'https://10.0.0.5:8080',
      'http://localhost',
      'null',
    ]) {
      expect(listed(origin), origin).toBe(false)
    }
  })

  test('S6 - the setting is read from one line of text', () => {
    expect(parseTrustedOrigins('auto')).toBe('auto')
    expect(parseTrustedOrigins(' * ')).toBe('*')
    expect(parseTrustedOrigins('https://a.example, http://b.example:81,')).toEqual([
      'https://a.example',
      'http://b.example:81',
    ])
    for (const bad of [
      '',
      ',',
      'a.example',
      'https://a.example/path',
      'https://*.example.com',
      'auto, https://a.example',
      'null',
    ]) {
      expect(() => parseTrustedOrigins(bad), bad).toThrow(RangeError)
    }
    expect(() => originPolicy(['nonsense'])).toThrow('"nonsense" is not an origin')
  })
})

import cors from '@fastify/cors'
import fastify from 'fastify'

async function serve(settings?: CorsSettings): Promise<string> {
  const app = fastify()
  await app.register(cors, fastifyCorsOptions(settings))
  app.post('/mcp', async () => ({ reached: true }))
  onTestFinished(() => app.close())
  return app.listen({ port: 0, host: '127.0.0.1' })
}

const preflight = (url: string, origin: string): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type,mcp-session-id',
    },
  })

describe('CORS', () => {
  test('CORS-1, CORS-2, CORS-3, CORS-5, CORS-6, CORS-7 - a preflight is answered to the letter of the table, before any route', async () => {
    const response = await preflight(await serve(), 'https://anywhere.example')
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    const { headers } = response
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-methods')).toBe('GET, POST, DELETE, OPTIONS')
    expect(headers.get('access-control-allow-headers')).toBe(
      'Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept',
    )
    expect(headers.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
    expect(headers.get('access-control-max-age')).toBe('86400')
  })

  test('CORS-1, CORS-4 - answers carry the origin and the exposed headers', async () => {
    const response = await fetch(`${await serve()}/mcp`, { method: 'POST', headers: { Origin: 'https://a.example' } })
    expect(await response.json()).toEqual({ reached: true })
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
    expect(response.headers.get('vary')).toBeNull()
  })

  test('CORS - a list of origins is compared exactly and varies by origin', async () => {
    const url = await serve({ ...CORS_DEFAULTS, allowOrigins: ['https://a.example', 'https://b.example'] })
    const listed = await preflight(url, 'https://b.example')
    expect(listed.headers.get('access-control-allow-origin')).toBe('https://b.example')
    expect(listed.headers.get('vary')).toBe('Origin')
    const other = await preflight(url, 'https://b.example.evil.com')
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
    expect(other.headers.get('vary')).toBe('Origin')
  })

  test('CORS - credentials for every origin are refused', () => {
    expect(() => fastifyCorsOptions({ ...CORS_DEFAULTS, allowCredentials: true })).toThrow(RangeError)
    expect(
      fastifyCorsOptions({ ...CORS_DEFAULTS, allowOrigins: ['https://a.example'], allowCredentials: true }).credentials,
    ).toBe(true)
  })
})
